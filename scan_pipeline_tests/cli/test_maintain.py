"""`maintain`, `hold`, `release-hold` and `erase`: answers, words and exit codes."""

import pytest

from scan_pipeline_tests.cli.conftest import CommandLine, registry

pytestmark = pytest.mark.long


def test_held_erased_and_maintained(scan_pipeline: CommandLine) -> None:
    with registry(size=100) as url:
        file = scan_pipeline.scan_file(url)
        scan_pipeline("run", file)
        scan_pipeline("run", file)
    newest, oldest = (each["generation"] for each in scan_pipeline.json("generations", "shop"))

    held = scan_pipeline.json("hold", "shop", oldest, "--because", "review 42", "--by", "ann")
    erased = scan_pipeline.json("erase", file, "--key", "customer-7", "--because", "request 7")
    again = scan_pipeline("erase", file, "--key", "customer-7", "--because", "request 7")
    named = scan_pipeline("erase", file, "--key", "customer-8", "--because", "customer-8 asked")
    kept = scan_pipeline.json("maintain", file)
    released = scan_pipeline("release-hold", "shop", oldest, "--because", "done")

    assert (held["state"], held["by"]) == ("held", "ann")
    assert [each["generation"] for each in erased["erased"]] == [oldest, newest]
    assert erased["left"] == []
    assert (again.exit_code, named.exit_code) == (0, 2)
    assert "no file names it" in again.stdout
    assert "names the key" in named.stderr
    assert (kept["dropped"], kept["refused"]) == ([], [])
    assert f"shop {oldest} is released since" in released.stdout
    assert "verified, 1 record redacted on" in scan_pipeline("audit", "shop").stdout
    assert "1 record redacted on" in scan_pipeline("receipt", "shop").stdout
    assert "since then: 1 record redacted" in scan_pipeline("receipt", "shop", "--json").stderr
    read = scan_pipeline("read", "shop", "--limit", "1")
    assert "Since then: 1 record redacted on" in read.stderr
