"""`check`, `run`, `read`, `explain` and `receipt --html` of a scan of rounds of changes."""

import json

import yaml

from scan_pipeline_tests.cli.conftest import CommandLine, registry
from scan_pipeline_tests.stages.syncing.rounds import ROUNDS


def test_scan_of_rounds_is_read_as_what_its_rounds_come_to(scan_pipeline: CommandLine) -> None:
    file = scan_pipeline.folder / "rounds.yaml"
    with registry(size=300) as url:
        facts = json.dumps(dict(ROUNDS)).replace("simulator://registry", url)
        file.write_text(yaml.safe_dump(json.loads(facts)), encoding="utf-8")
        assert scan_pipeline("check", str(file)).exit_code == 0
        before = scan_pipeline("read", str(file))
        assert (before.exit_code, "no baseline is accepted" in before.output) == (1, True)
        runs = [scan_pipeline("run", str(file)) for _ in range(2)]
    assert [each.exit_code for each in runs] == [0, 0], runs[0].output + runs[1].output
    assert "a baseline" in runs[0].output

    read = scan_pipeline("read", str(file), "--format", "json")

    told = json.loads(read.stdout)
    assert (told["given"], told["total"], len(told["rests_on"])) == (300, 300, 2)
    assert (told["coverage_status"], told["conclusion_scope"]) == (
        "verified",
        "all_changes_since_checkpoint",
    )
    assert told["statement"].startswith("300 records of customers are what baseline ")
    assert "and the 1 round since come to" in told["statement"]
    assert (
        "every change was read up to the end of its round"
        in scan_pipeline("explain", str(file)).output
    )
    page = scan_pipeline.folder / "report.html"
    assert scan_pipeline("receipt", str(file), "--html", str(page)).exit_code == 0
    html = page.read_text(encoding="utf-8")
    assert "Yes, as a round." in html
    assert "checkpoint covers all writes" not in html  # told in a sentence
    assert scan_pipeline("audit", str(file)).exit_code == 0
