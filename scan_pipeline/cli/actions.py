"""`actions`: what agents proposed, and the person who lets it go."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from scan_pipeline.cli.exit_codes import ExitCode, code_of_acceptance
from scan_pipeline.cli.output import json_option, print_json, print_table, say
from scan_pipeline.cli.settings import Settings
from scan_pipeline.core.errors import ConfigurationError, GateClosedError

if TYPE_CHECKING:
    from scan_pipeline.agents.action_desk import ActionDesk
    from scan_pipeline.agents.proposals import Proposal

F = TypeVar("F", bound=Callable[..., Any])


def policy_option(command: F) -> F:
    """Add `--policy` to a command."""
    return click.option(
        "--policy",
        required=True,
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        help="The policy that says which actions there are and who releases them.",
    )(command)


@click.group()
def actions() -> None:
    """See, release and withdraw what agents proposed to do.

    The person is the user of this machine, as the policy's local_users name them.
    """


@actions.command(name="list")
@policy_option
@click.option("--all", "everything", is_flag=True, help="Those that are over as well.")
@json_option
@click.pass_obj
def list_command(settings: Settings, *, policy: Path, everything: bool, as_json: bool) -> ExitCode:
    """List proposals that wait, are under way, or are unknown."""
    desk, person = _opened(settings, policy)
    desk.settle()
    tenant = desk.reading.policy().principals[person].tenant
    over = () if everything else ("done", "withdrawn", "stale", "failed")
    found = [
        each
        for each in desk.proposals.all()
        if each.state not in over and tenant in (None, each.tenant)
    ]
    _tell(found, as_json=as_json)
    return ExitCode.ACCEPTED


@actions.command(name="release")
@click.argument("proposals", nargs=-1, required=True, metavar="PROPOSAL...")
@policy_option
@json_option
@click.pass_obj
def release_command(
    settings: Settings, *, proposals: tuple[str, ...], policy: Path, as_json: bool
) -> ExitCode:
    """Send what was proposed, each once, if all that it stands on still stands.

    Exit 0 where each was done, 1 where one was not, or nobody knows.
    """
    from scan_pipeline.agents.releasing import release_by_person

    desk, person = _opened(settings, policy)
    return _each(
        desk,
        proposals,
        lambda name: release_by_person(desk, person, proposal=name),
        wanted="done",
        as_json=as_json,
    )


@actions.command(name="withdraw")
@click.argument("proposals", nargs=-1, required=True, metavar="PROPOSAL...")
@policy_option
@json_option
@click.pass_obj
def withdraw_command(
    settings: Settings, *, proposals: tuple[str, ...], policy: Path, as_json: bool
) -> ExitCode:
    """Withdraw what waits; or what is unknown, once you have seen that it was not done."""
    from scan_pipeline.agents.releasing import withdraw_by_person

    desk, person = _opened(settings, policy)
    return _each(
        desk,
        proposals,
        lambda name: withdraw_by_person(desk, person, proposal=name),
        wanted="withdrawn",
        as_json=as_json,
    )


def _opened(settings: Settings, policy: Path) -> tuple["ActionDesk", str]:
    """Open the desk, and say who sits there.

    Raises:
        GateClosedError: the policy does not know this user.
        ConfigurationError: the extra is not installed, or the policy is none.
    """
    try:
        from scan_pipeline.agents.action_desk import ActionDesk
        from scan_pipeline.agents.authentication import caller_by_user, launching_user
        from scan_pipeline.agents.serving import audit_log, create_desk
    except ModuleNotFoundError as error:
        raise ConfigurationError(
            f"actions needs {error.name}, which is not installed; expected pip install "
            "'scan-pipeline[agents]'"
        ) from error
    from scan_pipeline.agents.failures import ReaderError
    from scan_pipeline.agents.policy import load_policy

    workspace = settings.workspace()
    desk = create_desk(workspace, find=settings.scan, policy=lambda: load_policy(policy))
    user = launching_user()
    try:
        person = caller_by_user(desk.policy(), user)
    except ReaderError as error:
        raise GateClosedError(
            scan="actions", generation=None, reason=f"the policy names no local user {user}"
        ) from error
    return ActionDesk(desk, log=audit_log(workspace)), person


def _each(
    desk: "ActionDesk",
    names: tuple[str, ...],
    work: Callable[[str], "Proposal"],
    *,
    wanted: str,
    as_json: bool,
) -> ExitCode:
    """Work on each proposal in turn; what one refuses keeps no other from its turn."""
    from scan_pipeline.agents.failures import ReaderError

    ended, refused = list["Proposal"](), list[dict[str, str]]()
    for name in names:
        try:
            ended.append(work(name))
        except ReaderError as error:
            say(f"{name}: {error} ({error.code})")
            refused.append({"proposal": name, "code": error.code, "message": str(error)})
            found = desk.proposals.find(name)
            if found is not None and error.code != "proposal_unknown":
                ended.append(found)
    _tell(ended, as_json=as_json, refused=refused)
    well = not refused and all(each.state == wanted for each in ended)
    return code_of_acceptance(accepted=well)


def _tell(
    found: list["Proposal"], *, as_json: bool, refused: list[dict[str, str]] | None = None
) -> None:
    from scan_pipeline.agents.proposing import moment

    if as_json:
        hidden = ("idempotency_key", "page", "position", "action_digest")
        told = [
            {name: value for name, value in each.__dict__.items() if name not in hidden}
            | {"proposed_at": moment(each.proposed_at), "changed_at": moment(each.changed_at)}
            for each in found
        ]
        print_json({"proposals": told} | ({} if refused is None else {"refused": refused}))
        return
    print_table(
        ("proposal", "action", "scan", "key", "by", "state", "why", "since"),
        [
            (
                each.name,
                each.action,
                f"{each.scan} {each.generation}",
                each.key,
                each.principal,
                each.state,
                each.reason,
                moment(each.changed_at),
            )
            for each in found
        ],
    )
