"""Exports that prove themselves alone: a file, its name, and a signed note beside it.

The name carries scan, generation and verdict; rows of what is no proven whole carry the receipt and
its scope; the note holds the file's digest, the filter and how many of how many, signed as a
receipt is, so that a file that was cut, edited or renamed is found out without the lake.
"""

import csv
import hashlib
import io
import secrets
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

import polars as pl
import pyarrow.parquet as pq
from pydantic import AwareDatetime, ValidationError

from scan_pipeline.core.canonical import canonical_json
from scan_pipeline.core.claims import is_whole
from scan_pipeline.core.errors import ContractError, EvidenceError, TamperedError
from scan_pipeline.core.value import adapter, record
from scan_pipeline.core.vocabulary import ConclusionScope, CoverageStatus
from scan_pipeline.stages.publish import HIDDEN
from scan_pipeline.stages.readers.conditions import Condition, all_of, as_json, normalized
from scan_pipeline.stages.readers.exact_texts import exact_text
from scan_pipeline.stages.unlock import LABELS, PartialCollection, VerifiedCollection, amended
from scan_pipeline.stages.workspace import Workspace
from scan_pipeline.store.keys import signing_signer
from scan_pipeline.store.trust import Trust, sign

NOTE_TYPE: Final = "application/vnd.scan-pipeline.export+json"
NOTE_SUFFIX: Final = ".note.json"
PARTIAL: Final = "PARTIAL"
FILTERED: Final = "filtered"

_ROWS_AT_ONCE: Final = 10_000
_METADATA: Final = "scan_pipeline."

ExportForm: TypeAlias = Literal["csv", "parquet"]


@record
class ExportNote:
    """What a file is, signed.

    Attributes:
        file: its name.
        sha256: digest of its bytes, hex.
        rows: rows in it.
        population: rows of the collection it was taken from.
        filter: the conditions that every row meets.
        columns: the record's columns in it.
        scan: the scan.
        scan_generation: its generation.
        receipt_id: the receipt that opened it.
        coverage_status: what that receipt says.
        conclusion_scope: what statements may be about.
        statement: in a sentence.
        exported_at: when, UTC.
        redacted: records that were erased from the collection since its receipt.
    """

    file: str
    sha256: str
    rows: int
    population: int
    filter: tuple[dict[str, Any], ...]
    columns: tuple[str, ...]
    scan: str
    scan_generation: str
    receipt_id: str
    coverage_status: CoverageStatus
    conclusion_scope: ConclusionScope
    statement: str
    exported_at: AwareDatetime
    redacted: int = 0
    version: Literal[1] = 1


def export(
    opened: VerifiedCollection | PartialCollection,
    folder: Path,
    *,
    form: ExportForm,
    where: Sequence[Condition] = (),
    columns: Sequence[str] = (),
    workspace: Workspace,
) -> tuple[Path, ExportNote]:
    """Write an opened collection to a file with a signed note beside it.

    Args:
        opened: the collection, as far as its receipt opens it.
        folder: where the file is written; made if it is not there.
        form: `csv`, where decimals and moments are exact text, or `parquet`.
        where: conditions that every row of it meets.
        columns: the columns of it; all where empty.
        workspace: where the signing key is.

    Returns:
        The file and its note.

    Raises:
        ContractError: a condition or column does not fit, or another file of that name is there.
        ConfigurationError: there is no key to sign the note with.
    """
    now = workspace.clock()
    signer = signing_signer(workspace.project, now=now, create="never")
    partial = isinstance(opened, PartialCollection)
    frame = opened.labelled_frame() if partial else opened.frame()
    plain = frame.drop(HIDDEN, strict=False)
    schema = plain.collect_schema()
    labels = [name for name in schema if partial and name in LABELS]
    shown = [name for name in schema if name not in labels]
    unknown = sorted(set(columns) - set(shown))
    if unknown:
        raise ContractError(f"found the columns {', '.join(unknown)}; expected some of {shown}")
    kept = [name for name in shown if not columns or name in columns]
    asked = normalized(where)
    population = int(plain.select(pl.len()).collect().item())
    rows = plain.filter(all_of(asked, schema)).select([*kept, *labels]).collect()
    receipt = opened.receipt
    name = export_name(
        receipt.scan,
        receipt.scan_generation,
        verdict=verdict_of(receipt.coverage_status, receipt.conclusion_scope),
        filtered=bool(asked),
        form=form,
    )
    facts = {
        "receipt_id": opened.receipt_id,
        "scan_generation": receipt.scan_generation,
        "coverage_status": receipt.coverage_status,
        "conclusion_scope": receipt.conclusion_scope,
        "rows": f"{rows.height} of {population}",
        "filter": canonical_json([as_json(each) for each in asked]).decode(),
    }
    content = _csv(rows) if form == "csv" else _parquet(rows, facts)
    note = ExportNote(
        file=name,
        sha256=hashlib.sha256(content).hexdigest(),
        rows=rows.height,
        population=population,
        filter=tuple(as_json(each) for each in asked),
        columns=tuple(kept),
        scan=receipt.scan,
        scan_generation=receipt.scan_generation,
        receipt_id=opened.receipt_id,
        coverage_status=receipt.coverage_status,
        conclusion_scope=receipt.conclusion_scope,
        statement=_statement(
            rows.height, population, asked, said=amended(receipt.statement, opened.redactions)
        ),
        exported_at=now,
        redacted=len(opened.redactions.keys),
    )
    envelope = sign(
        canonical_json(adapter(ExportNote).dump_python(note, mode="json")),
        signer=signer,
        payload_type=NOTE_TYPE,
    )
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    _write(path, content)
    _write(note_path(path), envelope, replace=True)
    return path, note


