"""Words on their way to a terminal, and the running figures of a walk."""

from collections.abc import Iterator

import pytest

from scan_pipeline.cli.output import cell, print_table, shown
from scan_pipeline.cli.progress import WalkProgress


def test_text_of_a_source_cannot_steer_a_terminal() -> None:
    assert shown("a\x1b[2Jb\x07\x9bc\u202ed") == "a\\x1b[2Jb\\x07\\x9bc\\x202ed"
    assert shown("José 山田\nDr. 😀") == "José 山田\nDr. 😀"


def test_markup_of_a_source_is_shown_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(("a",), [("[red]x[/red] :smile: \x1b[1m",)])

    assert "[red]x[/red] :smile: \\x1b[1m" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("value", "expected"), [(None, "-"), (True, "yes"), (False, "no"), (8742, "8,742"), ("a", "a")]
)
def test_cells_read_as_people_write(value: object, expected: str) -> None:
    assert cell(value) == expected


def ticking(*seconds: float) -> Iterator[float]:
    return iter(seconds)


def test_progress_is_plain_lines_where_no_terminal_is(capsys: pytest.CaptureFixture[str]) -> None:
    """The first page, then one line in two seconds, and the last page."""
    clock = ticking(0.0, 0.5, 2.0, 2.5)
    with WalkProgress(clock=lambda: next(clock)) as progress:
        for page in range(1, 5):
            progress({"pages": page, "records": page * 100, "total": 800, "bytes": 1})

    assert capsys.readouterr().err.splitlines() == [
        "1 page, 100 records, 12% of 800",
        "3 pages, 300 records, 38% of 800, 100 records/s",
        "4 pages, 400 records, 50% of 800, 120 records/s",
    ]


def test_rate_of_a_resumed_walk_counts_its_own_pages(capsys: pytest.CaptureFixture[str]) -> None:
    clock = ticking(10.0, 20.0)
    with WalkProgress(clock=lambda: next(clock)) as progress:
        progress({"pages": 51, "records": 5_100, "total": None})
        progress({"pages": 52, "records": 5_200, "total": None})

    assert capsys.readouterr().err.splitlines()[-1] == "52 pages, 5,200 records, 10 records/s"
