"""End signals are data: what a source documents as its end, and nothing else, ends a walk."""

from decimal import Decimal
from typing import Annotated, Any

from pydantic import Field

from scan_pipeline.core.canonical import canonical_json
from scan_pipeline.core.contract import FieldPath
from scan_pipeline.core.errors import ProtocolError
from scan_pipeline.core.page import Continuation, End, Next
from scan_pipeline.core.value import record
from scan_pipeline.core.vocabulary import ContinuationKind, SignalWord
from scan_pipeline.sources.envelope import ABSENT, value_at


@record
class EndSignal:
    """One shape of the end.

    Attributes:
        at: where it stands; None for the field that holds the token.
        word: its shape, written `is` in a scan file.
        value: the value of `equals`.
    """

    at: FieldPath | None = None
    word: Annotated[SignalWord, Field(alias="is")]
    value: str | int | bool | None = None


@record
class NextFacts:
    """Where the continuation token lies, how it is sent back, and what says the end.

    Signals on the same field are alternatives; signals on different fields must all agree.

    Attributes:
        at: where the token lies.
        send_as: query parameter that carries it.
        ends_when: the declared end signals.
        first: token of the very first request, for sources that want one.
    """

    at: FieldPath
    send_as: str
    ends_when: Annotated[tuple[EndSignal, ...], Field(min_length=1)]
    first: str | None = None


def continuation(around: Any, facts: NextFacts, *, records: int) -> Continuation:
    """Read what follows a page.

    Args:
        around: the parsed body.
        facts: what the contract declares.
        records: number of records on the page.

    Raises:
        ProtocolError: `continuation_missing`, `continuation_invalid` or `end_signals_disagree`.
    """
    fields = {signal.at or facts.at for signal in facts.ends_when}
    said = {field: _signal_of(around, field, facts, records) for field in fields}
    ends = [signal for signal in said.values() if signal is not None]
    if len(ends) == len(fields):
        return End(signal="+".join(sorted(set(ends))))
    token = value_at(around, facts.at)
    if ends:
        raise ProtocolError(
            "end_signals_disagree",
            f"{', '.join(ends)} says the end; "
            + ", ".join(".".join(f) for f, s in said.items() if s is None)
            + " says that more follows",
        )
    match token:
        case str() if token:
            return Next(token=token)
        case int() | Decimal() if not isinstance(token, bool):
            return Next(token=canonical_json(token).decode())
        case _ if token is ABSENT:
            raise ProtocolError(
                "continuation_missing",
                f"no field at {'.'.join(facts.at)}; expected a token or a declared end",
            )
        case _:
            raise ProtocolError(
                "continuation_invalid",
                f"{'.'.join(facts.at)} holds {_kind_of(token)}; expected a token or one of "
                f"{[signal.word for signal in facts.ends_when]}",
            )


def commits_before_next(kind: ContinuationKind) -> bool:
    """Say whether a page must be durable before its continuation is used up."""
    return kind == "single_use"


def _signal_of(around: Any, at: FieldPath, facts: NextFacts, records: int) -> str | None:
    """Return the name of the declared signal that a field shows, None where it shows none."""
    value = value_at(around, at)
    for signal in facts.ends_when:
        if (signal.at or facts.at) == at and _shows(value, signal, records):
            own_field = at != facts.at and signal.word != "empty_page"
            return f"{'.'.join(at)}:{signal.word}" if own_field else signal.word
    return None


def _shows(value: Any, signal: EndSignal, records: int) -> bool:
    match signal.word:
        case "absent" | "no_next_link":
            return value is ABSENT
        case "null":
            return value is None
        case "empty_string":
            return value == ""
        case "false":
            return value is False
        case "empty_page":
            return records == 0
        case "equals":
            return type(value) is type(signal.value) and value == signal.value


def _kind_of(value: Any) -> str:
    kinds = {dict: "an object", list: "a list", bool: "a boolean", str: "an empty string"}
    return "null" if value is None else kinds.get(type(value), type(value).__name__)
