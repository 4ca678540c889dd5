"""Events become durable in a thread of their own, so that fetching never waits for a commit."""

import queue
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from scan_pipeline.core.operation import Operation
from scan_pipeline.store.admission import Admission, Committed
from scan_pipeline.store.events import Event, to_batch
from scan_pipeline.store.sealing import Sealer

GROUP_BYTES: Final = 32 * 2**20
"""Body bytes of one commit, at most, before compression."""

QUEUED_BYTES: Final = 2 * GROUP_BYTES
"""Body bytes that wait for their commit, about at most; then `put` waits too."""

QUEUED_EVENTS: Final = 256
"""Events that wait, at most."""

_POLL_S: Final = 0.2
"""How often whoever waits looks whether the thread has failed, in seconds."""


class Recorder:
    """Groups events and commits each group behind the fence, in order.

    `put` hands over an event and returns at once unless the writer is far behind; the error of a
    failed commit is raised by the next call, and nothing after it is written.

    Attributes:
        last: the last event that this recorder committed, None before the first.

    Args:
        admission: the fence of this walk.
        scan: name of the scan.
        generation: generation that is written.
        shard: shard of the walk.
        sealer: seals bodies and tokens.
        operation: bounds of a group.
        committed: what this writer believes was committed last.
        sealed: says whether a receipt exists already.
    """

    def __init__(
        self,
        admission: Admission,
        *,
        scan: str,
        generation: str,
        shard: int,
        sealer: Sealer,
        operation: Operation,
        committed: Committed | None,
        sealed: Callable[[], bool],
    ) -> None:
        self._admission, self._operation, self._sealer = admission, operation, sealer
        self._scan, self._generation, self._shard = scan, generation, shard
        self._committed, self._sealed = committed, sealed
        self.last: Event | None = None
        self._queue: queue.Queue[Event | threading.Event | None] = queue.Queue(QUEUED_EVENTS)
        self._room, self._waiting_bytes = threading.Condition(), 0
        self._failed: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name=f"record {scan}", daemon=True)
        self._thread.start()

    def put(self, event: Event) -> None:
        """Hand over one event.

        Raises:
            WriterConflictError: an earlier commit met another writer.
        """
        with self._room:
            while self._waiting_bytes >= QUEUED_BYTES:
                self._raise()
                self._room.wait(_POLL_S)
            self._waiting_bytes += event.body_bytes or 0
        self._enqueue(event)

    def flush(self) -> None:
        """Return when everything handed over is durable; raises as `put`."""
        done = threading.Event()
        self._enqueue(done)
        while not done.wait(_POLL_S):
            self._raise()
        self._raise()

    def finish(self) -> None:
        """Commit what is left and end the thread; raises as `put`."""
        if self._thread.is_alive():
            self._enqueue(None)
            self._thread.join()
        self._raise()

    def drop(self) -> None:
        """End the thread without caring for what was not committed yet."""
        self._failed = self._failed or RuntimeError("dropped")
        with suppress(queue.Full):
            self._queue.put_nowait(_NOTHING)  # wakes it
        self._thread.join(timeout=30)

    def _enqueue(self, item: Event | threading.Event | None) -> None:
        while True:
            self._raise()
            try:
                self._queue.put(item, timeout=_POLL_S)
            except queue.Full:
                continue
            return

    def _raise(self) -> None:
        if self._failed is not None:
            raise self._failed

    def _run(self) -> None:
        try:
            self._record()
        except BaseException as error:  # noqa: BLE001  # told to the walk, which raises it
            self._failed = error

    def _record(self) -> None:
        """Take events as they come and commit them in groups, until told to end or dropped."""
        group: list[Event] = []
        size, since = 0, time.monotonic()
        while self._failed is None:
            wait = max(0.0, since + self._operation.commit_seconds - time.monotonic())
            try:
                item = self._queue.get(timeout=wait if group else _POLL_S)
            except queue.Empty:
                item = threading.Event() if group else _NOTHING
            if isinstance(item, Event):
                since = since if group else time.monotonic()
                group.append(item)
                size += item.body_bytes or 0
                if len(group) < self._operation.commit_pages and size < GROUP_BYTES:
                    continue
            elif item is _NOTHING:
                continue
            if group:
                self._commit(group)
                with self._room:
                    self._waiting_bytes -= size
                    self._room.notify()
            group, size = [], 0
            if isinstance(item, threading.Event):
                item.set()
            if item is None:
                return

    def _commit(self, group: list[Event]) -> None:
        rows = to_batch(
            group,
            scan=self._scan,
            generation=self._generation,
            shard=self._shard,
            sealer=self._sealer,
        )
        self._committed = self._admission.commit(
            rows, expected=self._committed, sealed=self._sealed
        )
        self.last = group[-1]


_NOTHING: Final = threading.Event()
