"""What the files of a bundle prove, each computed again from nothing but themselves."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from scan_pipeline.core.canonical import canonical_json, digest_of, parse_exact
from scan_pipeline.core.contract_digests import contract_digests
from scan_pipeline.core.errors import TamperedError
from scan_pipeline.core.merkle import PartitionRoot, collection_root
from scan_pipeline.core.receipt import Receipt
from scan_pipeline.sources.catalogue import parse_scan
from scan_pipeline.stages.auditing.report import Checks
from scan_pipeline.stages.bundling import manifest as parts
from scan_pipeline.stages.bundling.leaves import keys_not_among, roots_of, unlike_their_leaves
from scan_pipeline.stages.bundling.ledger import parse_ledger
from scan_pipeline.stages.erasing.naming import REDACTED
from scan_pipeline.stages.readers.export import NOTE_SUFFIX, check_note
from scan_pipeline.stages.reconciling.evidence import check_chain
from scan_pipeline.store.events import Event
from scan_pipeline.store.trust import Trust


class Vouched:
    """The files of a bundle that a signed manifest vouches for, and no others.

    Args:
        files: content of each, by path.
    """

    def __init__(self, files: Mapping[str, bytes]) -> None:
        self._files = files

    def read(self, path: str) -> bytes:
        """Return a file.

        Raises:
            TamperedError: there is none.
        """
        if path not in self._files:
            raise TamperedError(path, f"there is no {path} that the manifest vouches for")
        return self._files[path]

    def rows(self, path: str) -> list[dict[str, Any]]:
        """Return a list of rows; raises as `read`."""
        rows = parse_exact(self.read(path))
        if not isinstance(rows, list):
            raise TamperedError(path, f"{path} is no list")
        return cast("list[dict[str, Any]]", rows)

    def facts(self, path: str) -> dict[str, Any]:
        """Return an object; raises as `read`."""
        told = parse_exact(self.read(path))
        if not isinstance(told, dict):
            raise TamperedError(path, f"{path} is no object")
        return cast("dict[str, Any]", told)

    @property
    def table(self) -> str:
        """Name of the table of records.

        Raises:
            TamperedError: there is none, or more than one.
        """
        named = [
            each
            for each in self._files
            if each.startswith(parts.RECORDS) and each.endswith(".parquet") and each != parts.LEAVES
        ]
        if len(named) != 1:
            raise TamperedError("records", f"found {len(named)} tables of records; expected one")
        return named[0]


def check_ledger(held: Vouched, receipt: Receipt, checks: Checks) -> None:
    """Link the chain again, and count again what the events tell."""
    events = parse_ledger(held.read(parts.LEDGER))
    pages = [each for each in events if each.event == "page"]
    checks.compare("chain", receipt.cursor_chain_digest, f"sha256:{check_chain(events).hex()}")
    ended = next((each for each in reversed(pages) if each.end_signal is not None), None)
    for name, found in {
        "pages_observed": len(pages),
        "records_observed": sum(each.returned or 0 for each in pages),
        "bytes_observed": sum(each.body_bytes or 0 for each in pages),
        "empty_pages": sum(each.returned == 0 for each in pages),
        "refused_responses": sum(each.event == "refused" for each in events),
        "terminal_cursor_observed": ended is not None,
    }.items():
        checks.compare(name, getattr(receipt, name), found)
    if receipt.second_walk is not None:
        second = parse_ledger(held.read(parts.SECOND_LEDGER))
        signed, found = receipt.second_walk.cursor_chain_digest, check_chain(second).hex()
        checks.compare("chain of the second walk", signed, f"sha256:{found}")
        followed = (second[0].facts["follows"], second[-1].event)
        checks.compare("walks follow on one another", (events[-1].chain.hex(), "close"), followed)
    checks.guard("contract", lambda: _contract(held, receipt, checks, events=events))


def _contract(held: Vouched, receipt: Receipt, checks: Checks, *, events: Sequence[Event]) -> None:
    """Hold the contract's facts against the walk's own and the receipt's digests."""
    told = held.facts(parts.CONTRACT)
    evidence = receipt.evidence.get("pages")
    if evidence is None or evidence.generation == receipt.scan_generation:
        opened = events[0].facts
        checks.compare("contract", {name: opened[name] for name in told}, told)
    scan = parse_scan(json.loads(canonical_json(told["contract"])), stored=True)
    digests = contract_digests(scan, schema_fingerprint=str(told["schema_fingerprint"]))
    checks.compare("scope_digest", receipt.scope_digest, digests.scope)
    checks.compare("operation_digest", receipt.operation_digest, digests.operation)


