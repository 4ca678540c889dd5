"""`run --trial`: shown, listed and read as a trial; exit 1, since it is never accepted."""

import pytest

from scan_pipeline_tests.cli.conftest import CommandLine, registry


@pytest.fixture
def tried(scan_pipeline: CommandLine) -> CommandLine:
    with registry() as url:
        file = scan_pipeline.scan_file(url)
        assert scan_pipeline("run", file).exit_code == 0
        result = scan_pipeline("run", file, "--trial", "2")
    assert result.exit_code == 1, result.output
    assert "A trial: 200 records of shop" in result.stdout
    assert "columns, as declared" in result.stdout
    assert "--trials read" in result.stdout
    return scan_pipeline


def test_trial_is_listed_as_one_and_read_only_where_it_is_asked_for(tried: CommandLine) -> None:
    rows = tried.json("generations", "shop")
    night, trial = rows
    assert [(each["trial"], each["accepted"], each["published"]) for each in rows] == [
        (False, True, True),
        (True, False, False),
    ]
    assert "1 generations of shop, and 1 trials" in tried("generations", "shop").stdout
    assert tried.json("receipt", "shop")["scan_generation"] == night["generation"]
    name = trial["generation"]
    assert tried("receipt", "shop", name).exit_code == (0 if name == night["generation"] else 1)
    assert tried.json("--trials", "receipt", "shop", code=1)["mode"] == "trial"
    answer = tried.json("--trials", "read", "shop", name, "--accept", "observed_pages_only")
    assert (answer["given"], answer["conclusion_scope"]) == (200, "observed_pages_only")
    assert tried("--trials", "audit", "shop").exit_code == 0
    assert tried("--trials", "read", "shop").exit_code == 1


def test_json_tells_the_columns(scan_pipeline: CommandLine) -> None:
    def without_schema(facts: dict[str, object]) -> None:
        del facts["record_schema"]

    with registry() as url:
        file = scan_pipeline.scan_file(url, change=without_schema)
        answer = scan_pipeline.json("run", file, "--trial", "1", code=1)

    assert answer["trial"]
    assert not answer["accepted"]
    first = answer["columns"][0]
    assert first == {"name": "customer_id", "type": "String", "filled": 100}


@pytest.mark.parametrize("command", ["run", "restage", "generations", "launch", "ui", "check"])
def test_what_makes_or_lists_nights_takes_no_trials(
    scan_pipeline: CommandLine, command: str
) -> None:
    assert scan_pipeline("--trials", command, "shop").exit_code == 2
