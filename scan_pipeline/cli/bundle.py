"""`bundle`: one file about a generation that an outsider checks offline."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from scan_pipeline.cli.exit_codes import ExitCode
from scan_pipeline.cli.output import answer, json_option, print_json, say
from scan_pipeline.cli.settings import Settings

if TYPE_CHECKING:
    from scan_pipeline.stages.bundle import Depth


@click.command()
@click.argument("scan", metavar="NAME|FILE")
@click.argument("generation", required=False)
@click.option(
    "--to",
    "path",
    type=click.Path(path_type=Path),
    default=Path(),
    help="The file, or the folder it is written to; else the working folder.",
)
@click.option("--records", is_flag=True, help="Include the records, and the hash of each.")
@click.option(
    "--record-bytes",
    "exact",
    is_flag=True,
    help="Include the records and their bytes as sent, also what their schema leaves out.",
)
@json_option
@click.pass_obj
def bundle(
    settings: Settings,
    *,
    scan: str,
    generation: str | None,
    path: Path,
    records: bool,
    exact: bool,
    as_json: bool,
) -> ExitCode:
    """Write what proves GENERATION, or the newest, into one zip file, whatever its receipt says.

    An outsider checks it with `audit --bundle`, or by hand, as the guide in it tells.
    """
    from scan_pipeline.core.value import adapter
    from scan_pipeline.stages.bundle import bundle as write_bundle
    from scan_pipeline.stages.bundling.manifest import BundleManifest

    stored = settings.receipt(scan, generation)
    depth: Depth = "bytes" if exact else "table" if records else "none"
    workspace = settings.workspace()
    written, manifest = write_bundle(stored, path, workspace=workspace, records=depth)
    say(stored.receipt.statement)
    for each in manifest.left_out:
        say(f"not in it: {each.part.replace('_', ' ')}: {each.why}")
    keys = {key.keyid: key.fingerprint for key in workspace.trust.keys}
    say(
        f"Give the fingerprint of the key another way than the file: {keys[stored.key_id]}. "
        f"It is checked by: scan-pipeline audit --bundle {written.name} --fingerprint ..."
    )
    if as_json:
        told = adapter(BundleManifest).dump_python(manifest, mode="json")
        print_json({"path": str(written), **told})
    else:
        answer(str(written))
    return ExitCode.ACCEPTED
