"""Events are committed in groups, in order; what fails is told, and nobody waits for ever."""

import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from scan_pipeline.core.errors import RetryError, WriterConflictError
from scan_pipeline.core.operation import Operation
from scan_pipeline.core.page import End, Next, Page, Position, Reported
from scan_pipeline.stages.walking import recorder as module
from scan_pipeline.stages.walking.recorder import Recorder
from scan_pipeline.store.admission import Admission, Committed
from scan_pipeline.store.events import Event, EventLog
from scan_pipeline.store.generations import GenerationStore
from scan_pipeline.store.keys import DataKey
from scan_pipeline.store.lake import Lake
from scan_pipeline.store.sealing import Sealer

GENERATION = "20261130T020000Z"
AT = datetime(2026, 11, 30, 2, tzinfo=UTC)
NEVER_S = 3_600.0


@pytest.fixture
def store(tmp_path) -> GenerationStore:
    key = DataKey(key_id="0" * 16, key=bytes(32))
    return GenerationStore(
        Lake(root=str(tmp_path)),
        scan="customers",
        generation=GENERATION,
        new_sealer=lambda: Sealer(key),
    )


@pytest.fixture
def record(store: GenerationStore) -> Iterator[Callable[..., Recorder]]:
    """Makes recorders over one generation; they are dropped in the end."""
    made: list[Recorder] = []

    def make(admission: Admission | None = None, **operation: Any) -> Recorder:
        recorder = Recorder(
            admission or store.admission(shard=0),
            scan=store.scan,
            generation=store.generation,
            shard=0,
            sealer=store.sealer(),
            operation=Operation(**{"commit_pages": 64, "commit_seconds": NEVER_S, **operation}),
            committed=None,
            sealed=store.is_sealed,
        )
        made.append(recorder)
        return recorder

    yield make
    for each in made:
        each.drop()


def walk(pages: int, *, body: bytes = b"{}") -> list[Event]:
    """Return the events of a walk, its close included."""
    log = EventLog()
    events = [log.open({"before": {}}, at=AT)]
    for number in range(1, pages + 1):
        token = None if number == 1 else f"t{number}"
        page = Page(
            position=Position(token=token),
            fingerprint=bytes(32),
            continuation=End(signal="null") if number == pages else Next(token=f"t{number + 1}"),
            body=body,
            records=0,
            leaf_hashes=(),
            reported=Reported(),
            attempts=1,
            requested_at=AT,
            received_at=AT,
        )
        events.append(log.page(page, items=bytes(32)))
    return [*events, log.close({"traversal": "finished"}, at=AT)]


def groups(store: GenerationStore) -> list[int]:
    """Return the number of events in each commit, in order."""
    table = store.pages()
    handle = table.open()
    files = table.files(GENERATION, at=handle)
    return [file.rows or 0 for file in files]


def until(held: Callable[[], bool]) -> None:
    """Wait for another thread's work; the time limit of the tests bounds it."""
    while not held():
        time.sleep(0.005)


class Faulty(Admission):
    """Fails at the n-th commit, or waits there until it is let go on."""

    def __init__(self, store: GenerationStore, *, fail_at: int, error: BaseException) -> None:
        super().__init__(store.pages(), scan=store.scan, generation=GENERATION, shard=0)
        self._fail_at, self._error, self.commits = fail_at, error, 0

    def commit(self, rows: Any, *, expected: Committed | None, sealed: Any) -> Committed:
        self.commits += 1
        if self.commits >= self._fail_at:
            raise self._error
        return super().commit(rows, expected=expected, sealed=sealed)


class Slow(Admission):
    """Commits nothing before it is told to."""

    def __init__(self, store: GenerationStore) -> None:
        super().__init__(store.pages(), scan=store.scan, generation=GENERATION, shard=0)
        self.go_on = threading.Event()

    def commit(self, rows: Any, *, expected: Committed | None, sealed: Any) -> Committed:
        self.go_on.wait()
        return super().commit(rows, expected=expected, sealed=sealed)


def test_groups_end_at_so_many_pages(store: GenerationStore, record) -> None:
    recorder = record(commit_pages=3)

    for event in walk(6):
        recorder.put(event)
    recorder.finish()

    assert groups(store) == [3, 3, 2]
    assert [event.seq for event in store.events()] == list(range(8))


def test_groups_end_at_so_many_bytes(
    store: GenerationStore, record, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "GROUP_BYTES", 250)
    recorder = record()

    for event in walk(6, body=b"x" * 100):
        recorder.put(event)
    recorder.finish()

    assert groups(store) == [4, 3, 1]


def test_a_group_is_committed_when_it_is_old_enough(store: GenerationStore, record) -> None:
    """A slow source: nothing further comes, and what came is durable all the same."""
    recorder = record(commit_seconds=0.05)
    events = walk(2)

    recorder.put(events[0])
    recorder.put(events[1])
    until(lambda: recorder.last == events[1])

    assert len(store.events()) == 2


