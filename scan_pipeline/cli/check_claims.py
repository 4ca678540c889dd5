"""`check-claims`: does every statement about a collection cite a claim that supports it."""

import json
import sys
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from scan_pipeline.cli.exit_codes import ExitCode
from scan_pipeline.cli.output import json_option, print_json, say
from scan_pipeline.cli.settings import Settings

if TYPE_CHECKING:
    from scan_pipeline.agents.report_check import Checked

BLOCK = 2
"""Exit code by which a hook of Claude Code keeps the agent from stopping: what stands on stderr is
told to it. Any other code but 0 is shown to the user and lets it stop."""


@click.command(name="check-claims")
@click.argument(
    "report", required=False, type=click.Path(exists=True, dir_okay=False, path_type=Path)
)
@click.option("--stop-hook", is_flag=True, help="Read a Claude Code hook's input; block by exit 2.")
@click.option("--max-age", type=float, default=24.0, show_default=True, help="Hours a claim lasts.")
@click.option("--noun", "nouns", multiple=True, help="What members of a collection are called.")
@json_option
@click.pass_obj
def check_claims(
    settings: Settings,
    *,
    report: Path | None,
    stop_hook: bool,
    max_age: float,
    nouns: tuple[str, ...],
    as_json: bool,
) -> ExitCode | int:
    """Check REPORT, or standard input, sentence by sentence.

    Exit 0 where every statement about a collection stands, 1 where one does not. As a stop hook of
    Claude Code: exit 2 where one does not, and where the check itself fails.
    """
    if not stop_hook:
        text = report.read_text(encoding="utf-8") if report else sys.stdin.read()
        checked = _checked(settings, text, nouns=nouns, max_age=max_age)
        _tell(checked, as_json=as_json)
        return ExitCode.NOT_ACCEPTED if checked.found else ExitCode.ACCEPTED
    try:
        text = _last_message(json.load(sys.stdin))
        checked = _checked(settings, text, nouns=nouns, max_age=max_age)
        _tell(checked, as_json=False)
    except Exception as error:  # noqa: BLE001  # a check that broke must not let a claim through
        say(f"the claims of this answer could not be checked: {error}")
        return BLOCK
    return BLOCK if checked.found else ExitCode.ACCEPTED


def _checked(settings: Settings, text: str, *, nouns: tuple[str, ...], max_age: float) -> "Checked":
    from scan_pipeline.agents.claiming import CollectionClaim, find_claim
    from scan_pipeline.agents.report_check import check_report
    from scan_pipeline.core.errors import GateClosedError
    from scan_pipeline.stages.reading import Collection
    from scan_pipeline.stages.scan_lookup import scan_names

    workspace = settings.workspace()

    def stands(claim: CollectionClaim) -> None:
        collection = Collection(settings.scan(claim.scan), workspace=workspace)
        stored = collection.receipt(claim.scan_generation)
        said = (stored.receipt.coverage_status, stored.receipt.conclusion_scope)
        if stored.receipt_id != claim.receipt_id or said != (
            claim.coverage_status,
            claim.conclusion_scope,
        ):
            raise GateClosedError(
                scan=claim.scan,
                generation=claim.scan_generation,
                reason="the receipt is another than the claim rests on; conclude again",
            )
        collection.partial(claim.scan_generation, accept="observed_pages_only")

    return check_report(
        text,
        nouns=(*scan_names(settings.folder), *nouns),
        read=lambda name: find_claim(name, workspace=workspace),
        stands=stands,
        now=workspace.clock(),
        max_age=timedelta(hours=max_age),
    )


def _last_message(hook: dict[str, Any]) -> str:
    """Return what the agent said last: told by the hook, else the transcript's last message.

    Raises:
        ValueError: neither is there; what was said is then unknown, and not nothing.
    """
    said = hook.get("last_assistant_message")
    if isinstance(said, str):
        return said
    if "transcript_path" not in hook:
        raise ValueError(
            "found neither last_assistant_message nor transcript_path; expected what Claude Code "
            "gives a stop hook"
        )
    lines = Path(hook["transcript_path"]).read_text(encoding="utf-8").splitlines()
    for line in reversed(lines):
        entry = json.loads(line)
        if entry.get("type") != "assistant":
            continue
        content = entry["message"]["content"]
        if isinstance(content, str):
            return content
        texts = [part["text"] for part in content if part.get("type") == "text"]
        if texts:
            return "\n".join(texts)
    raise ValueError("the transcript holds no answer; expected one")


def _tell(checked: "Checked", *, as_json: bool) -> None:
    if as_json:
        print_json(
            {"cited": list(checked.cited), "found": [dict(each.__dict__) for each in checked.found]}
        )
        return
    for each in checked.found:
        say(f"{each.fault}: {each.sentence}\n    {each.remedy}")
    say(f"{len(checked.cited)} claims stand, {len(checked.found)} sentences do not")
