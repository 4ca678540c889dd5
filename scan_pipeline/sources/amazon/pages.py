"""The body of a page: what the service answered, as JSON, and how it was read.

A body holds `answer`, all that botocore parsed but its own metadata, and `read_as`: where the
records stand in it, which other kinds of results came beside them, by what the walk advances and
which botocore parsed it. So later stages take it apart without botocore's models, which change from
version to version.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from scan_pipeline.core.canonical import canonical_json
from scan_pipeline.core.errors import ContractError, ProtocolError
from scan_pipeline.core.page import Reported
from scan_pipeline.core.value import record
from scan_pipeline.sources.amazon.advancing import Paginator, search
from scan_pipeline.sources.amazon.facts import AwsSource
from scan_pipeline.sources.amazon.values import json_of
from scan_pipeline.sources.http.envelope import ABSENT, parse_body, value_at
from scan_pipeline.sources.source import Beside


@record
class Reading:
    """How answers of one operation are read.

    Attributes:
        records_at: JMESPath of the records.
        others: JMESPath of other kinds of results, which are not walked.
        left_out: those that are left out on purpose.
        optional: whether an answer without the list is an empty page.
    """

    records_at: str
    others: tuple[str, ...]
    left_out: tuple[str, ...]
    optional: bool


def reading(facts: AwsSource, *, paginator: Paginator, answer: Any, protocol: str) -> Reading:
    """Say how answers are read: what the scan file declares, or the one list there is.

    Args:
        facts: what the scan file declares.
        paginator: how the operation advances.
        answer: type of the operation's answers.
        protocol: the service's wire protocol.

    Raises:
        ContractError: the operation lists several kinds or none, and the scan file names none.
    """
    kinds = {each: _type_at(answer, each) for each in paginator.results}
    lists = [name for name, kind in kinds.items() if kind is None or kind.type_name == "list"]
    unknown = sorted(set(facts.leaves_out) - set(lists))
    if unknown:
        raise ContractError(f"found {unknown[0]} in leaves_out; expected some of {lists}")
    walked = [facts.records_at] if facts.records_at is not None else lists
    if len(walked) != 1:
        raise ContractError(
            f"{facts.tool} lists {lists or 'nothing but numbers and texts'}; expected records_at "
            "to name the one that is walked"
        )
    at = walked[0]
    kind = kinds.get(at) or _type_at(answer, at)
    flattened = kind is not None and bool(kind.serialization.get("flattened"))
    optional = facts.records_omitted_when_empty
    if optional is None:
        # An empty list has no other form there (smithy.io/2.0/spec/protocol-traits, xmlFlattened).
        optional = flattened and protocol in ("rest-xml", "query", "ec2")
    others = [each for each in lists if at != each and not at.startswith((f"{each}[", f"{each}."))]
    return Reading(
        records_at=at,
        others=tuple(each for each in others if each not in facts.leaves_out),
        left_out=facts.leaves_out,
        optional=optional,
    )


def body_of(
    parsed: Mapping[str, Any],
    *,
    answer: Any,
    reading: Reading,
    paginator: Paginator,
    parser: str,
) -> bytes:
    """Return an answer as the body of a page.

    Args:
        parsed: the answer as botocore parsed it.
        answer: its type.
        reading: how it is read.
        paginator: how the operation advances.
        parser: what parsed it, with its version.
    """
    said = {name: value for name, value in parsed.items() if name != "ResponseMetadata"}
    read_as = {
        "records_at": reading.records_at,
        "others": list(reading.others),
        "left_out": list(reading.left_out),
        "optional": reading.optional,
        "paginator": {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in paginator.__dict__.items()
        },
        "parser": parser,
    }
    return canonical_json({"answer": json_of(said, answer), "read_as": read_as})


def opened(body: bytes) -> tuple[Any, Reading]:
    """Take a body apart.

    Raises:
        ProtocolError: it is none of ours.
    """
    around = parse_body(body)
    try:
        said, read_as = around["answer"], around["read_as"]
        found = Reading(
            records_at=read_as["records_at"],
            others=tuple(read_as["others"]),
            left_out=tuple(read_as["left_out"]),
            optional=read_as["optional"],
        )
    except (KeyError, TypeError) as error:
        raise ProtocolError("body_unparsable", "the body of a page is none of ours") from error
    return said, found


def records_in(said: Any, reading: Reading, *, record_field: str | None) -> Sequence[bytes]:
    """Return the records of an answer, each as canonical JSON.

    Raises:
        ProtocolError: `records_missing`, there is no list of records.
    """
    found = search(reading.records_at, said)
    if found is None and reading.optional:
        return []
    if not isinstance(found, list):
        raise ProtocolError(
            "records_missing",
            f"the answer has no list at {reading.records_at}; expected one, or "
            "records_omitted_when_empty where the service leaves an empty one out",
        )
    if record_field is not None:
        found = [each if isinstance(each, dict) else {record_field: each} for each in found]
    if not all(isinstance(each, dict) for each in found):
        raise ProtocolError(
            "records_missing",
            f"what stands at {reading.records_at} are no objects; expected record_field, the field "
            "that bare texts and numbers are kept as",
        )
    return [canonical_json(each) for each in found]


def reported(said: Any, reading: Reading, facts: AwsSource) -> Reported:
    """Return what an answer says of the collection beside its records.

    A count of the page such as `KeyCount` of S3 covers the other kinds too; they are taken off.

    Raises:
        ProtocolError: `reported_invalid`, it is no whole number.
    """
    count = ABSENT if facts.count is None else value_at(said, facts.count.at)
    if facts.count is None or count is ABSENT:
        return Reported()
    if isinstance(count, bool) or not isinstance(count, int) or count < 0:
        raise ProtocolError("reported_invalid", f"no count at {'.'.join(facts.count.at)}")
    match facts.count.means:
        case "total":
            return Reported(total=count)
        case "remaining":
            return Reported(remaining=count)
        case "page":
            besides = (*reading.others, *reading.left_out)
            return Reported(page=count - sum(_length(said, each) for each in besides))


def beside(said: Any, reading: Reading) -> Iterator[Beside]:
    """Yield each kind of results that came beside the records and is not walked."""
    for each in reading.others:
        found = _length(said, each)
        if found:
            yield Beside(
                code="other_results",
                expected=f"{reading.records_at} alone",
                found=f"{found} at {each}",
            )


def _length(said: Any, path: str) -> int:
    found = search(path, said)
    return len(found) if isinstance(found, list) else 0


def _type_at(answer: Any, path: str) -> Any:
    """Return the type that stands at a path of plain names; None where it is more than that."""
    for name in path.split("."):
        if getattr(answer, "type_name", None) != "structure" or name not in answer.members:
            return None
        answer = answer.members[name]
    return answer