def test_flush_returns_when_all_is_durable(store: GenerationStore, record) -> None:
    recorder = record()
    for event in walk(4)[:3]:
        recorder.put(event)

    recorder.flush()

    assert [event.seq for event in store.events()] == [0, 1, 2]
    assert recorder.last is not None
    assert recorder.last.seq == 2


def test_finish_commits_what_is_left_and_may_be_repeated(store: GenerationStore, record) -> None:
    recorder = record()
    for event in walk(2):
        recorder.put(event)

    recorder.finish()
    recorder.finish()

    assert [event.event for event in store.events()] == ["open", "page", "page", "close"]


def test_drop_leaves_out_what_was_not_committed(store: GenerationStore, record) -> None:
    recorder = record()
    events = walk(4)
    recorder.put(events[0])
    recorder.flush()
    for event in events[1:]:
        recorder.put(event)

    recorder.drop()

    assert [event.event for event in store.events()] == ["open"]


@pytest.mark.parametrize(
    "error", [WriterConflictError("another writer"), RetryError("no answer"), KeyError("a bug")]
)
@pytest.mark.parametrize("call", ["put", "flush", "finish"])
def test_the_error_of_a_commit_is_raised_by_whatever_comes_next(
    store: GenerationStore, record, error: BaseException, call: str
) -> None:
    recorder = record(Faulty(store, fail_at=2, error=error), commit_pages=2)
    events = walk(1_000)

    def hand_over() -> None:
        for event in events if call == "put" else events[:4]:
            recorder.put(event)
        getattr(recorder, call)(*events[-1:] if call == "put" else ())

    with pytest.raises(type(error)):
        hand_over()

    assert len(store.events()) == 2
    with pytest.raises(type(error)):
        recorder.put(events[-1])


def test_an_event_that_cannot_be_sealed_is_an_error_and_no_silence(
    store: GenerationStore, record
) -> None:
    """Whatever ends the thread: who waits for it hears of it."""
    recorder = record()
    opened, page, *_ = walk(2)
    recorder.put(opened)
    recorder.put(Event(**{**page.__dict__, "body": "no bytes"}))

    with pytest.raises((TypeError, AttributeError)):
        recorder.flush()


@pytest.mark.parametrize("bound", ["QUEUED_EVENTS", "QUEUED_BYTES"])
def test_put_waits_when_the_writer_is_far_behind(
    store: GenerationStore, record, monkeypatch: pytest.MonkeyPatch, bound: str
) -> None:
    monkeypatch.setattr(module, bound, 4 if bound == "QUEUED_EVENTS" else 400)
    slow = Slow(store)
    recorder, events, put = record(slow, commit_pages=1), walk(20, body=b"x" * 100), []

    def put_all() -> None:
        for event in events:
            recorder.put(event)
            put.append(event.seq)

    walker = threading.Thread(target=put_all)
    walker.start()
    until(lambda: len(put) >= 4)
    held = len(put)
    slow.go_on.set()
    walker.join()
    recorder.finish()

    assert held < len(events)
    assert [event.seq for event in store.events()] == list(range(len(events)))


@pytest.mark.parametrize("bound", ["QUEUED_EVENTS", "QUEUED_BYTES"])
def test_put_into_a_full_queue_hears_of_a_failure(
    store: GenerationStore, record, monkeypatch: pytest.MonkeyPatch, bound: str
) -> None:
    """The writer fails while the walk waits for room."""
    monkeypatch.setattr(module, bound, 4 if bound == "QUEUED_EVENTS" else 400)

    class Failing(Slow):
        def commit(self, *_: Any, **__: Any) -> Committed:
            self.go_on.wait()
            raise WriterConflictError("another writer")

    failing = Failing(store)
    recorder, told = record(failing, commit_pages=1), []

    def put_all() -> None:
        try:
            for event in walk(20, body=b"x" * 100):
                recorder.put(event)
        except WriterConflictError as error:
            told.append(error)

    walker = threading.Thread(target=put_all)
    walker.start()
    time.sleep(0.05)
    failing.go_on.set()
    walker.join()

    assert len(told) == 1


def test_bodies_and_tokens_are_sealed(store: GenerationStore, record, tmp_path) -> None:
    recorder = record()
    for event in walk(2, body=b'{"name": "Ada Lovelace"}'):
        recorder.put(event)
    recorder.finish()

    written = b"".join(file.read_bytes() for file in tmp_path.glob("**/*.parquet"))

    assert written
    assert b"Ada Lovelace" not in written
    assert [body for _, body in store.bodies()] == [b'{"name": "Ada Lovelace"}'] * 2
