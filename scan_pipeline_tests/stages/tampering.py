"""A sealed lake, and somebody with write access to it who knows Parquet and Delta.

What alters uses pyarrow, deltalake and the standard library alone: the outsider is not us. A
careless one edits a file; a careful one also makes the Delta log agree.
"""

import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import write_deltalake

from scan_pipeline.core.scan import Scan
from scan_pipeline.stages.audit import Audit, AuditReport
from scan_pipeline.stages.unlock import unlock
from scan_pipeline.stages.workspace import Workspace
from scan_pipeline.store.project import Project
from scan_pipeline_tests.stages.night_process import project_in

Change = Callable[[pa.Table], pa.Table]


@dataclass(frozen=True)
class SealedLake:
    """A project with sealed generations, copied for one test to be altered.

    Attributes:
        root: its folder.
        scan: the scan that walked, and `first` and `second`, its generations.
        other: another scan, and `third`, its generation.
    """

    root: Path
    scan: Scan
    first: str
    second: str
    other: Scan
    third: str

    @property
    def project(self) -> Project:
        return project_in(self.root)

    @property
    def lake(self) -> Path:
        return self.root / "lake"

    def workspace(self) -> Workspace:
        return Workspace(self.project, environ={})

    def copied_to(self, root: Path) -> "SealedLake":
        shutil.copytree(self.root, root)
        return SealedLake(root, self.scan, self.first, self.second, self.other, self.third)

    def audit(self, generation: str | None = None) -> AuditReport:
        """Audit the newest generation, or another one."""
        chosen = generation or self.second
        return Audit(self.scan.name, chosen, workspace=self.workspace()).run()

    def wrong(self, generation: str | None = None) -> set[str]:
        """Return the names of what disagrees."""
        return {each.name for each in self.audit(generation).disagreements}

    def table(self, name: str) -> Path:
        """Return a table's folder, by the name that receipts give it."""
        zone = {"pages": "evidence", "receipts": "receipts"}.get(name, "staging")
        return self.lake / zone / self.scan.name / name

    @property
    def published(self) -> Path:
        return self.lake / "published" / self.scan.name

    def receipt_file(self, generation: str | None = None, *, scan: str | None = None) -> Path:
        name = f"{generation or self.second}.dsse.json"
        return self.lake / "receipts" / (scan or self.scan.name) / name


def alter(table: Path, generation: str, change: Change, *, careful: bool = True) -> None:
    """Rewrite a generation's files in place, where the change changes them."""
    found = False
    for path in live_files(table, generation):
        file = table / path
        before = pq.read_table(file, partitioning=None)
        after = change(before)
        if after.equals(before):
            continue
        found = True
        pq.write_table(after, file, store_schema=False)
        if careful:
            _amend_log(table, path, size=file.stat().st_size, rows=after.num_rows)
    assert found, "expected the change to change a file"


def live_files(table: Path, generation: str) -> list[str]:
    """Return the paths of a generation's files by the log, sorted."""
    live: dict[str, bool] = {}
    for action in _log(table):
        if "add" in action:
            live[action["add"]["path"]] = True
        if "remove" in action:
            live[action["remove"]["path"]] = False
    return sorted(path for path, alive in live.items() if alive and f"={generation}/" in path)


def forget(table: Path, generation: str) -> None:
    """Remove all of a generation's files and every word of them in the log."""
    gone = set(live_files(table, generation))
    for path in gone:
        (table / path).unlink()
    for log in sorted(table.glob("_delta_log/*.json")):
        kept = [
            line
            for line in log.read_text().splitlines()
            if json.loads(line).get("add", {}).get("path") not in gone
        ]
        log.write_text("\n".join(kept) + "\n")


def append(table: Path, rows: pa.Table) -> None:
    """Append rows as any Delta client does."""
    write_deltalake(str(table), rows, mode="append")


def rows(table: Path, generation: str) -> pa.Table:
    """Return a generation's rows, the partition's column not among them."""
    parts = [
        pq.read_table(table / path, partitioning=None) for path in live_files(table, generation)
    ]
    return pa.concat_tables(parts)


def with_value(row: Callable[[dict[str, Any]], bool], **values: Any) -> Change:
    """Return a change that sets columns in the rows that are meant."""

    def change(table: pa.Table) -> pa.Table:
        meant = [{**each, **values} if row(each) else each for each in table.to_pylist()]
        return pa.Table.from_pylist(meant, schema=table.schema)

    return change


def without(row: Callable[[dict[str, Any]], bool]) -> Change:
    """Return a change that drops rows."""

    def change(table: pa.Table) -> pa.Table:
        kept = [each for each in table.to_pylist() if not row(each)]
        return pa.Table.from_pylist(kept, schema=table.schema)

    return change


def swapped(column: str, *, key: str, one: Any, other: Any) -> Change:
    """Return a change that swaps one column of two rows."""

    def change(table: pa.Table) -> pa.Table:
        all_rows = table.to_pylist()
        found = {each[key]: each for each in all_rows if each[key] in (one, other)}
        if len(found) < 2:
            return table
        found[one][column], found[other][column] = found[other][column], found[one][column]
        return pa.Table.from_pylist(all_rows, schema=table.schema)

    return change


def is_page(number: int) -> Callable[[dict[str, Any]], bool]:
    """Return what tells the row of a page."""
    return lambda row: row.get("page") == number


def flipped(column: str) -> Change:
    """Return a change that flips the last bit of page 2's value."""

    def change(table: pa.Table) -> pa.Table:
        for row in table.to_pylist():
            if is_page(2)(row):
                value = row[column][:-1] + bytes([row[column][-1] ^ 1])
                return with_value(is_page(2), **{column: value})(table)
        return table

    return change


def opens(sealed: SealedLake, *, contents: bool = False) -> None:
    """Open the newest generation and read it."""
    workspace = sealed.workspace()
    stored = workspace.receipts(sealed.scan.name).read(sealed.second, trust=workspace.trust)
    unlock(stored, sealed.scan, workspace=workspace, contents=contents).arrow()


def _log(table: Path) -> Iterator[dict[str, Any]]:
    for log in sorted(table.glob("_delta_log/*.json")):
        yield from (json.loads(line) for line in log.read_text().splitlines() if line)


def _amend_log(table: Path, path: str, *, size: int, rows: int) -> None:
    for log in sorted(table.glob("_delta_log/*.json")):
        lines = [json.loads(line) for line in log.read_text().splitlines() if line]
        for action in lines:
            if action.get("add", {}).get("path") == path:
                stats = json.loads(action["add"]["stats"])
                action["add"]["stats"] = json.dumps({**stats, "numRecords": rows})
                action["add"]["size"] = size
        log.write_text("\n".join(json.dumps(action) for action in lines) + "\n")
