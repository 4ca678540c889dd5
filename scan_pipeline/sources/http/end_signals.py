"""End signals are data: what a source documents as its end, and nothing else, ends a walk."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Annotated, Any, Final, Literal

from pydantic import Field

from scan_pipeline.core.errors import ContractError, ProtocolError
from scan_pipeline.core.field_path import FieldPath
from scan_pipeline.core.page import Continuation, End, Next
from scan_pipeline.core.value import record
from scan_pipeline.core.vocabulary import ContinuationKind, SignalWord
from scan_pipeline.sources.http.envelope import ABSENT, value_at

_IN_BODY: Final = object()
"""Says that the field which holds the continuation lies in the body."""


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
        at: where in the body the token lies.
        header: response header that holds it, where the body does not.
        send_as: query parameter or header that carries it, or dotted path in a JSON body.
        send_in: where it travels; None for where the source's other additions do.
        ends_when: the declared end signals.
        first: token of the very first request, for sources that want one.
    """

    at: FieldPath = ()
    header: str | None = None
    send_as: str
    send_in: Literal["query", "body", "header"] | None = None
    ends_when: Annotated[tuple[EndSignal, ...], Field(min_length=1)]
    first: str | None = None

    def __post_init__(self) -> None:
        if bool(self.at) == (self.header is not None):
            raise ContractError("next needs exactly one of: at, header")


def continuation(
    around: Any,
    facts: NextFacts,
    *,
    records: int,
    read: int | None = None,
    headers: Mapping[str, str] | None = None,
) -> Continuation:
    """Read what follows a page.

    Args:
        around: the parsed body.
        facts: what the contract declares.
        records: number of records on the page.
        read: number of records up to and with this page, None where the position does not say.
        headers: response headers, for a token that lies there.

    Raises:
        ProtocolError: `continuation_missing`, `continuation_invalid` or `end_signals_disagree`.
    """
    if facts.header is None:
        token = value_at(around, facts.at)
    else:
        token = (headers or {}).get(facts.header, ABSENT)
    where = f"header {facts.header}" if facts.header else ".".join(facts.at)
    end = end_of(around, facts.ends_when, at=facts.at, records=records, read=read, token=token)
    return end or next_of(token, where=where, signals=facts.ends_when)


def next_of(token: Any, *, where: str, signals: tuple[EndSignal, ...]) -> Next:
    """Return the token of a page that shows no end.

    Raises:
        ProtocolError: `continuation_missing` or `continuation_invalid`.
    """
    match token:
        case str() if token:
            return Next(token=token)
        case int() | Decimal() if not isinstance(token, bool):
            return Next(token=str(token))  # digit for digit: a token is not ours to rewrite
        case _ if token is ABSENT:
            raise ProtocolError(
                "continuation_missing",
                f"no field at {where}; expected a token or a declared end",
            )
        case _:
            raise ProtocolError(
                "continuation_invalid",
                f"{where} holds {_kind_of(token)}; expected a token or one of "
                f"{[signal.word for signal in signals]}",
            )


def end_of(
    around: Any,
    signals: tuple[EndSignal, ...],
    *,
    at: FieldPath,
    records: int,
    read: int | None = None,
    token: Any = _IN_BODY,
) -> End | None:
    """Return the declared end that a page shows, None where no signal shows one.

    Signals on the same field are alternatives; signals on different fields must all agree.

    Args:
        around: the parsed body.
        signals: the declared end signals.
        at: field of those that name none.
        records: number of records on the page.
        read: number of records up to and with this page, None where the position does not say.
        token: what holds the continuation, where that is not the body's field `at`.

    Raises:
        ProtocolError: `end_signals_disagree`, or a declared flag is missing or no flag.
    """
    said: dict[FieldPath, str | None] = {}
    for field in dict.fromkeys(signal.at or at for signal in signals):
        value = token if field == at and token is not _IN_BODY else value_at(around, field)
        on_field = [signal for signal in signals if (signal.at or at) == field]
        shown = next((s.word for s in on_field if _shows(value, s, records, read)), None)
        if shown is None and field != at:
            _check_flag(value, on_field, field)
        named = shown is not None and field != at and shown != "empty_page"
        said[field] = f"{'.'.join(field)}:{shown}" if named else shown
    ends = [signal for signal in said.values() if signal is not None]
    if ends and len(ends) == len(said):
        return End(signal="+".join(sorted(set(ends))))
    if ends:
        raise ProtocolError(
            "end_signals_disagree",
            f"{', '.join(ends)} says the end; "
            + ", ".join(".".join(f) for f, s in said.items() if s is None)
            + " says that more follows",
        )
    return None


def commits_before_next(kind: ContinuationKind) -> bool:
    """Say whether a page must be durable before its continuation is used up."""
    return kind == "single_use"


def _check_flag(value: Any, signals: list[EndSignal], field: FieldPath) -> None:
    """Refuse a field beside the token that was declared to speak and does not.

    Raises:
        ProtocolError: `continuation_missing` or `continuation_invalid`.
    """
    words = [signal.word for signal in signals]
    if value is ABSENT and "empty_page" not in words:
        raise ProtocolError(
            "continuation_missing", f"no field at {'.'.join(field)}; expected it on every page"
        )
    if words == ["false"] and value is not True:
        raise ProtocolError(
            "continuation_invalid", f"{'.'.join(field)} holds {_kind_of(value)}; expected a boolean"
        )


def _shows(value: Any, signal: EndSignal, records: int, read: int | None) -> bool:
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
        case "total_reached":
            return type(value) is int and value == read


def _kind_of(value: Any) -> str:
    kinds = {dict: "an object", list: "a list", bool: "a boolean", str: "an empty string"}
    return "null" if value is None else kinds.get(type(value), type(value).__name__)
