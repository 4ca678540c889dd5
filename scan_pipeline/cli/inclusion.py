"""`inclusion`: a proof that a collection holds a key or does not, and the check of one."""

import json
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import click

from scan_pipeline.cli.ages import age_word, max_age_option
from scan_pipeline.cli.exit_codes import ExitCode
from scan_pipeline.cli.output import answer, print_json, say
from scan_pipeline.cli.settings import Settings
from scan_pipeline.core.errors import ContractError

if TYPE_CHECKING:
    from scan_pipeline.core.key_proofs import KeyProof
    from scan_pipeline.core.receipt import Receipt


@click.command()
@click.argument("scan", metavar="NAME|FILE", required=False)
@click.argument("key", nargs=-1)
@click.option("--generation", help="Of this generation, else the newest that is proven whole.")
@max_age_option
@click.option(
    "--verify",
    "given",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Check a proof instead of making one.",
)
@click.option(
    "--receipt",
    "envelope",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The receipt it is checked against, else the lake's own.",
)
@click.pass_obj
def inclusion(
    settings: Settings,
    *,
    scan: str | None,
    key: tuple[str, ...],
    generation: str | None,
    max_age: timedelta | None,
    given: Path | None,
    envelope: Path | None,
) -> ExitCode:
    """Prove that a collection holds KEY, one value a key field, or that it does not.

    A value is JSON (`17`, `'"17"'`) or text. The proof goes to stdout; a third party checks it with
    `--verify` and the receipt. A proof of absence shows the records that stand beside it.
    """
    if given is not None:
        return _verify(settings, given, envelope)
    if scan is None or not key:
        raise click.UsageError("name a scan and a key, or a proof with --verify")
    from scan_pipeline.core.key_proofs import KeyProof
    from scan_pipeline.core.value import adapter
    from scan_pipeline.stages.readers.inclusion import prove_key
    from scan_pipeline.stages.reading import Collection

    workspace = settings.workspace()
    collection = Collection(settings.scan(scan), workspace=workspace, max_age=max_age)
    opened = (
        collection.latest(at_least="corroborated")
        if generation is None
        else collection.generation(generation, at_least="corroborated")
    )
    proof = prove_key(
        opened, [parse_value(each) for each in key], scan=collection.scan, workspace=workspace
    )
    say(_words(proof))
    say(age_word(collection, opened.receipt, at_least="corroborated"))
    print_json(adapter(KeyProof).dump_python(proof, mode="json"))
    return ExitCode.ACCEPTED


def _verify(settings: Settings, given: Path, envelope: Path | None) -> ExitCode:
    from pydantic import ValidationError

    from scan_pipeline.core.key_proofs import KeyProof, verify_key_proof
    from scan_pipeline.core.value import adapter

    try:
        proof: KeyProof = adapter(KeyProof).validate_json(given.read_bytes())
    except ValidationError as error:
        first = error.errors(include_input=False, include_context=False, include_url=False)[0]
        at = ".".join(str(step) for step in first["loc"])
        fault = f"{at}: {first['msg']}" if at else first["msg"]
        raise ContractError(
            f"{given} is no proof of a key: {fault}; expected the JSON that `inclusion` wrote"
        ) from error
    receipt, receipt_id = _receipt(settings, proof, envelope)
    if receipt_id != proof.receipt_id:
        raise ContractError(f"the proof rests on {proof.receipt_id}; expected {receipt_id}")
    verify_key_proof(proof, merkle=receipt.merkle)
    answer(f"holds: {_words(proof)} {receipt.statement}")
    return ExitCode.ACCEPTED


def _receipt(settings: Settings, proof: "KeyProof", envelope: Path | None) -> tuple["Receipt", str]:
    """Return the receipt a proof is checked against, signature checked, and its id."""
    from scan_pipeline.core.receipt_statement import parse_statement
    from scan_pipeline.store.receipts import ReceiptStore
    from scan_pipeline.store.trust import Trust

    if envelope is None:
        workspace = settings.workspace()
        held: ReceiptStore = workspace.receipts(proof.scan)
        stored = held.read(proof.scan_generation, trust=workspace.trust)
        return stored.receipt, stored.receipt_id
    trust = Trust.load(settings.project().trust, lake=None)
    verified = trust.verify(envelope.read_bytes())
    return parse_statement(verified.payload), verified.receipt_id


def _words(proof: "KeyProof") -> str:
    named = ", ".join(
        f"{field} {json.dumps(value, ensure_ascii=False)}"
        for field, value in zip(proof.key_fields, proof.key, strict=True)
    )
    held = "holds a record" if proof.result == "included" else "holds no record"
    return f"{proof.scan} {proof.scan_generation} {held} of {named}."


def parse_value(text: str) -> str | int:
    """Return a value of a key: JSON (`17`, `"17"`) or text."""
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return value if isinstance(value, str) or type(value) is int else text
