"""What makes a page tell less of its source than it seems to, though it breaks no rule."""

from collections.abc import Iterator

from scan_pipeline.core.contract import Contract
from scan_pipeline.core.findings import Finding, finding
from scan_pipeline.core.page import Next, Page
from scan_pipeline.core.source_facts import SourceFacts
from scan_pipeline.core.vocabulary import MAY_MOVE


def doubts_about(
    page: Page, ordinal: int, *, source: SourceFacts, contract: Contract
) -> Iterator[Finding]:
    """Yield what keeps a walk that holds such a page from proving anything.

    - A page that a cache kept is of a state before the change token was read, or is the first walk
      come again for the second. A live walk claims nothing that it could spoil, and under a pin the
      recheck decides.
    - Another secret may be another principal's, who sees another population.
    - Offsets and page numbers shift with each row that comes or goes, or that has no fixed place
      in the order: two walks can be equal and lack the same row.

    Args:
        page: the page.
        ordinal: its number, from 1.
        source: what is declared of the source.
        contract: what the walk is held to.
    """
    consistency, follows = contract.consistency, page.continuation
    if page.reported.from_cache and consistency in MAY_MOVE - {"live"}:
        told = "an answer of the source", "one that a cache kept"
        yield finding("answer_from_cache", page=ordinal, expected=told[0], found=told[1])
    if page.reported.credential_changed:
        yield finding("credential_changed", page=ordinal, expected="one secret", found="another")
    if consistency == "two_equal_walks" and isinstance(follows, Next):
        name = source.counter_in(follows.token)
        if name is not None:
            yield finding(
                "continuation_counts_rows", page=ordinal, expected="a cursor or key", found=name
            )
