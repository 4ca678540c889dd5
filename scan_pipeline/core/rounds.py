"""What rounds that hold together are worth, and the sentence about what they come to."""

from collections.abc import Sequence

from scan_pipeline.core.coverage import RANK, SCOPE_RANK
from scan_pipeline.core.receipt import Receipt
from scan_pipeline.core.value import record
from scan_pipeline.core.vocabulary import ConclusionScope, CoverageStatus


@record
class Worth:
    """What rounds are worth together: as much as the weakest of them."""

    status: CoverageStatus
    scope: ConclusionScope

    @property
    def is_proven(self) -> bool:
        """Whether every one of them brought all changes since the one before."""
        return (self.status, self.scope) == ("verified", "all_changes_since_checkpoint")


def worth_of(rounds: Sequence[Receipt]) -> Worth:
    """Return what rounds are worth together.

    Args:
        rounds: receipts of the rounds, one at least.
    """
    weakest = min(
        rounds, key=lambda each: (RANK[each.coverage_status], SCOPE_RANK[each.conclusion_scope])
    )
    return Worth(status=weakest.coverage_status, scope=weakest.conclusion_scope)


def current_statement(rounds: Sequence[Receipt], *, records: int) -> str:
    """Write the one plain sentence a reader may quote of what rounds come to.

    Args:
        rounds: receipts of the rounds, the baseline first.
        records: how many records they come to.
    """
    first, tip, worth = rounds[0], rounds[-1], worth_of(rounds)
    since = len(rounds) - 1
    after = f" and the {since:,} round{'s' if since > 1 else ''} since" if since else ""
    said = (
        f"{records:,} records of {tip.scan} are what baseline {first.scan_generation}{after} come "
        f"to, as far as {tip.last_page_at or tip.observation_started_at}"
    )
    if worth.is_proven:
        said += ", each with every change since the one before, verified"
    else:
        scope = worth.scope.replace("_", " ")
        said += f"; the weakest of them is {worth.status}, {scope}: others may exist"
    return f"{said}, as visible to {tip.authorized_scope}."
