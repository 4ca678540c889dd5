"""The fence: of two writers of one generation only one goes on, whatever the order of events."""

import itertools
import multiprocessing
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

from scan_pipeline.core.errors import ContractError, TamperedError, WriterConflictError
from scan_pipeline.store.admission import Admission, Committed, EventColumns
from scan_pipeline.store.data_files import Layout
from scan_pipeline.store.lake import Lake
from scan_pipeline.store.tables import Table, open_table

GENERATION, OTHER = "20261130T020000Z", "20261201T020000Z"

SCHEMA = pa.schema(
    [
        pa.field("scan_generation", pa.string(), nullable=False),
        pa.field("shard", pa.int32(), nullable=False),
        pa.field("seq", pa.int64(), nullable=False),
        pa.field("event", pa.string(), nullable=False),
        pa.field("cursor_out_digest", pa.binary(), nullable=False),
        pa.field("chain", pa.binary(), nullable=False),
        pa.field("walker", pa.string(), nullable=False),
    ]
)


@pytest.fixture
def table(tmp_path: Path) -> Table:
    return pages(str(tmp_path))


def pages(root: str) -> Table:
    layout = Layout(opaque=("cursor_out_digest", "chain"))
    return open_table(Lake(root=root), "evidence", "customers", "pages", SCHEMA, layout=layout)


def fence(table: Table, *, generation: str = GENERATION, shard: int = 0) -> Admission:
    return Admission(table, scan="customers", generation=generation, shard=shard)


def never() -> bool:
    return False


class Walker:
    """Walks on answers of its own: another walker's cursors and chain differ from its."""

    def __init__(
        self, table: Table, name: str, *, generation: str = GENERATION, shard: int = 0
    ) -> None:
        self.name, self.generation, self.shard = name, generation, shard
        self.admission = fence(table, generation=generation, shard=shard)
        self.committed: Committed | None = None

    def group(self, events: int, *, last: str = "page") -> pa.RecordBatch:
        """Return the events that follow what this walker committed."""
        first = 0 if self.committed is None else self.committed.seq + 1
        chain = b"" if self.committed is None else self.committed.chain
        rows = []
        for seq in range(first, first + events):
            cursor = sha256(f"{self.name} {seq}".encode()).digest()
            chain = sha256(chain + cursor).digest()
            rows.append(
                {
                    "scan_generation": self.generation,
                    "shard": self.shard,
                    "seq": seq,
                    "event": "open" if seq == 0 else "page",
                    "cursor_out_digest": cursor,
                    "chain": chain,
                    "walker": self.name,
                }
            )
        rows[-1]["event"] = last if rows[-1]["seq"] else "open"
        return pa.RecordBatch.from_pylist(rows, schema=SCHEMA)

    def commit(
        self, events: int = 2, *, last: str = "page", sealed: Callable[[], bool] = never
    ) -> Committed:
        rows = self.group(events, last=last)
        self.committed = self.admission.commit(rows, expected=self.committed, sealed=sealed)
        return self.committed


def story(table: Table, *, shard: int = 0, generation: str = GENERATION) -> list[tuple[int, str]]:
    """Tell which walker's event stands at each number of a shard."""
    rows = table.read(generation).to_pylist()
    return [(row["seq"], row["walker"]) for row in rows if row["shard"] == shard]


def orphans(table: Table) -> set[str]:
    disk = {str(path.relative_to(table.uri)) for path in Path(table.uri).glob("*/*.parquet")}
    stated = {file.path for name in table.generations() for file in table.files(name)}
    return {path for path in disk if path.startswith("scan_generation")} - stated


def test_a_walk_goes_on_from_what_it_committed(table: Table) -> None:
    walker = Walker(table, "a")
    assert walker.admission.last() is None

    for events in (1, 3, 2):
        committed = walker.commit(events)
        assert fence(table).last() == committed

    assert story(table) == [(seq, "a") for seq in range(6)]
    assert table.transaction_version(f"customers/{GENERATION}/0") == 5


def test_a_walk_is_taken_up_again_by_who_reads_what_came_last(table: Table) -> None:
    Walker(table, "a").commit(3)
    resumed = Walker(table, "a")
    resumed.committed = resumed.admission.last()

    resumed.commit(2)

    assert story(table) == [(seq, "a") for seq in range(5)]


def test_the_same_commit_again_doubles_no_row(table: Table) -> None:
    walker = Walker(table, "a")
    walker.commit(2)
    believed, rows = walker.committed, walker.group(2)
    walker.admission.commit(rows, expected=believed, sealed=never)

    with pytest.raises(WriterConflictError, match=r"found page event 3 .*; expected page event 1"):
        walker.admission.commit(rows, expected=believed, sealed=never)
    assert story(table) == [(seq, "a") for seq in range(4)]


