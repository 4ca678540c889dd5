"""One hand at a time on the sealed generations of a scan."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager

from scan_pipeline.core.errors import WriterConflictError
from scan_pipeline.stages.workspace import Workspace


@contextmanager
def one_at_a_time(scan: str, *, workspace: Workspace) -> Iterator[None]:
    """Keep `maintain` and `erase` of one scan from working at the same time.

    Sweeping removes files that no version names, and a rewrite has such files for a moment. The
    lock is the operating system's, so that a break leaves none behind; it reaches no further than
    this machine's view of the folder of keys: on several machines, let one of them maintain.

    Raises:
        WriterConflictError: another process is at it.
    """
    path = workspace.project.keys / f"{scan}.maintain.lock"
    with path.open("ab") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise WriterConflictError(
                f"{scan}: found another process that maintains or erases; expected none: wait for "
                "it to end"
            ) from error
        yield
