"""An audit's look at files: every table as its receipt pins it, or as an amendment says."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from scan_pipeline.core.amendment import Amendment, amended_words
from scan_pipeline.core.errors import TamperedError
from scan_pipeline.core.receipt import PinnedTableEvidence, Receipt
from scan_pipeline.core.value import record
from scan_pipeline.stages.auditing.report import UNREADABLE, Checks
from scan_pipeline.stages.auditing.rows import is_gone
from scan_pipeline.stages.workspace import Workspace
from scan_pipeline.store.generations import GenerationStore
from scan_pipeline.store.held_now import HeldNow, held_now, pinned_table
from scan_pipeline.store.pinning import verify_pin
from scan_pipeline.store.tables import Table


@record
class Pins:
    """What became of a generation's tables.

    Attributes:
        gone: tables of which nothing is left.
        amendments: what was done to any of them since they were sealed, oldest first.
    """

    gone: frozenset[str]
    amendments: tuple[Amendment, ...]


def check_pins(
    store: GenerationStore, receipt: Receipt, *, workspace: Workspace, checks: Checks
) -> Pins:
    """Hold every table's files against the receipt, and against the amendments beside it.

    A table of which nothing is left is no disagreement: its rows were removed as a whole, and what
    they would have told is told as not computed: as dropped, where an amendment says so. Rows of
    the same stage go together.
    """
    tables: Mapping[str, Callable[[], Table]] = {
        "pages": store.pages,
        "records": store.records,
        "partition_summaries": store.summaries,
        "findings": store.findings_table,
        "second_walk": store.second_walk,
    }
    gone = {
        name
        for name, held in receipt.evidence.items()
        if held.rows and name in tables and is_gone(tables[name], held.generation)
    }
    if "records" not in gone:
        gone &= {"pages"}
    amendments = _amendments(receipt, workspace=workspace, checks=checks)
    in_force = dict[str, Amendment]()
    for name, held in receipt.evidence.items():
        told = amendments.get(held.generation, ())
        now = HeldNow(pin=pinned_table(held))
        with suppress(*UNREADABLE):  # told when the files are held against the pin
            now = held_now(name, tables[name](), held, told)
        in_force |= {f"{each.made_at} {each.kind}": each for each in now.amendments}
        words = ", ".join(amended_words(now.amendments))
        if name in gone:
            said = f"missing: nothing of {held.rows} rows is left, and no amendment says so"
            checks.leave(f"files of {name}", words if now.pin is None else said)
        else:

            def verify(
                name: str = name, held: PinnedTableEvidence = held, now: HeldNow = now
            ) -> str:
                return _verify(tables[name](), held, now)

            found = checks.guard(f"files of {name}", verify)
            if found is not None:
                checks.agree(f"files of {name}", f"{found}; {words}" if words else found)
    return Pins(gone=frozenset(gone), amendments=tuple(in_force[at] for at in sorted(in_force)))


def _verify(table: Table, held: PinnedTableEvidence, now: HeldNow) -> str:
    if now.pin is None:
        if table.files(held.generation):
            raise TamperedError(
                table.name,
                f"{table.name} {held.generation}: found rows; expected none, as "
                f"{now.amendments[-1].word()}: run `maintain` again",
            )
        return "none"
    verify_pin(table, held.generation, now.pin, contents=True)
    return now.pin.files_digest


def _amendments(
    receipt: Receipt, *, workspace: Workspace, checks: Checks
) -> dict[str, Sequence[Amendment]]:
    """Return the amendments of each generation that holds rows; name files that are none."""
    notes, trust = workspace.amendments(receipt.scan), workspace.trust
    found = dict[str, Sequence[Amendment]]()
    for generation in sorted({held.generation for held in receipt.evidence.values()}):
        found[generation] = notes.of(generation, trust=trust)
        for file in notes.unreadable(generation, trust=trust):
            checks.disagree("amendments", f"{file} does not verify", expected="signed notes")
    return found