def check_partitions(held: Vouched, receipt: Receipt, checks: Checks) -> None:
    """Fold the partitions to the root of the receipt."""
    roots = [
        PartitionRoot(
            value=parse_exact(row["partition"].encode()),  # pyright: ignore[reportArgumentType]
            leaf_count=int(row["leaf_count"]),
            root=bytes.fromhex(row["root"]),
        )
        for row in held.rows(parts.PARTITIONS)
    ]
    checks.compare("merkle.root", receipt.merkle.root, collection_root(roots).hex())
    checks.compare("merkle.partitions", receipt.merkle.partitions, len(roots))
    checks.compare("merkle.leaves", receipt.merkle.leaves, sum(e.leaf_count for e in roots))


def check_records(
    held: Vouched, receipt: Receipt, checks: Checks, *, trust: Trust, receipt_id: str
) -> None:
    """Hold the table against its note, and grow the trees from the leaves."""
    table = held.table
    note = check_note(
        held.read(f"{table}{NOTE_SUFFIX}"),
        held.read(table),
        name=table.removeprefix(parts.RECORDS),
        trust=trust,
    )
    rows = pq.read_table(pa.BufferReader(held.read(table)))
    checks.compare("records are all of them", (note.population, ()), (rows.num_rows, note.filter))
    checks.compare("records are of the receipt", receipt_id, note.receipt_id)
    leaves = _leaves(held)
    summaries = {
        row["partition"]: (row["leaf_count"], row["root"]) for row in held.rows(parts.PARTITIONS)
    }
    checks.compare("roots of the partitions, from the leaves", summaries, dict(roots_of(leaves)))
    keyless = receipt.extraction.without_key
    with_leaves = rows.num_rows - keyless + note.redacted
    checks.compare("records have leaves", with_leaves, leaves.height)
    missing = keys_not_among(rows, leaves, key_fields=receipt.merkle.key_fields)
    if missing is None:
        checks.leave("keys of the records", "its columns do not hold them as they were hashed")
    else:
        checks.compare("keys of the records", 0, missing)


def check_bytes(held: Vouched, receipt: Receipt, checks: Checks) -> None:
    """Hash the bytes of every record, and its key out of them."""
    wrong, total = unlike_their_leaves(held.read(parts.LEAVES), receipt.merkle.key_fields)
    checks.compare("bytes of the records", f"{total} of {total}", f"{total - wrong} of {total}")


def check_findings(held: Vouched, receipt: Receipt, checks: Checks) -> None:
    """Hold the findings against their digest in the receipt."""
    written = held.rows(parts.FINDINGS)
    if any(REDACTED in str(each) for row in written for each in row.values()):
        checks.leave("findings", "they named a record that was erased since")
        return
    checks.compare(
        "findings",
        (receipt.findings.total, receipt.findings.digest),
        (len(written), f"sha256:{digest_of(written).hex()}"),
    )


def _leaves(held: Vouched) -> pl.DataFrame:
    columns = ["key_hash", "leaf_hash", "partition"]
    return pl.DataFrame(pq.read_table(pa.BufferReader(held.read(parts.LEAVES)), columns=columns))
