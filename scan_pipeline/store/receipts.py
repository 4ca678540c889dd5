"""Receipts as they lie in the lake: one file a generation, write-once, and a table beside them.

The table's commit decides: two receipts of one generation cannot both be committed. The file is
for readers, who then need no engine; one that is missing is written again from the table.
"""

import re
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from scan_pipeline.core.errors import (
    EvidenceError,
    GateClosedError,
    TamperedError,
    WriterConflictError,
)
from scan_pipeline.core.receipt import Receipt
from scan_pipeline.core.receipt_statement import parse_statement
from scan_pipeline.core.value import record
from scan_pipeline.store.lake import RECEIPT_SUFFIX, Lake, check_generation
from scan_pipeline.store.trust import Trust, Verified

if TYPE_CHECKING:
    import pyarrow as pa

    from scan_pipeline.store.tables import Table

_FILE: Final = re.compile(rf"(\d{{8}}T\d{{6}}Z(?:\.\d+)?){re.escape(RECEIPT_SUFFIX)}", re.ASCII)
"""Names of receipts; whatever else lies in their folder is none."""

_TOLD: Final = ("receipt_id", "coverage_status", "conclusion_scope", "accepted")
"""Columns that repeat what the envelope says, for whoever queries the table."""


@record
class StoredReceipt:
    """A receipt that was read and whose signature holds.

    Attributes:
        receipt: the account itself.
        receipt_id: `sha256:<hex>` of the signed payload.
        key_id: the trusted key that signed it.
    """

    receipt: Receipt
    receipt_id: str
    key_id: str


@record
class Untrusted:
    """A file in the place of a receipt that is none of its generation, and why."""

    generation: str
    reason: str


