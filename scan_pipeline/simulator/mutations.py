"""Changes to a collection: each makes a new revision and leaves the older ones as they were."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any, Final, Literal, TypeAlias

from pydantic import ConfigDict, Field

from scan_pipeline.core.errors import ContractError
from scan_pipeline.core.value import record
from scan_pipeline.simulator.population import KEY_FIELDS, MAKERS
from scan_pipeline.simulator.rows import EPOCH, CollectionName, Row, Traits

STRICT: Final = ConfigDict(extra="forbid", strict=True)
"""A script is parsed to the letter: no unknown field, no number out of a string."""

Natural: TypeAlias = Annotated[int, Field(ge=1)]


@record
class RowChange:
    """What the mutations share: which rows, and when.

    Attributes:
        after_page: the change happens right after this page (from 1) was first served; None only
            for a change that is handed to a running registry.
        collection: which collection changes.
        first: number in the first key, `4100` for `customer-4100`.
        last: number in the last key, that row included; None for one row.
    """

    __pydantic_config__ = STRICT

    first: Natural
    last: Natural | None = None
    after_page: Natural | None = None
    collection: CollectionName = "customers"

    @property
    def numbers(self) -> range:
        """The numbers of the rows it touches."""
        return range(self.first, (self.last or self.first) + 1)


@record
class Insert(RowChange):
    """Rows appear; they carry the newest schema version and the moment of the change."""

    kind: Literal["insert"] = "insert"


@record
class Delete(RowChange):
    """Rows vanish."""

    kind: Literal["delete"] = "delete"


@record
class Update(RowChange):
    """Rows take other traits and the moment of the change; None leaves a trait alone."""

    kind: Literal["update"] = "update"
    tenant: Literal["acme", "globex"] | None = None
    region: Literal["eu", "us", "apac", "latam", "mea"] | None = None
    status: str | None = None
    schema_version: int | None = None


@record
class Move(RowChange):
    """Rows change their place in the order by `updated_at`, across any cursor in between.

    Attributes:
        to: `oldest` puts them before every other row, `newest` after.
    """

    kind: Literal["move"] = "move"
    to: Literal["oldest", "newest"]


Mutation: TypeAlias = Insert | Delete | Update | Move


def mutated(rows: tuple[Row, ...], mutation: Mutation, *, revision: int) -> tuple[Row, ...]:
    """Return the rows after a mutation.

    Args:
        rows: ordered by number.
        mutation: what happens.
        revision: number of the revision that comes of it; a change is stamped `EPOCH` plus as
            many seconds, so that every process writes the same bytes.

    Raises:
        ContractError: a row to insert is there already, or a row to change is not.
    """
    found = {row.number: row for row in rows}
    missing = [number for number in mutation.numbers if number not in found]
    match mutation:
        case Insert():
            _expect(len(missing) == len(mutation.numbers), mutation, "none of these rows yet")
            found |= {number: _born(mutation, number, revision) for number in missing}
        case Delete():
            _expect(not missing, mutation, "all of these rows")
            for number in mutation.numbers:
                del found[number]
        case Update():
            _expect(not missing, mutation, "all of these rows")
            changes = _changes(mutation) | {"updated": EPOCH + revision}
            found |= {n: _changed(mutation, found[n], changes) for n in mutation.numbers}
        case Move():
            _expect(not missing, mutation, "all of these rows")
            oldest = min(row.traits.updated for row in rows)
            moment = oldest - 1 if mutation.to == "oldest" else EPOCH + revision
            found |= {
                n: _changed(mutation, found[n], {"updated": moment}) for n in mutation.numbers
            }
    return tuple(found[number] for number in sorted(found))


def _born(mutation: RowChange, number: int, revision: int) -> Row:
    maker = MAKERS[mutation.collection]
    moment = EPOCH + revision
    version = 3 if mutation.collection == "customers" else 1
    traits = replace(maker.traits(number), schema_version=version, created=moment, updated=moment)
    return Row(number=number, traits=traits, raw=maker.render(number, traits))


def _changed(mutation: RowChange, row: Row, changes: Mapping[str, Any]) -> Row:
    traits: Traits = replace(row.traits, **changes)
    return Row(
        number=row.number,
        traits=traits,
        raw=MAKERS[mutation.collection].render(row.number, traits),
    )


def _changes(mutation: Update) -> dict[str, Any]:
    names = ("tenant", "region", "status", "schema_version")
    values = {name: getattr(mutation, name) for name in names}
    return {name: value for name, value in values.items() if value is not None}


def _expect(held: bool, mutation: Mutation, expected: str) -> None:
    if not held:
        key = KEY_FIELDS[mutation.collection].removesuffix("_id")
        raise ContractError(
            f"{mutation.kind} of {key}-{mutation.first}..{key}-{mutation.numbers[-1]}: expected "
            f"{expected} in {mutation.collection}; correct the script"
        )
