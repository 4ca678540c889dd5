"""Scans that are read together: one night, one opened collection each, or none of them.

The members of an inventory begin a night under one name, `20261130T020000Z`. A member that begins
again, or whose pages are judged again, does so under a further attempt of that name,
`20261130T020000Z.2`. So the members of one night are those whose names are equal but for the
attempt, and of each the newest attempt counts that opens as asked for.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from types import MappingProxyType

from scan_pipeline.core.coverage import RANK, SCOPE_RANK
from scan_pipeline.core.errors import ContractError, EvidenceError, GateClosedError
from scan_pipeline.core.receipt import Receipt
from scan_pipeline.core.vocabulary import CONCLUSION_SCOPES, ConclusionScope, CoverageStatus
from scan_pipeline.stages.reading import Collection, open_collection
from scan_pipeline.stages.shelf import pages_of
from scan_pipeline.stages.standing import observed_at
from scan_pipeline.stages.unlock import VerifiedCollection, Wish
from scan_pipeline.store.lake import check_generation
from scan_pipeline.store.receipts import generation_order


class VerifiedInventory(Mapping[str, VerifiedCollection]):
    """The whole collections of one night by name; made by `Inventory` alone.

    Args:
        night: the name that the generations have in common.
        opened: the collections.
        newer: later nights that do not open, with the reason of each, oldest first.
    """

    def __init__(
        self,
        night: str,
        opened: Mapping[str, VerifiedCollection],
        *,
        newer: tuple[tuple[str, str], ...] = (),
    ) -> None:
        self.night, self.newer = night, newer
        self._opened = MappingProxyType(dict(opened))

    def __getitem__(self, name: str) -> VerifiedCollection:
        return self._opened[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._opened)

    def __len__(self) -> int:
        return len(self._opened)

    @property
    def receipt_ids(self) -> Mapping[str, str]:
        """The receipt of each collection, by its name."""
        return {name: each.receipt_id for name, each in self.items()}

    @property
    def generation(self) -> str:
        """The newest attempt among the generations that were opened."""
        return max((each.receipt.scan_generation for each in self.values()), key=generation_order)

    @property
    def skew(self) -> timedelta:
        """The longest time between the readings of any two records, of one scan or of two."""
        receipts = [each.receipt for each in self.values()]
        begun = min(datetime.fromisoformat(each.observation_started_at) for each in receipts)
        return max(observed_at(each) for each in receipts) - begun

    @property
    def weakest(self) -> tuple[CoverageStatus, ConclusionScope]:
        """The status and scope of the collection that proves least; a join proves no more.

        Whole scopes do not stand in for one another; among them the order of the words decides.
        """
        receipts = [each.receipt for each in self.values()]
        least = min(receipts, key=_strength)
        return least.coverage_status, least.conclusion_scope

    def word(self) -> str:
        """Return every receipt's sentence, the skew and the weakest scope, and what came after."""
        status, scope = self.weakest
        told = " ".join(each.word() for each in self.values())
        told += (
            f" Read together they are {status} at most, {scope.replace('_', ' ')}, within "
            f"{self.skew.total_seconds():,.0f} seconds."
        )
        if self.newer:
            night, why = self.newer[-1]
            told += f" The newer night {night} does not open: {why}"
        return told


