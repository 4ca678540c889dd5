"""The walk's chain: its vectors, and that nothing in a walk can be moved unseen."""

import json
from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest

from scan_pipeline.core.canonical import (
    CanonicalFormError,
    digest_of,
    items_digest,
    leaf_hash,
)
from scan_pipeline.core.chain import (
    EMPTY_DIGEST,
    NO_ITEMS,
    ChainBrokenError,
    ChainLink,
    chain_after,
    chain_next,
    chain_over,
    chain_start,
    cursor_digest,
    end_digest,
)

VECTORS = Path(__file__).parent.parent / "vectors"
CHAIN = json.loads((VECTORS / "chain.json").read_text(encoding="ascii"))
OPEN = bytes.fromhex(CHAIN["open_digest"])
PARTS = ("cursor_in", "cursor_out", "items", "body", "reported")


def recorded(event: dict) -> ChainLink:
    return ChainLink(seq=event["seq"], **{part: bytes.fromhex(event[part]) for part in PARTS})


def built(event: dict) -> ChainLink:
    """Make the link of an event from what happened, as an engine does."""
    seq, reported = event["seq"], digest_of(event["facts"])
    body = sha256(event["response"].encode()).digest()
    match event["kind"]:
        case "page":
            return ChainLink(
                seq=seq,
                cursor_in=follows(event["sent"]),
                cursor_out=follows(event["followed"]),
                items=items_digest(leaf_hash(record.encode()) for record in event["records"]),
                body=body,
                reported=reported,
            )
        case "refused":
            return ChainLink.refused(
                seq=seq, cursor=follows(event["sent"]), body=body, reported=reported
            )
        case _:
            return ChainLink.close(seq=seq, cursor=follows(event["sent"]), reported=reported)


def follows(sent: str | list | None) -> bytes:
    return end_digest(sent[0]) if isinstance(sent, list) else cursor_digest(sent)


LINKS = [recorded(event) for event in CHAIN["events"]]
HEAD = bytes.fromhex(CHAIN["events"][-1]["chain"])


def test_chain_starts_at_the_open_row() -> None:
    assert digest_of(CHAIN["open"]) == OPEN
    assert chain_start(OPEN).hex() == CHAIN["start"]


@pytest.mark.parametrize(
    "event", CHAIN["events"], ids=lambda event: f"{event['seq']} {event['kind']}"
)
def test_event_gives_the_link_of_the_vectors(event: dict) -> None:
    assert built(event) == recorded(event)


def test_every_step_of_the_walk_is_the_vectors() -> None:
    chain, steps = chain_start(OPEN), []
    for link in LINKS:
        chain = chain_after(chain, link=link)
        steps.append(chain.hex())

    assert steps == [event["chain"] for event in CHAIN["events"]]
    assert chain_over(OPEN, links=LINKS) == HEAD


@pytest.mark.parametrize("case", CHAIN["cursors"], ids=lambda case: repr(case["token"]))
def test_cursor_digest_is_the_vectors(case: dict) -> None:
    assert cursor_digest(case["token"]).hex() == case["digest"]


@pytest.mark.parametrize("case", CHAIN["ends"], ids=lambda case: case["signal"])
def test_end_digest_is_the_vectors(case: dict) -> None:
    assert end_digest(case["signal"]).hex() == case["digest"]


def test_no_token_reads_as_the_first_request_or_as_an_end() -> None:
    tokens = {cursor_digest(token) for token in ("none", "end:null", "token:", "", "null")}
    assert tokens.isdisjoint({cursor_digest(None), end_digest("null"), end_digest("")})


def test_nothing_is_the_hash_of_nothing() -> None:
    assert EMPTY_DIGEST.hex() == CHAIN["empty_digest"]
    assert items_digest([]) == NO_ITEMS == EMPTY_DIGEST


