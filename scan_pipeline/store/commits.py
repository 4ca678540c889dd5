"""How files become part of a Delta table: one commit, or nothing and no file left.

Delta (deltalake 1.6.6, found 2026-11) refuses a commit also for what does not concern it, such as
the removal of another generation's files, and lets one pass that it should refuse: of two writers
who replace a generation without files, both succeed, and an overwrite does not see a row that was
appended meanwhile. So every commit carries a transaction, which is refused if another writer
committed under the same name; an overwrite is committed right behind the version it looked at or
not at all, since the library would rebase it on rows it never saw, whoever wrote them; and what
the write rests on, its guard, decides whether a refused one may be tried again.
"""

from collections.abc import Callable, Mapping
from typing import Literal

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Transaction
from deltalake.exceptions import CommitFailedError, DeltaError
from deltalake.transaction import AddAction, RemoveAction

from scan_pipeline.core.column_names import GENERATION
from scan_pipeline.core.errors import RetryError, WriterConflictError
from scan_pipeline.core.value import record
from scan_pipeline.store.data_files import Folder
from scan_pipeline.store.file_writer import NewFile
from scan_pipeline.store.table_schema import stored_schema

ATTEMPTS = 40


@record
class Write:
    """Files to commit, and how.

    Attributes:
        files: the files, already written.
        mode: whether they are added, or stand in the place of what is there.
        generation: whose rows they are and, in an overwrite, whose they replace.
        whole: in an overwrite, whether all generations are replaced.
        transaction: application and its version; None for the generation's own `rows/<generation>`.
        schema: what the table's schema becomes, given what it is.
        begun: what the guard said when the write began.
        guard: what must still be the same when a refused commit is tried again.
        metadata: told in the commit.
        attempts: how often a commit is tried, each after the first on a fresh handle.
    """

    files: tuple[NewFile, ...]
    mode: Literal["append", "overwrite"]
    generation: str
    schema: Callable[[pa.Schema], pa.Schema]
    begun: object
    guard: Callable[[DeltaTable], object]
    whole: bool = False
    transaction: tuple[str, int] | None = None
    metadata: Mapping[str, str] | None = None
    attempts: int = ATTEMPTS


def commit(
    write: Write, *, folder: Folder, at: DeltaTable, reopen: Callable[[], DeltaTable]
) -> None:
    """Commit files to a table; on a refusal they are removed again.

    Args:
        write: what and how.
        folder: where the files lie.
        at: the handle whose moment the write began at.
        reopen: gives a fresh handle.

    Raises:
        WriterConflictError: another writer changed what the write rests on.
        RetryError: the lake did not take the commit. Files stay then, since it may yet have.
    """
    handle = at
    for attempt in range(write.attempts):
        if attempt:
            handle = reopen()
            if write.guard(handle) != write.begun:
                break
        try:
            _commit_once(write, handle)
        except (DeltaError, OSError) as error:
            # A commit may be made although its answer was lost, or the checkpoint after it failed.
            if _landed(write, reopen()):
                return
            if not isinstance(error, CommitFailedError):
                raise RetryError(
                    f"{folder.name} {write.generation}: the lake did not take the commit: {error}"
                ) from error
        else:
            return
    folder.discard(file.path for file in write.files)
    raise WriterConflictError(
        f"{folder.name} {write.generation}: another writer committed first; nothing of this write "
        "is left. Look at what is there before writing again"
    )


def _commit_once(write: Write, handle: DeltaTable) -> None:
    app_id, version = write.transaction or (
        f"rows/{'all' if write.whole else write.generation}",
        handle.version() + 1,
    )
    partial = write.mode == "overwrite" and not write.whole
    handle.create_write_transaction(
        _add_actions(write),
        mode=write.mode,
        schema=write.schema(stored_schema(handle)),
        partition_by=[GENERATION],
        partition_filters=[(GENERATION, "=", write.generation)] if partial else None,
        commit_properties=CommitProperties(
            custom_metadata=dict(write.metadata) if write.metadata else None,
            app_transactions=[Transaction(app_id, version)],
            max_commit_retries=0 if write.mode == "overwrite" else None,  # None: the library's own
        ),
    )


def _add_actions(write: Write) -> list[AddAction | RemoveAction]:
    return [
        AddAction(
            path=file.path,
            size=file.size,
            partition_values={GENERATION: write.generation},
            modification_time=file.modified_ms,
            data_change=True,
            stats=file.stats,
        )
        for file in write.files
    ]


def _landed(write: Write, handle: DeltaTable) -> bool:
    paths = set(pa.table(handle.get_add_actions()).column("path").to_pylist())
    return bool(write.files) and all(file.path in paths for file in write.files)