@pytest.mark.parametrize("order", sorted(set(itertools.permutations("aaabbb"))), ids="".join)
def test_in_every_order_of_commits_only_one_walker_continues(
    table: Table, order: tuple[str, ...]
) -> None:
    """Pages 1 and 2 of one walker are never followed by 3 and 4 of the other."""
    walkers = {name: Walker(table, name) for name in "ab"}
    refused: set[str] = set()
    for name in order:
        if name in refused:
            continue
        try:
            walkers[name].commit(2)
        except WriterConflictError:
            refused.add(name)

    winner = order[0]
    assert refused == set("ab") - {winner}
    assert story(table) == [(seq, winner) for seq in range(6)]
    assert orphans(table) == set()


def test_a_walker_that_takes_its_refused_pages_for_committed_does_not_go_on(table: Table) -> None:
    """The sequence number alone would let it: its next page has the number that comes next."""
    one, other = Walker(table, "a"), Walker(table, "b")
    lost = other.group(2).to_pylist()[-1]
    one.commit(2)
    with pytest.raises(WriterConflictError):
        other.commit(2)
    other.committed = Committed(
        seq=1, event="page", cursor_out_digest=lost["cursor_out_digest"], chain=lost["chain"]
    )

    with pytest.raises(WriterConflictError, match="expected page event 1 with chain"):
        other.commit(2)
    assert story(table) == [(0, "a"), (1, "a")]


@pytest.mark.parametrize("before", [0, 1], ids=["first", "later"])
def test_a_commit_between_another_writers_look_and_its_write_refuses_it(
    table: Table, before: int
) -> None:
    """The transaction catches what the look at the last row cannot."""
    slow, quick = Walker(table, "a"), Walker(table, "a")
    if before:
        quick.committed = slow.commit(2)
    quick.name = "b"

    def overtaken() -> bool:
        if quick.committed == slow.committed:
            quick.commit(2)
        return False

    with pytest.raises(WriterConflictError, match="Another writer holds this generation"):
        slow.commit(2, sealed=overtaken)

    names = ["a"] * 2 * before + ["b"] * 2
    assert story(table) == list(enumerate(names))
    assert orphans(table) == set()


def test_another_generations_removal_does_not_refuse_a_commit(table: Table) -> None:
    """Delta refuses it, for files this walk never read; the second look finds nothing changed."""
    old = Walker(table, "old", generation=OTHER)
    old.commit(2)
    old.commit(2)
    walker = Walker(table, "a")
    walker.commit(2)

    def compacting() -> bool:
        table.compact(OTHER)
        return False

    walker.commit(2, sealed=compacting)

    assert story(table) == [(seq, "a") for seq in range(4)]
    assert story(table, generation=OTHER) == [(seq, "old") for seq in range(4)]


def test_threads_with_different_cursors_leave_the_walk_of_one(table: Table) -> None:
    start = threading.Barrier(3)

    def walk(name: str) -> bool:
        walker = Walker(table, name)
        start.wait()
        try:
            for _ in range(4):
                walker.commit(2)
        except WriterConflictError:
            return False
        return True

    with ThreadPoolExecutor(3) as pool:
        finished = dict(zip("abc", pool.map(walk, "abc"), strict=True))

    (winner,) = [name for name, whole in finished.items() if whole]
    assert story(table) == [(seq, winner) for seq in range(8)]
    assert orphans(table) == set()


def walk_in_a_process(root: str, name: str) -> bool:
    walker = Walker(pages(root), name)
    try:
        for _ in range(4):
            walker.commit(2)
    except WriterConflictError:
        return False
    return True


def test_processes_with_different_cursors_leave_the_walk_of_one(tmp_path: Path) -> None:
    work = [(str(tmp_path), name) for name in "ab"]
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        finished = pool.starmap(walk_in_a_process, work, chunksize=1)

    winner = "ab"[finished.index(True)]
    assert sorted(finished) == [False, True]
    assert story(pages(str(tmp_path))) == [(seq, winner) for seq in range(8)]


def test_shards_and_generations_are_walked_side_by_side(table: Table) -> None:
    walkers = [Walker(table, f"w{shard}", shard=shard) for shard in range(3)]
    walkers.append(Walker(table, "other", generation=OTHER))
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda walker: [walker.commit(2) for _ in range(4)], walkers))

    for shard in range(3):
        assert story(table, shard=shard) == [(seq, f"w{shard}") for seq in range(8)]
        assert fence(table, shard=shard).last() == walkers[shard].committed
    assert story(table, generation=OTHER) == [(seq, "other") for seq in range(8)]


def test_the_last_event_of_each_shard_is_found_after_compaction(table: Table) -> None:
    walkers = [Walker(table, f"w{shard}", shard=shard) for shard in (0, 1)]
    for walker, commits in zip(walkers, (5, 2), strict=True):
        for _ in range(commits):
            walker.commit(2)
    table.compact(GENERATION)

    assert [fence(table, shard=shard).last() for shard in (0, 1)] == [
        walker.committed for walker in walkers
    ]
    walkers[1].commit(2)
    assert story(table, shard=1) == [(seq, "w1") for seq in range(6)]


