"""`init`: a project that runs, made once; in one that is there, the keys it lacks."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from scan_pipeline.cli.exit_codes import ExitCode
from scan_pipeline.cli.output import answer, json_option, print_json, say
from scan_pipeline.cli.settings import Settings

if TYPE_CHECKING:
    from scan_pipeline.stages.beginning.new_project import BegunKeys, BegunProject, DraftedScan


@click.command()
@click.argument(
    "folder", required=False, type=click.Path(file_okay=False, path_type=Path), metavar="[FOLDER]"
)
@click.option("--from", "url", metavar="URL", help="Draft a scan of it beside the sample.")
@click.option(
    "--auth",
    metavar="bearer=VARIABLE|HEADER=VARIABLE",
    help="With --from: the variable that holds the secret, never the secret itself.",
)
@click.option(
    "--header", "headers", metavar="NAME=VALUE", multiple=True, help="With --from; no secrets."
)
@click.option("--name", metavar="NAME", help="With --from: name of the scan.")
@click.option(
    "--scan",
    "scans",
    metavar="NAME|FILE",
    multiple=True,
    help="Begin the data key of this scan too; those below the project's defs get theirs anyway.",
)
@json_option
@click.pass_obj
def init(
    settings: Settings,
    *,
    folder: Path | None,
    url: str | None,
    auth: str | None,
    headers: tuple[str, ...],
    name: str | None,
    scans: tuple[str, ...],
    as_json: bool,
) -> ExitCode:
    """Make a project in FOLDER (else here) that runs at once, and its keys; write over nothing.

    In a project that is there, only the keys are begun that it lacks. Exit 1 where a drafted scan
    has gaps that only a person can fill in.
    """
    from scan_pipeline.stages.beginning.new_project import begin_keys, begin_project
    from scan_pipeline.stages.workspace import utc_now
    from scan_pipeline.store.project import find_project

    if url is None and (auth or headers or name):
        raise click.UsageError("--auth, --header and --name are of a draft; expected --from URL")
    place = Path(os.path.normpath(settings.folder / (folder or "")))
    drafted = None if url is None else _drafted(settings, url, auth, headers, name)
    begun = begin_project(place, lake=_lake(settings), drafted=drafted)
    project = find_project(lake=settings.lake, cwd=place, environ=settings.environ)
    named = [_named(each) for each in scans]
    keys = begin_keys(project, scans=named, clock=utc_now)
    if as_json:
        print_json({**_as_json(begun, keys), "lake": project.lake, "trust": str(project.trust)})
    else:
        _print(begun, keys, keys_in=project.keys)
        _say_next(begun, here=settings.folder)
    whole = drafted is None or drafted.whole
    return ExitCode.ACCEPTED if whole else ExitCode.NOT_ACCEPTED


def _drafted(
    settings: Settings, url: str, auth: str | None, headers: tuple[str, ...], name: str | None
) -> "DraftedScan":
    from scan_pipeline.cli.draft import drafted, say_of
    from scan_pipeline.stages.beginning.new_project import DraftedScan
    from scan_pipeline.stages.drafting.writing import scan_file

    found = drafted(settings, url, auth=auth, headers=headers, name=name)
    say_of(found)
    return DraftedScan(
        name=found.attributes["name"], text=scan_file(found), whole=not found.fill_in
    )


def _lake(settings: Settings) -> str | None:
    """Return the lake as a new pyproject.toml names it: one that was asked for, in full."""
    lake = settings.lake
    return lake if lake is None or "://" in lake else str(settings.folder / lake)


def _as_json(begun: "BegunProject", keys: "BegunKeys") -> dict[str, Any]:
    return {
        "folder": str(begun.folder),
        "written": list(begun.written),
        "kept": list(begun.kept),
        "drafted": begun.drafted,
        "fingerprint": keys.fingerprint,
        "signing_key_begun": keys.signing_begun,
        "data_keys_begun": list(keys.sealing_begun),
    }


def _print(begun: "BegunProject", keys: "BegunKeys", *, keys_in: Path) -> None:
    for each in begun.written:
        answer(f"made  {each}")
    for each in begun.kept:
        answer(f"kept  {each}")
    signing = "made " if keys.signing_begun else "kept "
    answer(f"{signing} signing key in {keys_in}; receipts are believed by {keys.fingerprint}")
    for each in keys.sealing_begun:
        answer(f"made  data key of {each}")


def _say_next(begun: "BegunProject", *, here: Path) -> None:
    if begun.package is None:
        say(f"{begun.folder} was a project already; its files stay as they are")
        return
    enter = "" if begun.folder == here else f"cd {begun.folder} && "
    say(f"next: {enter}scan-pipeline run {begun.sample}")
    if begun.drafted is None:
        return
    if begun.drafted.startswith(begun.package):
        say(f"then: scan-pipeline check {begun.drafted} --connect")
        return
    name = Path(begun.drafted).stem
    say(
        f"{begun.drafted} has gaps to fill in; then check it and move it to "
        f"{begun.package}/defs/{name}/defs.yaml"
    )


def _named(scan: str) -> str:
    from scan_pipeline.stages.scan_lookup import scan_name
    from scan_pipeline.store.project import is_file

    return scan_name(Path(scan)) if is_file(scan) else scan