@pytest.mark.parametrize("text", ["\ud800", "a\udfff"])
@pytest.mark.parametrize("digest", [cursor_digest, end_digest])
def test_text_that_is_not_unicode_is_no_cursor(digest: Callable[[str], bytes], text: str) -> None:
    with pytest.raises(CanonicalFormError, match="lone surrogate"):
        digest(text)


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("at", range(len(LINKS)))
def test_any_changed_part_changes_the_chain(at: int, part: str) -> None:
    chain = chain_start(OPEN)
    for link in [*LINKS[:at], replace(LINKS[at], **{part: bytes(32)}), *LINKS[at + 1 :]]:
        chain = chain_after(chain, link=link)

    assert chain != HEAD


@pytest.mark.parametrize("at", range(len(LINKS) - 1))
def test_changed_cursor_does_not_follow(at: int) -> None:
    for part, seq in (("cursor_in", at + 1), ("cursor_out", at + 2)):
        changed = [*LINKS[:at], replace(LINKS[at], **{part: bytes(32)}), *LINKS[at + 1 :]]
        with pytest.raises(ChainBrokenError, match="expected cursor_in") as broken:
            chain_over(OPEN, links=changed)
        assert broken.value.seq == seq


def test_another_opening_changes_the_chain() -> None:
    assert chain_over(bytes(32), links=LINKS) != HEAD


@pytest.mark.parametrize("at", range(len(LINKS) - 1))
def test_dropped_doubled_or_swapped_event_breaks_the_chain(at: int) -> None:
    dropped = LINKS[:at] + LINKS[at + 1 :]
    doubled = LINKS[: at + 1] + LINKS[at:]
    swapped = [*LINKS[:at], LINKS[at + 1], LINKS[at], *LINKS[at + 2 :]]

    for links in (dropped, doubled, swapped):
        with pytest.raises(ChainBrokenError, match="expected event"):
            chain_over(OPEN, links=links)


def test_renumbered_walk_without_a_page_breaks_at_its_cursor() -> None:
    """Counting anew does not hide a page: the next one was asked for by its cursor."""
    kept = [link for link in LINKS if link.seq != 2]
    renumbered = [replace(link, seq=seq) for seq, link in enumerate(kept, start=1)]

    with pytest.raises(ChainBrokenError, match="event 2: expected cursor_in") as broken:
        chain_over(OPEN, links=renumbered)

    assert broken.value.seq == 2


def test_two_walks_of_one_generation_do_not_join() -> None:
    """Pages 1 and 2 of one walk and 3 of another, whose tokens differ by a nonce."""
    other = [
        replace(
            link,
            cursor_in=link.cursor_in if link.seq <= 2 else sha256(link.cursor_in).digest(),
            cursor_out=link.cursor_out if link.seq <= 1 else sha256(link.cursor_out).digest(),
        )
        for link in LINKS
    ]
    chain_over(OPEN, links=other)

    with pytest.raises(ChainBrokenError, match="event 4: expected cursor_in"):
        chain_over(OPEN, links=LINKS[:3] + other[3:])


@pytest.mark.parametrize("part", ["previous", *PARTS])
def test_digest_of_another_length_is_refused(part: str) -> None:
    parts = dict.fromkeys(("previous", *PARTS), bytes(32)) | {part: b"short"}
    with pytest.raises(ChainBrokenError, match=r"found digests of .5. bytes; expected 32"):
        chain_next(parts.pop("previous"), seq=1, **parts)


def test_open_digest_of_another_length_is_refused() -> None:
    with pytest.raises(ChainBrokenError, match="found an open digest of 0 bytes"):
        chain_start(b"")


@pytest.mark.parametrize("seq", [-1, 0, 2**64])
def test_number_outside_eight_bytes_or_of_the_open_row_is_refused(seq: int) -> None:
    with pytest.raises(ChainBrokenError, match=f"event {seq}: expected a number from 1"):
        chain_after(bytes(32), link=replace(LINKS[0], seq=seq))


def test_largest_number_fits() -> None:
    assert len(chain_after(bytes(32), link=replace(LINKS[0], seq=2**64 - 1))) == 32
