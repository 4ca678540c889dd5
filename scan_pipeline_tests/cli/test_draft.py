"""`draft`: to stdout or a new file, marked; what it drafts passes `check` and runs."""

from pathlib import Path

import yaml

from scan_pipeline_tests.cli.conftest import CommandLine, registry

SAMPLE = "simulator://registry/v1/customers"


def test_draft_of_the_sample_registry_passes_check_and_meets_every_customer(
    scan_pipeline: CommandLine, tmp_path: Path
) -> None:
    out = tmp_path / "drafted.yaml"

    result = scan_pipeline("draft", SAMPLE, "--out", str(out))

    assert result.exit_code == 0, result.output
    assert scan_pipeline("check", str(out)).exit_code == 0
    receipt = scan_pipeline.json("run", str(out))["receipt"]
    assert receipt["unique_ids_observed"] == 8_742
    assert (receipt["coverage_status"], receipt["conclusion_scope"]) == (
        "unknown",
        "records_encountered_in_live_traversal",
    )
    refused = scan_pipeline("read", str(out)).stderr  # accepted, and still not the whole
    assert "was accepted for less than the whole: unknown" in refused
    assert "--accept records_encountered_in_live_traversal" in refused


def test_draft_whose_pin_and_count_a_person_confirmed_is_verified(
    scan_pipeline: CommandLine, tmp_path: Path
) -> None:
    out = tmp_path / "drafted.yaml"
    scan_pipeline("draft", SAMPLE, "--out", str(out))
    facts = yaml.safe_load(out.read_text(encoding="utf-8"))

    facts["source"]["count"]["exactness"] = "exact"
    del facts["contract"]["accept"]
    out.write_text(yaml.safe_dump(facts), encoding="utf-8")

    receipt = scan_pipeline.json("run", str(out))["receipt"]
    assert (receipt["coverage_status"], receipt["unique_ids_observed"]) == ("verified", 8_742)
    believed = {each["name"]: each["basis"] for each in receipt["assumptions"]}
    assert (believed["pin_honoured"], believed["count_exact"]) == ("user_declared",) * 2


def test_file_that_is_there_is_never_written_over(
    scan_pipeline: CommandLine, tmp_path: Path
) -> None:
    out = tmp_path / "drafted.yaml"
    out.write_text("mine", encoding="utf-8")

    result = scan_pipeline("draft", SAMPLE, "--out", str(out))

    assert result.exit_code == 2
    assert "is there already" in result.stderr
    assert out.read_text(encoding="utf-8") == "mine"


def test_draft_over_http_shows_its_guesses_and_no_secret(scan_pipeline: CommandLine) -> None:
    with registry() as url:
        result = scan_pipeline("draft", f"{url}/v1/customers", "--auth", "bearer=REGISTRY_TOKEN")

    assert result.exit_code == 0, result.output
    assert "# guess: seen in 2 pages" in result.stdout
    assert yaml.safe_load(result.stdout)["source"]["auth"] == {"bearer": {"env": "REGISTRY_TOKEN"}}
    assert "sample-token" not in result.output
    assert "about 136.0 kB a night" in result.stderr
    assert "a year of nights would read about 49.6 MB" in result.stderr


def test_source_that_refuses_our_credentials_is_three(scan_pipeline: CommandLine) -> None:
    with registry() as url:
        result = scan_pipeline("draft", f"{url}/v1/customers")

    assert result.exit_code == 3
    assert "expected rights to read" in result.stderr
    assert "--auth bearer=VARIABLE" in result.stderr


def test_json_holds_the_file_and_what_was_guessed(scan_pipeline: CommandLine) -> None:
    answer = scan_pipeline.json("draft", SAMPLE, "--name", "clients")

    assert yaml.safe_load(answer["file"]) == answer["attributes"]
    assert answer["attributes"]["name"] == "clients"
    assert (answer["fill_in"], answer["pages"], answer["pages_implied"]) == ({}, 2, 88)
    assert answer["night_bytes"] == 88 * answer["page_bytes"]


def test_draft_into_a_project_is_a_component_that_names_its_schema(tmp_path: Path) -> None:
    project = CommandLine(tmp_path / "shop")
    CommandLine(tmp_path)("init", "shop")
    out = project.folder / "shop" / "defs" / "clients" / "defs.yaml"

    assert project("draft", SAMPLE, "--name", "clients", "--out", str(out)).exit_code == 0

    first, second, *_ = out.read_text(encoding="utf-8").splitlines()
    assert first.endswith("$schema=../../../scan-file.schema.json")
    assert second == "type: scan_pipeline.components.Scan"
    assert "clients" in project("run", "nothing").stderr  # a part of the project at once
