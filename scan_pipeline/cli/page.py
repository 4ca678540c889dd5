"""`page`: the facts of one page event; neither body nor token, for evidence is never shown."""

from typing import TYPE_CHECKING, Any, Literal

import click

from scan_pipeline.cli.exit_codes import ExitCode
from scan_pipeline.cli.output import json_option, print_facts, print_json
from scan_pipeline.cli.settings import Settings

if TYPE_CHECKING:
    from scan_pipeline.stages.workspace import Workspace
    from scan_pipeline.store.events import Event


@click.command()
@click.argument("scan", metavar="NAME|FILE")
@click.argument("generation")
@click.argument("number", type=click.IntRange(min=1), metavar="N")
@json_option
@click.pass_obj
def page(settings: Settings, *, scan: str, generation: str, number: int, as_json: bool) -> ExitCode:
    """Show what is known of page N of GENERATION: counts, times, attempts, digests.

    Continuations are named by keyed digests: equal names are equal tokens, and no name tells one.
    """
    facts = page_facts(settings.name(scan), generation, number, workspace=settings.workspace())
    if as_json:
        print_json(facts)
    else:
        print_facts((name.replace("_", " "), value) for name, value in facts.items())
    return ExitCode.ACCEPTED


def page_facts(
    scan: str, generation: str, number: int, *, workspace: "Workspace"
) -> dict[str, Any]:
    """Return the facts of one page as plain values.

    Raises:
        ContractError: the generation has no such page.
        ConfigurationError: the data key that names tokens is missing.
    """
    from scan_pipeline.core.errors import ContractError
    from scan_pipeline.store.lake import check_generation

    store = workspace.store(scan, check_generation(generation))
    events = store.events()
    walked = events[0].facts.get("evidence", generation) if events else generation
    if walked != generation:  # restaged: its pages are those of another walk
        events = workspace.store(scan, walked).events()
    pages = [each for each in events if each.event == "page"]
    if number > len(pages):
        raise ContractError(
            f"{scan} {generation} has {len(pages)} pages; expected a number up to that, found "
            f"{number}"
        )
    event = pages[number - 1]
    refused = [
        {"status": each.facts["status"], "reason": each.facts["reason"]}
        for each in events
        if each.event == "refused" and each.cursor_in_digest == event.cursor_in_digest
    ]
    names = _Tokens(scan, walked, workspace=workspace)
    requested = event.requested_at or event.received_at
    return {
        "scan": scan,
        "generation": walked,
        "page": number,
        "event": event.seq,
        "records": event.returned,
        "source_said": {
            name: event.facts[name]
            for name in ("total", "remaining", "page", "pin")
            if event.facts[name] is not None
        },
        "sent_pin": event.facts["sent_pin"],
        "end_signal": event.end_signal,
        "continuation_in": names.name(event, "cursor_in"),
        "continuation_out": names.name(event, "cursor_out"),
        "requested_at": requested.isoformat(),
        "received_at": event.received_at.isoformat(),
        "seconds": (event.received_at - requested).total_seconds(),
        "attempts": event.attempts,
        "refused_answers": refused,
        "body_bytes": event.body_bytes,
        "body_digest": f"sha256:{event.body_digest.hex()}",
        "items_digest": f"sha256:{event.items_digest.hex()}",
        "request_digest": f"sha256:{event.facts['fingerprint']}",
        "chain": f"sha256:{event.chain.hex()}",
    }


class _Tokens:
    """Names the continuations of a generation by digests under the scan's data key."""

    def __init__(self, scan: str, generation: str, *, workspace: "Workspace") -> None:
        from scan_pipeline.store.keys import data_key
        from scan_pipeline.store.sealing import Sealer

        self._scan, self._generation = scan, generation
        self._key = data_key(workspace.project, scan=scan, now=workspace.clock(), create="never")
        self._sealer = Sealer(self._key)

    def name(self, event: "Event", column: Literal["cursor_in", "cursor_out"]) -> str | None:
        from scan_pipeline.store.events import open_token
        from scan_pipeline.store.generations import FIRST_WALK
        from scan_pipeline.store.keys import keyed_digest

        token = open_token(
            event,
            scan=self._scan,
            generation=self._generation,
            shard=FIRST_WALK,
            sealer=self._sealer,
            column=column,
        )
        return None if token is None else keyed_digest(token, key=self._key)
