"""Places in the lake, and files that are written once."""

import json
import multiprocessing
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from scan_pipeline.core.errors import (
    ConfigurationError,
    ContractError,
    EvidenceError,
    WriterConflictError,
)
from scan_pipeline.store.lake import Lake, make_private, open_filesystem

GENERATION = "20261130T020000Z"


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(root=str(tmp_path / "lake"))


def write_in_a_process(root: str, path: str, data: bytes) -> bytes | None:
    try:
        Lake(root=root).write_once(path, data)
    except WriterConflictError:
        return None
    return data


@pytest.mark.parametrize("root", ["s3://bucket/lake", "az://container", "gs://bucket/a/b/"])
def test_places_of_a_remote_lake(root: str) -> None:
    lake, base = Lake(root=root), root.rstrip("/")

    assert not lake.is_local
    assert lake.table_uri("evidence", "customers", "pages") == f"{base}/evidence/customers/pages"
    assert lake.published_uri("customers") == f"{base}/published/customers"
    assert (
        lake.receipt_path("customers", f"{GENERATION}.2")
        == f"{base}/receipts/customers/{GENERATION}.2.dsse.json"
    )


def test_a_relative_root_does_not_follow_the_working_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    lake = Lake(root="lake")
    monkeypatch.chdir("/")

    assert lake.root == str(tmp_path / "lake")


@pytest.mark.parametrize("root", ["", " ", "http://host/lake", "s3://", "file:///tmp/lake"])
def test_a_root_that_is_no_lake_is_refused(root: str) -> None:
    with pytest.raises(ConfigurationError, match="expected"):
        Lake(root=root)


@pytest.mark.parametrize("name", ["a%20b", "a[b]", "a|b", "a^b", "a\\b", "a#b", "a?b"])
def test_a_path_that_the_delta_library_mistakes_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigurationError, match="move the lake"):
        Lake(root=str(tmp_path / name))


@pytest.mark.parametrize("name", ["", "Customers", "1st", "a-b", "a/b", "..", "a\n", "é"])
def test_a_name_of_another_form_is_refused(lake: Lake, name: str) -> None:
    with pytest.raises(ContractError):
        lake.table_uri("staging", name, "records")
    with pytest.raises(ContractError):
        lake.table_uri("staging", "customers", name)
    with pytest.raises(ContractError):
        lake.published_uri(name)


@pytest.mark.parametrize(
    "generation",
    ["", "20261130", "20261130T020000", "20261130T020000Z.", "20261130T020000Z' OR 1=1", "٢" * 8],
)
def test_a_generation_of_another_form_is_refused(lake: Lake, generation: str) -> None:
    with pytest.raises(ContractError):
        lake.receipt_path("customers", generation)


def test_a_file_is_written_once(lake: Lake) -> None:
    path = lake.receipt_path("customers", GENERATION)
    assert not lake.exists(path)

    lake.write_once(path, b"first")

    with pytest.raises(WriterConflictError, match="already written"):
        lake.write_once(path, b"second")
    assert lake.exists(path)
    assert lake.read_bytes(path) == b"first"


def test_of_many_processes_one_writes_the_file(lake: Lake) -> None:
    path = lake.receipt_path("customers", GENERATION)
    work = [(lake.root, path, b"%d" % number) for number in range(4)]

    with multiprocessing.get_context("spawn").Pool(4) as pool:
        told = pool.starmap(write_in_a_process, work, chunksize=1)

    assert [data for data in told if data is not None] == [lake.read_bytes(path)]


def test_names_in_a_folder_are_sorted_and_half_written_files_are_not_among_them(
    lake: Lake,
) -> None:
    folder = f"{lake.root}/receipts/customers"
    assert lake.list_names(folder) == ()
    for generation in ("20261201T020000Z", GENERATION):
        lake.write_once(lake.receipt_path("customers", generation), b"{}")
    Path(folder, ".20261202T020000Z.dsse.json.0a.tmp").write_bytes(b"{")

    assert lake.list_names(folder) == (f"{GENERATION}.dsse.json", "20261201T020000Z.dsse.json")


def test_a_missing_file_is_an_error_of_ours(lake: Lake) -> None:
    with pytest.raises(EvidenceError, match="found no file"):
        lake.read_bytes(lake.receipt_path("customers", GENERATION))


@pytest.mark.parametrize("path", ["/etc/passwd", "{root}/../x", "{root}", "{root}x/y"])
def test_a_path_outside_the_lake_is_refused(lake: Lake, path: str) -> None:
    outside = path.format(root=lake.root)
    with pytest.raises(ContractError):
        lake.read_bytes(outside)
    with pytest.raises(ContractError):
        lake.write_once(outside, b"")
    with pytest.raises(ContractError):
        lake.exists(outside)
    with pytest.raises(ContractError):
        lake.list_names(outside)


def test_folders_of_evidence_are_closed_to_others(tmp_path: Path) -> None:
    (tmp_path / "lake" / "evidence").mkdir(parents=True)
    (tmp_path / "lake" / "evidence").chmod(0o755)

    make_private(str(tmp_path / "lake" / "evidence" / "customers" / "pages"), levels=3)

    guarded = [
        tmp_path / "lake" / "evidence" / rest for rest in ("", "customers", "customers/pages")
    ]
    assert [stat.S_IMODE(folder.stat().st_mode) for folder in guarded] == [0o700] * 3
    assert stat.S_IMODE((tmp_path / "lake").stat().st_mode) != 0o700


def test_an_azure_lake_without_an_account_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="AZURE_STORAGE_ACCOUNT_NAME"):
        open_filesystem("az://container/lake", environ={})


def test_reading_a_receipt_of_a_local_lake_imports_nothing_heavy(lake: Lake) -> None:
    path = lake.receipt_path("customers", GENERATION)
    lake.write_once(path, b"{}")
    code = (
        "import json, sys\n"
        "from scan_pipeline.store.lake import Lake\n"
        f"lake = Lake(root={lake.root!r})\n"
        f"assert lake.exists({path!r}) and lake.read_bytes({path!r}) == b'{{}}'\n"
        f"assert lake.list_names({path.rpartition('/')[0]!r})\n"
        "print(json.dumps(sorted(sys.modules)))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    heavy = {"pyarrow", "deltalake", "polars", "pandera", "dagster"}
    assert heavy.isdisjoint(json.loads(run.stdout))
