"""What a contract may not ask of rounds of changes, found before a walk begins."""

from collections.abc import Iterator

from scan_pipeline.core.contract import Contract
from scan_pipeline.core.expectations import Expectations
from scan_pipeline.core.scan import RecordSchema
from scan_pipeline.core.source_facts import SourceFacts


def wrong_in_rounds(
    source: SourceFacts, contract: Contract, schema: RecordSchema
) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield where a contract of rounds contradicts itself, and what to do.

    Args:
        source: what is declared of the source.
        contract: its contract.
        schema: its record schema.
    """
    facts, delivery = source.checkpoint, contract.delivery
    if contract.mode != "sync":
        if delivery == "latest_wins":
            told = "latest_wins is of rounds of changes; expected mode: sync, or another delivery"
            yield ("contract", "delivery"), told
        return
    if facts is None:
        told = "sync needs a source that names where the next round begins, as delta_link does"
        yield ("contract", "mode"), told
        return
    if contract.consistency != "change_token":
        told = "a round goes from one token of the source to the next; expected change_token"
        yield ("contract", "consistency"), told
    if delivery != "latest_wins":
        told = "what changes twice comes twice; expected delivery: latest_wins"
        yield ("contract", "delivery"), told
    if contract.expect != Expectations():
        told = "a round is changes and no collection, which alone could meet this; expected none"
        yield ("contract", "expect"), told
    if contract.denominator is None and facts.covers_since == "start":
        told = (
            "no count says how many changes there are; expected denominator: end_signal, for a "
            "source whose documentation says that a delta link ends all of them"
        )
        yield ("contract", "denominator"), told
    if facts.updates == "changed_members" and schema is not None:
        told = (
            "changes come as changed members alone, which no schema can be held against; expected "
            "none: columns are inferred from the records that they add up to"
        )
        yield ("record_schema",), told
