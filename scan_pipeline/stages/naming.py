"""Names for generations that do not exist yet."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from scan_pipeline.core.errors import ContractError
from scan_pipeline.stages.workspace import Workspace
from scan_pipeline.store.generations import GENERATION_FORMAT, new_generation, next_attempt
from scan_pipeline.store.receipts import generation_order

_TRIED = 100


def free_generation(scan: str, *, workspace: Workspace) -> str:
    """Return the name of a generation that begins now and does not exist yet.

    It sorts after every generation that the lake knows: the newest name is the newest night. Where
    the clock stands behind the newest one (it was set back, or another host's is ahead), the name
    is that of a further attempt of it.

    Raises:
        ContractError: so many names are taken by files that are no receipts.
    """
    name, newest = new_generation(workspace.clock()), newest_known(scan, workspace=workspace)
    if newest is not None and generation_order(newest) >= generation_order(name):
        name = next_attempt(newest)
    return _free(scan, name, workspace=workspace)


def free_attempt(scan: str, generation: str, *, workspace: Workspace) -> str:
    """Return the name of the next attempt after a generation that does not exist yet.

    Raises:
        ContractError: too many of them exist.
    """
    return _free(scan, next_attempt(generation), workspace=workspace)


def newest_known(scan: str, *, workspace: Workspace) -> str | None:
    """Return the newest generation that was walked or certified, None where there is none."""
    return max(_known(scan, workspace=workspace), key=generation_order, default=None)


def free_night(
    scans: Iterable[str], *, moment: str, known: Iterable[str], workspace: Workspace
) -> str:
    """Return the name of a generation that begins for several scans at once.

    It sorts after everything that any of them knows and is an attempt of nothing: what is read
    together is known by the second in its name.

    Args:
        scans: names of the scans.
        moment: the name that it would have of its own, e.g. `20261130T020000Z`.
        known: names that are taken although nothing was walked under them yet.
        workspace: where.
    """
    newest = [newest_known(each, workspace=workspace) for each in scans]
    taken = [generation_order(each)[0] for each in (*newest, *known) if each is not None]
    last = max(taken, default="")
    if last < moment:
        return moment
    after = datetime.strptime(last, GENERATION_FORMAT).replace(tzinfo=UTC) + timedelta(seconds=1)
    return new_generation(after)


def check_is_newest(scan: str, generation: str, *, workspace: Workspace) -> None:
    """Refuse to begin a generation that would hide behind one that is there.

    Raises:
        ContractError: the lake knows a newer one.
    """
    newest = newest_known(scan, workspace=workspace)
    if newest is not None and generation_order(newest) > generation_order(generation):
        raise ContractError(
            f"{scan} {generation}: found {newest}, which sorts after it; expected a new generation "
            "to be the newest, or readers would take the older one for it: look at this host's "
            "clock and time zone, or begin a generation with a newer name"
        )


def _known(scan: str, *, workspace: Workspace) -> set[str]:
    walked = workspace.store(scan, "20000101T000000Z").pages().generations()
    return {*walked, *workspace.receipts(scan).committed_generations()}


def _free(scan: str, name: str, *, workspace: Workspace) -> str:
    taken = {*_known(scan, workspace=workspace), *workspace.receipts(scan).generations()}
    for _ in range(_TRIED):
        if name not in taken:
            return name
        name = next_attempt(name)
    raise ContractError(
        f"{scan}: found {_TRIED} attempts up to {name}; expected a free name: wait a second"
    )