class ReceiptStore:
    """The receipts of one scan.

    Args:
        lake: where they lie.
        scan: name of the scan.
    """

    def __init__(self, lake: Lake, scan: str) -> None:
        self._lake, self._scan = lake, scan

    def has(self, generation: str) -> bool:
        """Say whether a generation has its receipt; a file that was never committed is none.

        Raises:
            ContractError: no generation has such a name.
        """
        return self._committed(check_generation(generation)) is not None

    def generations(self) -> list[str]:
        """Return the generations under whose name a receipt is filed, oldest first.

        Whoever can write to the folder can put a file there: `look` says which are receipts.
        """
        folder = self._lake.receipt_path(self._scan, "20000101T000000Z").rsplit("/", 1)[0]
        found = (_FILE.fullmatch(name) for name in self._lake.list_names(folder))
        return sorted((match[1] for match in found if match), key=generation_order)

    def committed_generations(self) -> list[str]:
        """Return the generations whose receipt was committed, oldest first."""
        if not self._has_table():
            return []
        return sorted(self.table().generations(), key=generation_order)

    def unfiled(self) -> list[str]:
        """Return the generations whose committed receipt a break left without its file."""
        filed = set(self.generations())
        return [each for each in self.committed_generations() if each not in filed]

    def look(self, generation: str, *, trust: Trust) -> StoredReceipt | Untrusted:
        """Return the receipt that is filed for a generation, or why what lies there is none."""
        try:
            return self.read(generation, trust=trust)
        except (EvidenceError, GateClosedError) as error:
            return Untrusted(generation=generation, reason=str(error))

    def look_committed(self, generation: str, *, trust: Trust) -> StoredReceipt | None:
        """Return the receipt that was committed for a generation, if its signature holds."""
        for envelope in self.committed(generation):
            with suppress(EvidenceError):
                return self._verified(generation, envelope, trust=trust)
        return None

    def read(self, generation: str, *, trust: Trust) -> StoredReceipt:
        """Read one receipt and check its signature.

        Raises:
            GateClosedError: the generation has none.
            TamperedError: the file is not what was signed, or is of another generation.
        """
        if not self._lake.exists(self._lake.receipt_path(self._scan, generation)):
            raise GateClosedError(
                scan=self._scan, generation=generation, reason="no receipt; expected one"
            )
        return self._verified(generation, self.envelope(generation), trust=trust)

    def _verified(self, generation: str, envelope: bytes, *, trust: Trust) -> StoredReceipt:
        verified: Verified = trust.verify(envelope)
        receipt = parse_statement(verified.payload)
        if (receipt.scan, receipt.scan_generation) != (self._scan, generation):
            raise TamperedError(
                "receipt",
                f"the receipt filed under {self._scan}/{generation} is of "
                f"{receipt.scan}/{receipt.scan_generation}; expected its own",
            )
        return StoredReceipt(
            receipt=receipt, receipt_id=verified.receipt_id, key_id=verified.key_id
        )

    def envelope(self, generation: str) -> bytes:
        """Return the signed envelope's bytes as they lie in the lake."""
        return self._lake.read_bytes(self._lake.receipt_path(self._scan, generation))

    def repair(self, generation: str) -> None:
        """Write the file of a committed receipt that a break left without one."""
        if self._lake.exists(self._lake.receipt_path(self._scan, generation)):
            return
        envelope = self._committed(generation)
        if envelope is not None:
            self._file(generation, envelope)

    def write(self, receipt: Receipt, *, envelope: bytes, receipt_id: str, at: datetime) -> None:
        """Commit a receipt, once.

        Raises:
            WriterConflictError: the generation has a receipt already.
        """
        import pyarrow as pa  # noqa: PLC0415  # reading a receipt must not pay for it

        generation = receipt.scan_generation
        if self.has(generation):
            raise WriterConflictError(
                f"{self._scan} {generation} has a receipt already; expected none. It stands: read "
                "it, or begin a new generation"
            )
        told = _told(receipt, envelope=envelope, receipt_id=receipt_id)
        row = {"scan_generation": generation, "completed_at": at, **told}
        rows = pa.Table.from_pylist([row], schema=_schema())
        self.table().append(
            rows, generation=generation, app_id=f"{self._scan}/{generation}/receipt", version=1
        )
        self._file(generation, envelope)

    def replace(self, receipt: Receipt, *, envelope: bytes, receipt_id: str) -> None:
        """Put a redacted copy in the place of a receipt that named an erased record.

        The one case in which a receipt is written again; table first, as when it is written. Doing
        it again after a break completes it.
        """
        import pyarrow as pa  # noqa: PLC0415

        generation = receipt.scan_generation
        told = _told(receipt, envelope=envelope, receipt_id=receipt_id)

        def redacted(batch: pa.RecordBatch) -> pa.RecordBatch:
            rows = [{**row, **told} for row in batch.to_pylist()]
            return pa.RecordBatch.from_pylist(rows, schema=batch.schema)

        self.table().rewrite(redacted, generation=generation)
        self._lake.replace(self._lake.receipt_path(self._scan, generation), envelope)

    def committed(self, generation: str) -> list[bytes]:
        """Return the envelopes the table holds for a generation; more than one opens nothing."""
        return [row["envelope"].encode() for row in self.rows(generation)]

    def rows(self, generation: str) -> list[dict[str, Any]]:
        """Return what the table says of a generation, moment and partition left out."""
        if not self._has_table():
            return []
        columns = (*_TOLD, "envelope")
        return self.table().read(generation, columns=columns).to_pylist()

    def expected_row(self, stored: StoredReceipt) -> dict[str, Any]:
        """Return what the table should say of a receipt that was read from its file."""
        receipt = stored.receipt
        envelope = self.envelope(receipt.scan_generation)
        return _told(receipt, envelope=envelope, receipt_id=stored.receipt_id)

    def confirm(self, stored: StoredReceipt) -> None:
        """Hold a receipt that was read from its file against the table, which decides.

        Raises:
            TamperedError: the table has none of this generation, several, or another one.
        """
        generation = stored.receipt.scan_generation
        if self._committed(generation) != self.envelope(generation):
            raise TamperedError(
                "receipt",
                f"the receipt filed for {self._scan} {generation} is not the one that was "
                "committed; expected the same. It opens nothing: restore the file or the table",
            )

    def _committed(self, generation: str) -> bytes | None:
        envelopes = self.committed(generation)
        if len(envelopes) > 1:
            raise TamperedError(
                "receipt",
                f"{self._scan} {generation} has {len(envelopes)} receipts; expected one. None of "
                "them opens anything",
            )
        return envelopes[0] if envelopes else None

    def _file(self, generation: str, envelope: bytes) -> None:
        try:
            self._lake.write_once(self._lake.receipt_path(self._scan, generation), envelope)
        except WriterConflictError:
            # Whoever saw the committed receipt without its file may have written it meanwhile.
            if self.envelope(generation) != envelope:
                raise

    def _has_table(self) -> bool:
        # Looked at without the engine: readers of one receipt must not pay for it.
        uri = self._lake.table_uri("receipts", self._scan, "receipts")
        return self._lake.exists(f"{uri}/_delta_log")

    def table(self) -> "Table":
        """Return the table that decides; opening it needs the engine."""
        from scan_pipeline.store.tables import open_table  # noqa: PLC0415

        return open_table(self._lake, "receipts", self._scan, "receipts", _schema())


def _told(receipt: Receipt, *, envelope: bytes, receipt_id: str) -> dict[str, Any]:
    plain = {name: getattr(receipt, name) for name in _TOLD[1:]}
    return {"receipt_id": receipt_id, **plain, "envelope": envelope.decode()}


def generation_order(generation: str) -> tuple[str, int]:
    """Sort generations by time, then by attempt."""
    first, _, number = generation.partition(".")
    return first, int(number or 1)


def _schema() -> "pa.Schema":
    import pyarrow as pa  # noqa: PLC0415

    return pa.schema(
        [
            pa.field("scan_generation", pa.string(), nullable=False),
            pa.field("receipt_id", pa.string(), nullable=False),
            pa.field("coverage_status", pa.string(), nullable=False),
            pa.field("conclusion_scope", pa.string(), nullable=False),
            pa.field("accepted", pa.bool_(), nullable=False),
            pa.field("completed_at", pa.timestamp("us", "UTC"), nullable=False),
            pa.field("envelope", pa.string(), nullable=False),
        ]
    )
