"""Whether a count that stands beside pages can mean what is declared of it."""

from collections.abc import Sequence

from scan_pipeline.core.findings import Finding
from scan_pipeline.core.page import End, Page
from scan_pipeline.core.source_facts import CountFacts


def counted(page: Page, facts: CountFacts) -> int | None:
    """Return what a page says by its declared count."""
    return {
        "total": page.reported.total,
        "remaining": page.reported.remaining,
        "page": page.reported.page,
    }[facts.means]


def count_contradicted(
    facts: CountFacts, pages: Sequence[Page], findings: Sequence[Finding], *, still: bool
) -> str | None:
    """Return what contradicts a declared count, in words; None where nothing does.

    Args:
        facts: the count as declared.
        pages: the first pages of a walk, in order.
        findings: what the walk noticed of them.
        still: whether the collection is declared to be held still.
    """
    told = [counted(page, facts) for page in pages]
    numbers = [each for each in told if each is not None]
    if len(numbers) < len(told):
        return "no count"
    noticed = {each.code: each for each in findings}
    short = noticed.get("page_short_of_its_count")
    if short is not None:
        return f"{short.expected} where the page holds {short.found}"
    read = sum(page.records for page in pages)
    if facts.means == "total" and numbers[0] < read:
        return f"{numbers[0]:,}, fewer than the records of the pages"
    if facts.means == "remaining" and len(pages) > 1:
        gone = numbers[0] - numbers[1]
        if gone != pages[1].records:
            return f"it fell by {gone:,} over a page of {pages[1].records:,}"
    if still and "count_changed" in noticed:
        return "another count on the second page"
    if not isinstance(pages[-1].continuation, End) or facts.exactness != "exact":
        return None
    if facts.means == "total" and numbers[-1] != read:
        return f"{numbers[-1]:,}, and {read:,} records to the end"
    if facts.means == "remaining" and numbers[-1]:
        return f"{numbers[-1]:,} remaining at the end"
    return None
