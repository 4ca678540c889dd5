"""Reading what a search answers: whether it is a page, its hits, and what follows."""

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from scan_pipeline.core.errors import ProtocolError
from scan_pipeline.core.page import Continuation, End, Next
from scan_pipeline.core.value import record
from scan_pipeline.sources.http.envelope import (
    ABSENT,
    cut_member,
    open_envelope,
    parse_body,
    split_records,
    value_at,
)
from scan_pipeline.sources.http.reported import MAX_COUNT

HITS: Final = ("hits", "hits")


@record
class Found:
    """A search's answer that is a page.

    Attributes:
        body: as it came.
        records: the hits as they are kept, see `opened_hit`.
        continuation: what follows.
        total: how many documents match, None where the source does not say it exactly.
        point_in_time: newest name of the point in time, None where the search ran under none.
    """

    body: bytes
    records: Sequence[bytes]
    continuation: Continuation
    total: int | None
    point_in_time: str | None


class Token(msgspec.Struct):
    """Where a page begins: behind these sort values, digit for digit; and the shards so far."""

    after: msgspec.Raw
    shards: int


_TOKEN: Final = msgspec.json.Decoder(Token)


def read_token(token: str) -> Token:
    """Read a position's token."""
    return _TOKEN.decode(token)


def read_found(
    body: bytes, *, sorted_by: int, pinned: bool, after: bytes | None, shards: int | None
) -> Found:
    """Take an answer apart.

    Args:
        body: UTF-8 JSON.
        sorted_by: how many sort values each hit must have.
        pinned: whether the search ran under a point in time.
        after: sort values that were sent, None for the first page.
        shards: shards that the walk began with, None where it does not know yet.

    Raises:
        ProtocolError: it is not a page, or not all of one.
    """
    envelope = open_envelope(body, records_at=HITS)
    around = envelope.around
    if value_at(around, ("error",)) is not ABSENT:
        raise ProtocolError(
            "error_envelope", "the answer holds an error although its status says success"
        )
    answered = check_shards(around, shards=shards)
    _check_whole(around)
    pin = value_at(around, ("pit_id",))
    if pinned and (not isinstance(pin, str) or not pin):
        raise ProtocolError(
            "pin_not_reported",
            "the answer names no pit_id; expected the point in time that it was asked under",
        )
    opened = [opened_hit(hit) for hit in envelope.records]
    return Found(
        body=body,
        records=[hit for hit, _ in opened],
        continuation=_continuation(
            [sort for _, sort in opened], sorted_by=sorted_by, after=after, shards=answered
        ),
        total=_total(around),
        point_in_time=pin if pinned else None,
    )


def kept(body: bytes) -> list[bytes]:
    """Return the hits of an admitted body as they are kept, see `opened_hit`."""
    return [opened_hit(hit)[0] for hit in split_records(body, records_at=HITS)]


def opened_hit(hit: bytes) -> tuple[bytes, bytes | None]:
    """Return a hit as it is kept, and its sort values, both as sent.

    The members of its document (`_source`) stand beside those of the hit (`_index`, `_id`), so that
    they can be columns; no document has fields of those names. `sort` is taken out: it says where
    the hit stood in this walk, in part by numbers of its own (`_shard_doc`), so that no document
    would be equal in two walks.

    Raises:
        ProtocolError: `body_unparsable`, it is no object.
    """
    around, sort = cut_member(hit, "sort")
    outer, document = cut_member(around, "_source")
    if document is None or not document.startswith(b"{"):
        return around, sort
    members = (outer.strip()[1:-1].strip(), document.strip()[1:-1].strip())
    return b"{" + b",".join(each for each in members if each) + b"}", sort


def name_in(body: bytes) -> str | None:
    """Return the name of the point in time in an answer that is no page, None where it has none."""
    try:
        name = value_at(parse_body(body), ("pit_id",))
    except ProtocolError:
        return None
    return name if isinstance(name, str) and name else None


