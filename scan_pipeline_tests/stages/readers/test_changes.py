"""What changed between two nights of one collection."""

import json
from dataclasses import dataclass

import polars as pl
import pytest

from scan_pipeline.core.errors import ContractError, GateClosedError, TamperedError
from scan_pipeline.stages.readers.changes import changes
from scan_pipeline.stages.reading import Collection
from scan_pipeline.stages.run import run_scan
from scan_pipeline.stages.workspace import Workspace

FIRST = [{"id": f"t{number}", "n": number} for number in range(50)]
NEXT = [
    *({"id": f"t{number}", "n": number} for number in range(5, 50) if number not in (7, 9)),
    {"id": "t7", "n": 700},
    {"id": "t9", "n": None},
    {"id": "new", "n": 1},
]


def by_word(found):
    return {
        word: sorted(
            json.loads(key)[0] for key in found.rows.filter(pl.col("change") == word)["key"]
        )
        for word in found.counts
    }


LIVE = "records_encountered_in_live_traversal"


@dataclass
class Nights:
    """Two nights of one collection."""

    collection: Collection
    generations: list[str]
    workspace: Workspace


@pytest.fixture
def two_nights(bench, laid_down):
    def walk(first, second, *, live=False, name="things"):
        edits = {"name": name}
        if live:
            edits |= {
                "source.snapshot": ...,
                "contract.consistency": "live",
                "contract.accept": {"scope": LIVE},
            }
        pages = [[json.dumps(each).encode() for each in records] for records in (first, second)]
        walked = bench.walk_records([pages[0]], edits)
        project = walked.workspace.project
        later = bench.workspace(project=project, inner=laid_down([pages[1]]))
        night = run_scan(walked.scan, workspace=later)
        return Nights(
            collection=Collection(walked.scan, workspace=later),
            generations=[walked.generation, night.stored.receipt.scan_generation],
            workspace=later,
        )

    return walk


@pytest.fixture
def nights(two_nights):
    return two_nights(FIRST, NEXT)


def compare(nights, **arguments):
    opened = [nights.collection.generation(each) for each in nights.generations]
    return changes(*opened, partition_by=None, workspace=nights.workspace, **arguments)


def test_records_are_added_removed_and_changed_by_key_and_field(nights):
    found = compare(nights)

    assert by_word(found) == {
        "added": ["new"],
        "removed": ["t0", "t1", "t2", "t3", "t4"],
        "changed": ["t7", "t9"],
    }
    assert found.fields == {"n": 2}
    assert found.proven
    assert "1 added, 5 removed, 2 changed" in found.statement()


def test_equal_nights_have_no_changes_and_nothing_is_looked_into(two_nights):
    nights = two_nights(FIRST, FIRST)
    found = compare(nights)

    assert found.rows.is_empty()
    assert found.partitions[0] == 0 < found.partitions[1]


def test_only_partitions_with_other_roots_are_looked_into(two_nights):
    nights = two_nights(FIRST, [*FIRST[:-1], {"id": "t49", "n": -1}])
    found = compare(nights)

    assert found.partitions[0] == 1
    assert by_word(found) == {"added": [], "removed": [], "changed": ["t49"]}


def test_record_sent_in_other_bytes_is_not_changed(two_nights):
    other = [{"n": each["n"], "id": each["id"]} for each in FIRST]
    found = compare(two_nights(FIRST, other))

    assert found.rows.is_empty()
    assert found.reformatted == 50


def test_between_live_nights_nothing_was_added_or_removed(two_nights):
    nights = two_nights(FIRST, NEXT, live=True)
    opened = [nights.collection.partial(each, accept=LIVE) for each in nights.generations]
    found = changes(*opened, partition_by=None, workspace=nights.workspace)

    assert found.counts == {"first_seen": 1, "not_seen": 5, "differs": 2}
    assert not found.proven
    assert "what is not seen may exist" in found.statement()
    with pytest.raises(GateClosedError):
        nights.collection.newest_two()


def test_field_that_is_new_in_the_second_night_is_a_change_of_its_records(two_nights):
    more = [{**each, "colour": "red"} for each in FIRST[:3]] + FIRST[3:]
    found = compare(two_nights(FIRST, more))

    assert found.fields == {"colour": 3}


def test_generations_of_two_scopes_are_no_versions_of_one_collection(two_nights):
    one, other = two_nights(FIRST, FIRST), two_nights(FIRST, FIRST, name="others")

    with pytest.raises(ContractError, match="one scope"):
        changes(
            one.collection.generation(one.generations[0]),
            other.collection.generation(other.generations[0]),
            partition_by=None,
            workspace=one.workspace,
        )


def test_summaries_that_do_not_give_the_root_are_found_out(nights):
    store = nights.workspace.store("things", nights.generations[1])
    rows = store.summaries().read(nights.generations[1])
    roots = rows["root"].to_pylist()
    roots[0] = "0" * 64
    edited = pl.DataFrame(rows).with_columns(pl.Series("root", roots)).to_arrow()
    folder = store.summaries().file_uris(nights.generations[1])[0]
    pl.DataFrame(edited).drop("scan_generation").write_parquet(folder)

    with pytest.raises(TamperedError, match="partition_summaries"):
        compare(nights)
