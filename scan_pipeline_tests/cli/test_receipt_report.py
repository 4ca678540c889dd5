"""`receipt --html` and `--packet`: where the reports go, and what is refused."""

from pathlib import Path

import pytest

from scan_pipeline_tests.cli.conftest import CommandLine


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder of the test's own."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def good(project: CommandLine) -> str:
    return project.json("generations", "shop")[1]["generation"]


def test_report_goes_to_a_file_named_after_its_generation(
    two_nights: CommandLine, elsewhere: Path
) -> None:
    named = good(two_nights)

    result = two_nights("receipt", "shop", named, "--html")

    written = elsewhere / f"shop.{named}.receipt.html"
    assert (result.exit_code, result.stdout.split(":")[0]) == (0, written.name)
    assert written.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


def test_both_reports_go_where_they_are_asked_for_and_exit_as_the_receipt(
    two_nights: CommandLine, elsewhere: Path
) -> None:
    result = two_nights(
        "receipt", "shop", "--audit", "--html", "out/r.html", "--packet", "out/r.md"
    )

    assert result.exit_code == 1
    page, packet = ((elsewhere / f"out/r.{each}").read_text("utf-8") for each in ("html", "md"))
    for text in (page, packet):
        assert "failed, not accepted" in text
        assert "as deep as bodies" in text
        assert "customer-101..customer-200" in text


def test_dash_is_stdout_and_the_words_go_to_stderr(
    two_nights: CommandLine, elsewhere: Path
) -> None:
    result = two_nights("receipt", "shop", good(two_nights), "--packet", "-")

    assert result.stdout.startswith("# shop, generation ")
    assert result.stdout.endswith("only tells it.\n")
    assert "verified, accepted" in result.stderr
    assert list(elsewhere.iterdir()) == []


@pytest.mark.parametrize(
    "options",
    [
        ("--html", "20261130T020000Z"),
        ("--html", "a.html", "--json"),
        ("--packet", "a.md", "--raw"),
        ("--raw", "--json"),
        ("--audit",),
        ("--html", "-", "--packet", "-"),
    ],
)
def test_options_that_cannot_be_meant_are_bad_usage(
    two_nights: CommandLine, elsewhere: Path, options: tuple[str, ...]
) -> None:
    result = two_nights("receipt", "shop", *options)

    assert result.exit_code == 2
    assert "expected" in result.output
    assert list(elsewhere.iterdir()) == []