def has_document(record: bytes) -> bool:
    """Say whether a hit as it is kept has members of a document; unreadable ones may have."""
    try:
        return any(not name.startswith("_") for name in _NAMES.decode(record))
    except msgspec.DecodeError:
        return True


_NAMES: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])


def check_shards(around: Any, *, shards: int | None) -> int:
    """Return how many shards answered; all of them must have.

    Shards that were skipped held nothing that matched, and count as successful.

    Args:
        around: the parsed answer.
        shards: how many there have to be, None where any number is right.

    Raises:
        ProtocolError: `answer_partial`.
    """
    told = value_at(around, ("_shards",))
    told = told if isinstance(told, dict) else {}
    total, successful, failed = (
        told.get(name) if isinstance(told.get(name), int) else None
        for name in ("total", "successful", "failed")
    )
    if total is None or successful is None or failed is None:
        raise _partial("says nothing of its shards at _shards; expected total, successful, failed")
    if failed or successful != total:
        raise _partial(f"is of {successful} shards of {total}, {failed} failed; expected all")
    if total == 0:
        raise _partial("is of no shard at all; expected an index behind source.index")
    if shards is not None and total != shards:
        raise _partial(f"is of {total} shards; expected the {shards} that the walk began with")
    return total


def _check_whole(around: Any) -> None:
    timed_out = value_at(around, ("timed_out",))
    if timed_out is not False:
        said = "timed out" if timed_out is True else "does not say at timed_out whether it did"
        raise _partial(f"{said}; expected timed_out: false")
    if value_at(around, ("terminated_early",)) not in (ABSENT, False):
        raise _partial("was terminated early; expected every shard to be searched to its end")
    clusters = value_at(around, ("_clusters",))
    if clusters is ABSENT:
        return
    told = clusters if isinstance(clusters, dict) else {}
    lost = {
        name: told[name] for name in ("skipped", "partial", "failed", "running") if told.get(name)
    }
    if lost or not told or told.get("successful") != told.get("total"):
        shown = ", ".join(f"{number} {name}" for name, number in lost.items()) or "not all of them"
        raise _partial(f"lacks clusters ({shown}); expected all to be successful")


def _continuation(
    sorts: Sequence[bytes | None], *, sorted_by: int, after: bytes | None, shards: int
) -> Continuation:
    """Return the last hit's sort values; no hits are the end."""
    if not sorts:
        return End(signal="empty_page")
    for number, values in enumerate(sorts):
        if values is None or len(_values(values)) != sorted_by:
            raise ProtocolError(
                "continuation_invalid",
                f"hit {number} of the page has no {sorted_by} values at sort; expected one for "
                "each field that was sorted by",
            )
    last = sorts[-1] or b""
    if after is not None and _values(last) == _values(after):
        raise ProtocolError(
            "no_progress", "the last hit is the one that the page should begin behind"
        )
    return Next(token=f'{{"after":{last.decode()},"shards":{shards}}}')


def _values(sort: bytes) -> list[bytes]:
    try:
        return [bytes(each) for each in _LIST.decode(sort)]
    except msgspec.DecodeError:
        return []


_LIST: Final = msgspec.json.Decoder(list[msgspec.Raw])


def _total(around: Any) -> int | None:
    """Return the number of matches; of a lower bound (`gte`) nothing is known exactly.

    Raises:
        ProtocolError: `reported_invalid`.
    """
    told = value_at(around, ("hits", "total"))
    if told is ABSENT:
        return None
    value, relation = (
        (told.get("value"), told.get("relation")) if isinstance(told, dict) else (None, None)
    )
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < MAX_COUNT:
        raise ProtocolError("reported_invalid", "hits.total.value is not a number of documents")
    if relation not in ("eq", "gte"):
        raise ProtocolError("reported_invalid", "hits.total.relation is neither eq nor gte")
    return value if relation == "eq" else None


def _partial(told: str) -> ProtocolError:
    return ProtocolError("answer_partial", f"the answer {told}")
