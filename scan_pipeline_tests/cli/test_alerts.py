"""`alerts`: for cron, and to try channels out."""

from scan_pipeline.simulator.faults import PageReplaced
from scan_pipeline_tests.cli.conftest import PYPROJECT, CommandLine, registry
from scan_pipeline_tests.stages.alerting.channels import channels

HOOK = '\n[tool.scan_pipeline.alerts]\nwebhook = { env = "HOOK" }\n'


def test_run_sends_and_the_command_sends_what_is_left(scan_pipeline: CommandLine) -> None:
    """A night with a dead channel is judged as ever; the command finds it, and tests channels."""
    (scan_pipeline.folder / "pyproject.toml").write_text(PYPROJECT + HOOK, encoding="utf-8")
    with registry(PageReplaced(page=2, by=1)) as url, channels() as heard:
        file, env = scan_pipeline.scan_file(url), {"HOOK": heard.address}
        night = scan_pipeline("run", file, env={"HOOK": "http://127.0.0.1:9/hushhush"})
        early = scan_pipeline("alerts", file, "--json", env=env)
        tried = scan_pipeline("alerts", "--test", env=env)
        unset = scan_pipeline("alerts", "--test")

    assert night.exit_code == 1
    assert "alert by webhook not sent, and tried again later: the webhook" in night.stderr
    assert "hushhush" not in night.output
    assert early.exit_code == 0
    assert '"alert": "waits"' in early.stdout
    assert tried.exit_code == 0
    (text,) = heard.texts
    assert f"Alerts of the project {scan_pipeline.folder.name} reach this place." in text
    assert unset.exit_code == 3
    assert "HOOK" in unset.stdout


def test_without_channels_the_command_says_where_they_stand(scan_pipeline: CommandLine) -> None:
    result = scan_pipeline("alerts")

    assert result.exit_code == 3
    assert "[tool.scan_pipeline.alerts]" in result.stderr