def export_name(
    scan: str, generation: str, *, verdict: str, filtered: bool, form: ExportForm
) -> str:
    """Return a file's name, e.g. `customers.20261130T020000Z.PARTIAL.filtered.csv`."""
    parts = (scan, generation, verdict, *((FILTERED,) if filtered else ()), form)
    return ".".join(parts)


def verdict_of(status: CoverageStatus, scope: ConclusionScope) -> str:
    """Return the word a file's name carries: the status of a whole, else `PARTIAL`."""
    return status if is_whole(status, scope) else PARTIAL


def note_path(path: Path) -> Path:
    """Return where the note of a file lies."""
    return path.with_name(path.name + NOTE_SUFFIX)


def check_export(path: Path, *, trust: Trust) -> ExportNote:
    """Hold a file against its note; the lake is not needed.

    Raises:
        EvidenceError: there is no file or no note beside it.
        TamperedError: the note is not by a trusted key, or the file is not the one it is about.
    """
    try:
        envelope = note_path(path).read_bytes()
        content = path.read_bytes()
    except OSError as error:
        raise EvidenceError(
            f"cannot read {error.filename}: {error.strerror}; expected the file and, beside it, "
            f"its note {note_path(path).name}"
        ) from error
    return check_note(envelope, content, name=path.name, trust=trust)


def check_note(envelope: bytes, content: bytes, *, name: str, trust: Trust) -> ExportNote:
    """Hold a file's content against its note.

    Args:
        envelope: the note.
        content: the file's bytes.
        name: its name.
        trust: whom to believe.

    Raises:
        TamperedError: the note is not by a trusted key, or the file is not the one it is about.
    """
    payload = trust.verify(envelope, payload_type=NOTE_TYPE).payload
    try:
        note: ExportNote = adapter(ExportNote).validate_json(payload)
    except ValidationError as error:
        raise TamperedError("note", f"the note of {name} is signed and is none") from error
    if note.file != name:
        raise TamperedError("name", f"the note is about {note.file}; expected {name}")
    digest = hashlib.sha256(content).hexdigest()
    if digest != note.sha256:
        raise TamperedError(
            "file",
            f"{name} has the digest {digest}; expected {note.sha256}: it was cut or edited "
            "after it was exported",
        )
    return note


def _statement(rows: int, population: int, where: Sequence[Condition], *, said: str) -> str:
    asked = f" where {' and '.join(each.words() for each in where)}" if where else ""
    return f"{rows:,} of {population:,} records{asked}. {said}"


def _csv(rows: pl.DataFrame) -> bytes:
    written = io.StringIO()
    writer = csv.writer(written, lineterminator="\n")
    writer.writerow(rows.columns)
    for part in _parts(rows):
        writer.writerows([exact_text(value) for value in row] for row in part.iter_rows())
    return written.getvalue().encode()


def _parquet(rows: pl.DataFrame, facts: dict[str, str]) -> bytes:
    table = rows.to_arrow(compat_level=pl.CompatLevel.oldest())
    told = {f"{_METADATA}{name}": value for name, value in facts.items()}
    written = io.BytesIO()
    pq.write_table(table.replace_schema_metadata(told), written, compression="zstd")
    return written.getvalue()


def _parts(rows: pl.DataFrame) -> Iterator[pl.DataFrame]:
    return rows.iter_slices(_ROWS_AT_ONCE)


def _write(path: Path, content: bytes, *, replace: bool = False) -> None:
    """Write a file whole or not at all; another one under its name is left alone."""
    if not replace and path.exists() and path.read_bytes() != content:
        raise ContractError(
            f"found another file at {path}; expected none, or the same: move it away"
        )
    beside = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        beside.write_bytes(content)
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