class Inventory:
    """Scans that are read together.

    Args:
        members: their generations, by the names under which they are to be read.

    Raises:
        ContractError: there is no member.
    """

    def __init__(self, members: Mapping[str, Collection]) -> None:
        if not members:
            raise ContractError("found an inventory of no scan; expected one at least")
        self._members = dict(members)

    def night(
        self, night: str, *, at_least: Wish = "verified", max_skew: timedelta | None = None
    ) -> VerifiedInventory:
        """Open the members of one night.

        Args:
            night: name of any of its generations; the attempt in it decides nothing.
            at_least: the least status of each receipt.
            max_skew: the longest time between any two readings; None for any.

        Raises:
            GateClosedError: one member does not open, or they were read too far apart.
            TamperedError: the records of one are not those that were sealed.
        """
        night = night_of(night)
        opened = {
            name: _newest_attempt(each, night, at_least=at_least)
            for name, each in self._members.items()
        }
        found = VerifiedInventory(night, opened)
        if max_skew is not None and found.skew > max_skew:
            raise GateClosedError(
                scan="+".join(each.scan.name for each in self._members.values()),
                generation=night,
                reason=f"they were read within {found.skew}; expected within {max_skew}: begin "
                "them together, or allow more",
            )
        return found

    def latest(
        self, *, at_least: Wish = "verified", max_skew: timedelta | None = None
    ) -> VerifiedInventory:
        """Open the newest night whose members all open.

        Args:
            at_least: as for `night`.
            max_skew: as for `night`.

        Raises:
            GateClosedError: there is none, or a member of it is too old; the message tells of the
                newest one.
            TamperedError: as `night`.
        """
        newer = list[tuple[str, str]]()
        for night in self._nights():
            try:
                found = self.night(night, at_least=at_least, max_skew=max_skew)
            except GateClosedError as refused:
                newer.insert(0, (night, str(refused)))
                continue
            return VerifiedInventory(night, found, newer=tuple(newer))
        told = f"; {newer[-1][0]}: {newer[-1][1]}" if newer else ""
        raise GateClosedError(
            scan="+".join(each.scan.name for each in self._members.values()),
            generation=None,
            reason=f"no night opens as {at_least} for every scan{told}",
        )

    def standing(self, night: str) -> Mapping[str, Receipt]:
        """Return the accepted receipts of a night that stand, by name; of each the newest attempt.

        Nothing is opened: it is for those who only ask whether there is something to read.
        """
        night = night_of(night)
        found = dict[str, Receipt]()
        for name, each in self._members.items():
            for generation in _attempts(each, night):
                receipt = each.accepted(generation)
                if receipt is not None:
                    found[name] = receipt
                    break
        return found

    def _nights(self) -> list[str]:
        names = {
            night_of(generation)
            for each in self._members.values()
            for generation in each.generations()
        }
        return sorted(names, reverse=True)


def open_inventory(
    scans: Mapping[str, str],
    *,
    lake: str | Path | None = None,
    folder: str | Path | None = None,
    environ: Mapping[str, str] | None = None,
    max_age: timedelta | None = None,
) -> Inventory:
    """Open scans that are read together.

    Args:
        scans: name of a scan of the project, or path of a scan file, by the name under which it is
            to be read: `{"customers": "customers", "cases": "support_cases"}`.
        lake: as for `open_collection`.
        folder: as for `open_collection`.
        environ: as for `open_collection`.
        max_age: as for `open_collection`, for each of them.

    Raises:
        ContractError: there is no such scan, or its file does not parse.
        ConfigurationError: nothing says where the lake is.
    """
    return Inventory(
        {
            name: open_collection(each, lake=lake, folder=folder, environ=environ, max_age=max_age)
            for name, each in scans.items()
        }
    )


def night_of(generation: str) -> str:
    """Return the night of a generation, which all its attempts have in common.

    Raises:
        ContractError: no generation has such a name.
    """
    return generation_order(check_generation(generation))[0]


def _attempts(collection: Collection, night: str) -> list[str]:
    """Return the attempts of a night that have a receipt, newest first: by the pages they judge."""
    names = [each for each in collection.generations() if generation_order(each)[0] == night]
    return sorted(names, key=lambda each: _age(collection, each), reverse=True)


def _age(collection: Collection, generation: str) -> tuple[tuple[str, int], tuple[str, int]]:
    own = generation_order(generation)
    try:
        return generation_order(pages_of(collection.receipt(generation).receipt)), own
    except (EvidenceError, GateClosedError):  # it opens to nobody, and says so when tried
        return own, own


def _newest_attempt(collection: Collection, night: str, *, at_least: Wish) -> VerifiedCollection:
    refusal: GateClosedError | None = None
    for generation in _attempts(collection, night):
        try:
            return collection.generation(generation, at_least=at_least)
        except GateClosedError as error:
            refusal = refusal or error
    raise refusal or GateClosedError(
        scan=collection.scan.name,
        generation=night,
        reason="it has no receipt of this night; expected one of every scan that is read together",
    )


def _strength(receipt: Receipt) -> tuple[int, int, int]:
    scope = receipt.conclusion_scope
    return RANK[receipt.coverage_status], SCOPE_RANK[scope], -CONCLUSION_SCOPES.index(scope)
