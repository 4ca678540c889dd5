"""`audit`: every figure of a receipt computed again; or an exported file or a bundle checked."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from scan_pipeline.cli.exit_codes import ExitCode, code_of_acceptance
from scan_pipeline.cli.output import answer, json_option, print_json, print_table
from scan_pipeline.cli.settings import Settings, newest

if TYPE_CHECKING:
    from scan_pipeline.stages.audit import AuditCheck
    from scan_pipeline.store.trust import Trust

SHOWN_CHARACTERS = 40
"""Characters of a figure that agrees."""


@click.command()
@click.argument("scan", metavar="NAME|FILE", required=False)
@click.argument("generation", required=False)
@click.option(
    "--file",
    "exported",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Hold an exported file against the signed note beside it instead.",
)
@click.option(
    "--bundle",
    "bundled",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Check a bundle instead; needs neither lake nor project.",
)
@click.option(
    "--fingerprint",
    "fingerprints",
    metavar="SHA256:...",
    multiple=True,
    help="Of a key whose bundle is believed, learned from its owner.",
)
@click.option(
    "--trust",
    "trust_file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The trust file whose keys' bundle is believed; else the project's.",
)
@json_option
@click.pass_obj
def audit(
    settings: Settings,
    *,
    scan: str | None,
    generation: str | None,
    exported: Path | None,
    bundled: Path | None,
    fingerprints: tuple[str, ...],
    trust_file: Path | None,
    as_json: bool,
) -> ExitCode:
    """Compute the receipt of GENERATION, or the newest, again; exit 1 where anything disagrees."""
    if sum(each is not None for each in (scan, exported, bundled)) != 1:
        raise click.UsageError("name a scan, or a file with --file or --bundle: expected one")
    if bundled is None and (fingerprints or trust_file):
        raise click.UsageError("--fingerprint and --trust go with --bundle")
    if bundled is not None:
        return _audit_bundle(settings, bundled, fingerprints, trust_file, as_json=as_json)
    if exported is not None:
        return _audit_file(settings, exported, as_json=as_json)
    return _audit_generation(settings, str(scan), generation, as_json=as_json)


def _audit_file(settings: Settings, exported: Path, *, as_json: bool) -> ExitCode:
    from scan_pipeline.core.value import adapter
    from scan_pipeline.stages.readers.export import ExportNote, check_export

    note = check_export(exported, trust=settings.workspace().trust)
    if as_json:
        print_json(adapter(ExportNote).dump_python(note, mode="json"))
    else:
        answer(f"agrees: {note.file} is as it was exported. {note.statement}")
    return ExitCode.ACCEPTED


def _audit_bundle(
    settings: Settings,
    bundled: Path,
    fingerprints: tuple[str, ...],
    trust_file: Path | None,
    *,
    as_json: bool,
) -> ExitCode:
    from scan_pipeline.stages.bundling.audit import audit_bundle
    from scan_pipeline.store.trust import Trust

    trust = None
    if trust_file is not None:
        trust = Trust.load(trust_file, lake=None)
    elif not fingerprints:
        trust = _own_trust(settings)
    found = audit_bundle(bundled, trust=trust, fingerprints=fingerprints)
    if as_json:
        checks = [dict(each.__dict__) for each in found.checks]
        print_json({**found.__dict__, "checks": checks, "agrees": found.agrees})
        return code_of_acceptance(accepted=found.agrees)
    print_table(
        ("check", "agrees", "expected", "found"),
        [(c.name, c.agrees, _told(c.expected, c), _told(c.found, c)) for c in found.checks],
        title=f"audit of {bundled.name}, as deep as {found.level or 'nothing'}",
    )
    if found.superseded_by is not None:
        answer(f"superseded: {found.superseded_by} stood in its place when this was made")
    wrong = ", ".join(each.name for each in found.disagreements)
    agrees = f"agrees, as deep as {found.level}: {found.statement}"
    answer(f"DISAGREES: {wrong}" if wrong else agrees)
    return code_of_acceptance(accepted=found.agrees)


def _own_trust(settings: Settings) -> "Trust":
    """Return the project's own trust, for a bundle that it made or was given the key of."""
    from scan_pipeline.core.errors import ConfigurationError
    from scan_pipeline.store.trust import Trust

    try:
        return Trust.load(settings.project().trust, lake=None)
    except ConfigurationError as error:
        raise click.UsageError(
            "nobody said whose signature to believe, and the key in a bundle is no trust: give "
            "--fingerprint with what its owner gave out, or --trust with a trust file"
        ) from error


def _audit_generation(
    settings: Settings, scan: str, generation: str | None, *, as_json: bool
) -> ExitCode:
    from scan_pipeline.stages.audit import Audit

    name, workspace = settings.name(scan), settings.workspace()
    chosen = generation or newest(workspace.receipts(name), name, trust=workspace.trust)
    report = Audit(name, chosen, workspace=workspace).run()
    if as_json:
        checks = [dict(each.__dict__) for each in report.checks]
        print_json({**report.__dict__, "checks": checks, "agrees": report.agrees})
    else:
        print_table(
            ("check", "agrees", "expected", "found"),
            [(c.name, c.agrees, _told(c.expected, c), _told(c.found, c)) for c in report.checks],
            title=f"audit of {name} {chosen}, as deep as {report.level}",
        )
        wrong = ", ".join(each.name for each in report.disagreements)
        agrees = f"agrees: {len(report.checks)} checks; {report.word()}"
        answer(f"DISAGREES: {wrong}" if wrong else agrees)
    return code_of_acceptance(accepted=report.agrees)


def _told(figure: str, check: "AuditCheck") -> str:
    """Shorten what agrees; what disagrees is shown whole."""
    cut = check.agrees and len(figure) > SHOWN_CHARACTERS
    return f"{figure[: SHOWN_CHARACTERS - 3]}..." if cut else figure