def test_the_last_event_is_found_over_checkpoints(table: Table) -> None:
    walker = Walker(table, "a")
    for _ in range(60):
        walker.commit(1)

    assert list(Path(table.uri, "_delta_log").glob("*.checkpoint.parquet"))
    assert fence(table).last() == walker.committed


def test_nothing_follows_a_close_event(table: Table) -> None:
    walker = Walker(table, "a")
    walker.commit(3, last="close")

    with pytest.raises(WriterConflictError, match="expected a walk that is still open"):
        walker.commit(1)
    assert len(story(table)) == 3


def test_nothing_is_written_to_a_sealed_generation(table: Table) -> None:
    walker = Walker(table, "a")
    walker.commit(3)

    with pytest.raises(WriterConflictError, match="found a receipt"):
        walker.commit(1, sealed=lambda: True)
    assert len(story(table)) == 3


def test_a_writer_who_believes_in_another_cursor_is_refused(table: Table) -> None:
    walker = Walker(table, "a")
    committed = walker.commit(2)
    rows = walker.group(1)
    beliefs = [
        None,
        Committed(**{**committed.__dict__, "cursor_out_digest": b"\1" * 32}),
        Committed(**{**committed.__dict__, "chain": b"\1" * 32}),
        Committed(**{**committed.__dict__, "event": "refused"}),
    ]
    for belief in beliefs:
        group = Walker(table, "a").group(1) if belief is None else rows
        with pytest.raises(WriterConflictError, match="found page event 1"):
            walker.admission.commit(group, expected=belief, sealed=never)
    assert len(story(table)) == 2


def test_the_message_tells_no_cursor(table: Table) -> None:
    walker = Walker(table, "a")
    committed = walker.commit(2)

    with pytest.raises(WriterConflictError) as error:
        Walker(table, "b").commit(1)
    assert committed.chain.hex()[:16] in str(error.value)
    assert committed.cursor_out_digest.hex()[:8] not in str(error.value)


def test_a_group_that_does_not_follow_is_refused(table: Table) -> None:
    walker = Walker(table, "a")
    committed = walker.commit(2)
    group = walker.group(3)
    wrong = {
        "empty": group.slice(0, 0),
        "gap": group.slice(1),
        "another shard": Walker(table, "a", shard=1).group(3),
        "hole": pa.Table.from_batches([group.slice(0, 1), group.slice(2)]),
        "after the close": pa.Table.from_batches([walker.group(1, last="close"), group.slice(1)]),
    }
    for rows in wrong.values():
        with pytest.raises(ContractError):
            walker.admission.commit(rows, expected=committed, sealed=never)
    other = Walker(table, "a", generation=OTHER)
    other.committed = committed
    with pytest.raises(ContractError, match="another generation"):
        walker.admission.commit(other.group(1), expected=committed, sealed=never)
    assert len(story(table)) == 2


@pytest.mark.parametrize("kind", ["rows without transaction", "transaction without rows"])
def test_rows_that_came_around_the_fence_are_noticed(table: Table, kind: str) -> None:
    walker = Walker(table, "a")
    walker.commit(2)
    if kind == "rows without transaction":
        table.append(walker.group(1), generation=GENERATION)
    else:
        app = Transaction(f"customers/{GENERATION}/0", 7)
        write_deltalake(
            DeltaTable(table.uri),
            Walker(table, "x", shard=5).group(1),
            mode="append",
            commit_properties=CommitProperties(app_transactions=[app]),
        )

    with pytest.raises(TamperedError, match="something else than this fence"):
        fence(table).last()
    with pytest.raises(TamperedError):
        walker.commit(1)


def test_a_removed_file_of_events_is_noticed(table: Table) -> None:
    walker = Walker(table, "a")
    walker.commit(2)
    Path(table.file_uris(GENERATION)[0]).unlink()

    with pytest.raises(TamperedError):
        walker.admission.last()


def test_columns_may_have_other_names(tmp_path: Path) -> None:
    names = {"seq": "number", "chain": "link", "event": "kind"}
    schema = pa.schema([field.with_name(names.get(field.name, field.name)) for field in SCHEMA])
    table = open_table(Lake(root=str(tmp_path)), "evidence", "customers", "pages", schema)
    admission = Admission(
        table,
        scan="customers",
        generation=GENERATION,
        shard=0,
        columns=EventColumns(seq="number", chain="link", event="kind"),
    )
    rows = Walker(table, "a").group(3).rename_columns(schema.names)

    committed = admission.commit(rows, expected=None, sealed=never)

    assert (committed.seq, committed.event) == (2, "page")
    assert admission.last() == committed
