"""`explain`: the first disagreement in words, or what must be believed."""

import click

from scan_pipeline.cli.exit_codes import ExitCode, code_of_acceptance
from scan_pipeline.cli.output import answer, json_option, print_facts, print_json
from scan_pipeline.cli.settings import Settings


@click.command()
@click.argument("scan", metavar="NAME|FILE")
@click.argument("generation", required=False)
@json_option
@click.pass_obj
def explain(settings: Settings, *, scan: str, generation: str | None, as_json: bool) -> ExitCode:
    """Say why the receipt of GENERATION, or the newest, says what it says, and what to do."""
    from scan_pipeline.cli import explanation
    from scan_pipeline.cli.account import words

    told = explanation.explain(settings.receipt(scan, generation).receipt)
    if as_json:
        print_json(told.as_json())
        return code_of_acceptance(accepted=told.accepted)
    answer(told.statement)
    answer()
    first = told.first
    if first is not None:
        answer(f"First disagreement: {words(first.what)}.")
        facts = {
            "page": first.page,
            "record": first.key,
            "expected": first.expected,
            "found": first.found,
            "usual cause": first.cause,
            "what to do": first.remedy,
        }
        print_facts((name, value) for name, value in facts.items() if value is not None)
    if told.missing:
        answer(f"Never came: {', '.join(told.missing)}.")
    if told.others:
        least = "at least " if told.carried < told.total else ""
        many = ", ".join(
            f"{words(code)} ({least}{number:,})" for code, number in told.others.items()
        )
        answer(f"Besides, of {told.total:,} findings: {many}.")
    answer(f"Why it matters: {told.why}.")
    if first is None:
        believed = ", ".join(f"{words(name)} ({words(basis)})" for name, basis in told.believed)
        answer(f"What must be believed: {believed or 'nothing'}.")
    return code_of_acceptance(accepted=told.accepted)
