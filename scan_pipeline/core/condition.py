"""How a scan stands, from its last nights: the word that an alert is sent about when it changes."""

from collections.abc import Sequence
from typing import Literal, TypeAlias

from scan_pipeline.core.coverage import RANK, SCOPE_RANK
from scan_pipeline.core.value import record
from scan_pipeline.core.vocabulary import ConclusionScope, CoverageStatus

ConditionWord: TypeAlias = Literal["as_expected", "weaker", "not_accepted", "late"]
"""`weaker`: accepted, and proving less than the accepted nights before did."""

Change: TypeAlias = Literal["not_accepted", "late", "weaker", "accepted_again"]
"""What an alert is about."""


@record
class Verdict:
    """What became of one night; of several attempts, the one that stands.

    Attributes:
        generation: its name.
        accepted: whether its receipt is at least what the contract accepts.
        status: what the receipt says; `failed` where no receipt can be believed.
        scope: likewise.
    """

    generation: str
    accepted: bool
    status: CoverageStatus
    scope: ConclusionScope

    def is_at_least(self, other: "Verdict") -> bool:
        """Say whether this proves as much; the scopes of a whole are worth the same."""
        as_proven = RANK[self.status] >= RANK[other.status]
        return as_proven and SCOPE_RANK[self.scope] >= SCOPE_RANK[other.scope]


@record
class Condition:
    """How a scan stands.

    Attributes:
        word: in one word.
        since: the generation it has been so since; None where that lies before what was looked at.
        newest: the night it is read from, None before the first.
        accepted: the last accepted night before `since`, None where there is none.
    """

    word: ConditionWord
    since: str | None = None
    newest: Verdict | None = None
    accepted: Verdict | None = None

    def is_told_by(self, change: Change | None, since: str | None) -> bool:
        """Say whether the last alert that was sent says it already; None where none ever was."""
        if self.word == "as_expected" and self.since is None:
            return change not in ("not_accepted", "late")
        if self.word == "as_expected":
            return change in (None, "accepted_again")
        return change == self.word and (self.since is None or self.since == since)

    @property
    def change(self) -> Change:
        """What an alert about it says has happened."""
        return "accepted_again" if self.word == "as_expected" else self.word


def condition_of(nights: Sequence[Verdict], *, whole_history: bool) -> Condition:
    """Return how a scan stands after its last nights.

    A night that is accepted after weaker ones counts as expected once it proves as much as the
    nights before those did.

    Args:
        nights: oldest first.
        whole_history: whether there is nothing before them.
    """
    now = Condition(word="as_expected")
    proven: Verdict | None = None  # what accepted nights are held against
    last: Verdict | None = None
    for night in nights:
        word: ConditionWord = "as_expected"
        if not night.accepted:
            word = "not_accepted"
        elif proven is not None and not night.is_at_least(proven):
            word = "weaker"
        fell = word == "weaker" and last is not None and not night.is_at_least(last)
        if word != now.word or fell:
            now = Condition(word=word, since=night.generation, accepted=last)
        if night.accepted:
            last = night
            proven = night if word == "as_expected" else proven
    began_before = not whole_history and nights and now.since in (None, nights[0].generation)
    return Condition(
        word=now.word,
        since=None if began_before else now.since,
        newest=nights[-1] if nights else None,
        accepted=now.accepted,
    )
