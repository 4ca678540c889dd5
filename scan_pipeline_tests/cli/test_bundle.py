"""`bundle`, and `audit --bundle` on a machine that has neither lake nor project."""

import shutil
from pathlib import Path

import pytest

from scan_pipeline.store.trust import Trust
from scan_pipeline_tests.cli.conftest import CommandLine


@pytest.fixture(scope="module")
def bundled(two_nights: CommandLine, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bundle of the newest night, which failed."""
    folder = tmp_path_factory.mktemp("bundled")
    result = two_nights("bundle", "shop", "--to", str(folder))
    assert result.exit_code == 0, result.output
    return Path(result.stdout.strip())


def fingerprint(project: CommandLine) -> str:
    trust = Trust.load(project.folder / "data" / "trust.json", lake=None)
    return trust.keys[0].fingerprint.upper()


@pytest.fixture
def outside(tmp_path: Path) -> CommandLine:
    """The command line where there is no project."""
    return CommandLine(tmp_path)


def test_outsider_checks_with_the_fingerprint(
    two_nights: CommandLine, bundled: Path, outside: CommandLine
) -> None:
    given = ("--bundle", str(bundled), "--fingerprint", fingerprint(two_nights))
    told = outside("audit", *given)
    answer = outside.json("audit", *given)

    assert told.exit_code == 0, told.output
    assert ".FAILED." in bundled.name
    assert f"agrees, as deep as partitions: {answer['statement']}" in told.stdout
    assert (answer["agrees"], answer["level"]) == (True, "partitions")


def test_outsider_checks_with_a_trust_file(
    two_nights: CommandLine, bundled: Path, outside: CommandLine
) -> None:
    mine = shutil.copy(two_nights.folder / "data" / "trust.json", outside.folder / "theirs.json")

    assert outside("audit", "--bundle", str(bundled), "--trust", str(mine)).exit_code == 0


def test_project_believes_its_own_key(two_nights: CommandLine, bundled: Path) -> None:
    assert two_nights("audit", "--bundle", str(bundled)).exit_code == 0


def test_without_a_word_whom_to_believe_nothing_is_checked(
    bundled: Path, outside: CommandLine
) -> None:
    result = outside("audit", "--bundle", str(bundled))

    assert result.exit_code == 2
    assert "no trust" in result.stderr


def test_another_fingerprint_does_not_agree(bundled: Path, outside: CommandLine) -> None:
    result = outside("audit", "--bundle", str(bundled), "--fingerprint", "SHA256:" + "0" * 64)

    assert result.exit_code == 1
    assert "DISAGREES: keys" in result.stdout


def test_fingerprint_is_told_beside_the_answer(two_nights: CommandLine, tmp_path: Path) -> None:
    result = two_nights("bundle", "shop", "--to", str(tmp_path / "b.zip"))

    assert result.stdout.strip() == str(tmp_path / "b.zip")
    assert fingerprint(two_nights).lower() in result.stderr
    assert two_nights("bundle", "shop", "--to", str(tmp_path / "b.zip")).exit_code == 2


def test_records_of_a_failed_night_are_bundled_for_nobody(
    two_nights: CommandLine, tmp_path: Path
) -> None:
    result = two_nights("bundle", "shop", "--records", "--to", str(tmp_path))

    assert result.exit_code == 1
    assert list(tmp_path.iterdir()) == []
