"""`schema`: the JSON Schema of a scan file, as this version reads one."""

import click

from scan_pipeline.cli.exit_codes import ExitCode
from scan_pipeline.cli.output import answer


@click.command()
def schema() -> ExitCode:
    """Give the JSON Schema of a scan file, for editors."""
    from scan_pipeline.stages.beginning.schema_line import shipped_schema

    answer(shipped_schema().removesuffix("\n"))
    return ExitCode.ACCEPTED
