"""Where a round begins: at the checkpoint of the last accepted one, or with everything."""

from typing import Any

from scan_pipeline.core.chain import checkpoint_digest
from scan_pipeline.core.checkpoint import CHECKPOINT, SINCE, Since
from scan_pipeline.core.errors import KeyDestroyedError, TamperedError
from scan_pipeline.core.findings import finding
from scan_pipeline.core.page import Opening
from scan_pipeline.core.scan import Scan
from scan_pipeline.core.value import record
from scan_pipeline.sources.source import Source
from scan_pipeline.stages.shelf import pages_of
from scan_pipeline.stages.syncing.lineage import newest_lineage
from scan_pipeline.stages.walking.stopped import Stopped, stopped_by
from scan_pipeline.stages.walking.taken_up import Asker
from scan_pipeline.stages.workspace import Workspace
from scan_pipeline.store.events import Event, open_token
from scan_pipeline.store.generations import FIRST_WALK, GenerationStore


@record
class Beginning:
    """A checkpoint, opened.

    Attributes:
        since: where it stands.
        checkpoint: what it reads; never part of an event, receipt or log.
        store: tables of the generation that ended with it.
        opened: that generation's open event.
        lost: how a round stops whose checkpoint can no longer be opened; None where it was.
    """

    since: Since
    checkpoint: str
    store: GenerationStore
    opened: Event
    lost: Stopped | None = None

    def not_ours(self, now: Opening, source: Source) -> Stopped | None:
        """Say why nothing can be asked from the checkpoint on, None where something can.

        It may be lost, or another principal's.

        A principal that the source names is believed, whatever secret proves it by now; where it
        names none, the credential alone can tell.

        Args:
            now: what the source says of itself now.
            source: resolves its credential.
        """
        if self.lost is not None:
            return self.lost
        before = Opening(**self.opened.facts["before"])
        named = (now.principal, now.tenant)
        if named != (before.principal, before.tenant):
            told = finding("principal_changed", expected=before.principal, found=now.principal)
        elif now.principal is None and not Asker(source, self.store).is_same(self.opened):
            told = finding(
                "principal_changed",
                expected="the credential that the checkpoint was given to",
                found="another one",
            )
        else:
            return None
        return Stopped(traversal="interrupted", stop_reason="principal_changed", findings=(told,))


def begins(scan: Scan, beginning: Beginning | None) -> dict[str, Any]:
    """Return what an open event says of where its round begins; nothing where there are none."""
    if scan.source.checkpoint is None:
        return {}
    return {SINCE: None if beginning is None else dict(beginning.since.__dict__)}


def beginning_of(scan: Scan, store: GenerationStore, *, workspace: Workspace) -> Beginning | None:
    """Return where a generation's round begins, None where it asks for everything.

    A round that was begun goes on from where its open event says; a new one begins where the last
    accepted round ended. Where that checkpoint has expired, is another principal's, or can no
    longer be opened, it is a new baseline.

    Args:
        scan: the scan.
        store: tables of the generation.
        workspace: where the others lie.
    """
    if scan.source.checkpoint is None or scan.contract.mode != "sync":
        return None
    events = store.events()
    if events:
        told = events[0].facts.get(SINCE)
        return None if told is None else _gone_on(Since(**told), scan, workspace)
    lineage = newest_lineage(scan, workspace=workspace)
    if lineage is None or lineage.over is not None:
        return None
    tip = lineage.tip
    ended = tip.receipt.round
    if ended is None or ended.checkpoint is None:
        return None
    since = Since(
        generation=pages_of(tip.receipt),
        receipt_id=tip.receipt_id,
        checkpoint=ended.checkpoint,
    )
    try:
        return _opened(since, scan, workspace)
    except (KeyDestroyedError, TamperedError):  # the audit names it: it keeps no night from its own
        return None


def _gone_on(since: Since, scan: Scan, workspace: Workspace) -> Beginning:
    """Return where a round that broke off began; it must not go on from anywhere else."""
    try:
        return _opened(since, scan, workspace)
    except (KeyDestroyedError, TamperedError) as error:
        store = workspace.store(scan.name, since.generation)
        return Beginning(
            since=since,
            checkpoint="",
            store=store,
            opened=store.opened(),
            lost=stopped_by(error, page=1),
        )


def _opened(since: Since, scan: Scan, workspace: Workspace) -> Beginning:
    store = workspace.store(scan.name, since.generation)
    events = store.events()
    close = events[-1] if events else None
    found: str | None = None
    if close is not None and close.event == "close":
        found = open_token(
            close,
            scan=scan.name,
            generation=since.generation,
            shard=FIRST_WALK,
            sealer=store.sealer(),
            column="cursor_out",
        )
    if close is None or found is None or checkpoint_digest(found) != since.checkpoint:
        raise TamperedError(
            "pages",
            f"{scan.name} {since.generation} does not end with the checkpoint {since.checkpoint} "
            "that its receipt names",
        )
    if close.facts.get(CHECKPOINT) != since.checkpoint:
        raise TamperedError("pages", f"event {close.seq}: names another checkpoint than it holds")
    return Beginning(since=since, checkpoint=found, store=store, opened=events[0])
