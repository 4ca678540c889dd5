"""Proposals, and the one way each may go.

    proposed ──> releasing ──> done       the source said that it was done
        │            ├───────> unknown    sent, and no word of how it ended: never sent again
        │            ├───────> stale      the source refused it: another version (412)
        │            ├───────> failed     the source refused it, and did nothing
        │            └───────> proposed   no connection came about: nothing was sent
        ├──> stale                        read again, the record differs: nothing was sent
        └──> withdrawn                    by its proposer or a person, or its ground fell

Every step is one transaction that names the state it leaves, so that of two who take the same step
one finds it taken. Of one action on one version of one record no second proposal is kept while one
is under way, done, or unknown; an `unknown` one ends by a person who has looked.
"""

import secrets
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final, Literal, TypeAlias

from scan_pipeline.agents.failures import LedgerError
from scan_pipeline.agents.private_database import PrivateDatabase
from scan_pipeline.core.errors import ConfigurationError
from scan_pipeline.core.value import record

ProposalState: TypeAlias = Literal[
    "proposed", "releasing", "done", "unknown", "stale", "failed", "withdrawn"
]

_SCHEMA: Final = """
create table if not exists proposals (
  name text primary key, action text not null, action_digest text not null, scan text not null,
  generation text not null, receipt_id text not null, handle text not null, row integer not null,
  page integer not null, position integer not null, key text not null, version text not null,
  principal text not null, tenant text, idempotency_key text not null, state text not null,
  reason text not null, proposed_at real not null, changed_at real not null,
  released_by text) strict;
create unique index if not exists proposed_once on proposals (action, scan, key, version)
  where state in ('proposed', 'releasing', 'done', 'unknown');
"""


@record
class Proposal:
    """One action, proposed about one version of one record.

    Attributes:
        name: its opaque name.
        action: the action's name in the policy.
        action_digest: what that action did then.
        scan: of which scan.
        generation: the generation that the record was read in.
        receipt_id: that generation's receipt.
        handle: the question under which it was read.
        row: its number there.
        page: page of the walk on which it came.
        position: its place on that page.
        key: its key, canonical JSON.
        version: its leaf hash, hex.
        principal: who proposed it.
        tenant: of which tenant.
        idempotency_key: what its request is called towards the source.
        state: how far it is.
        reason: why it is there, in words without values.
        proposed_at: seconds since the epoch.
        changed_at: the same, of its last step.
        released_by: who released it; None where nobody did, `policy` where it was automatic.
    """

    name: str
    action: str
    action_digest: str
    scan: str
    generation: str
    receipt_id: str
    handle: str
    row: int
    page: int
    position: int
    key: str
    version: str
    principal: str
    tenant: str | None
    idempotency_key: str
    state: ProposalState
    reason: str
    proposed_at: float
    changed_at: float
    released_by: str | None = None


class AlreadyProposedError(ConfigurationError):
    """The same action on the same version of the same record is under way, done, or unknown."""


class Proposals:
    """All proposals of a project, in a file beside the readers' ledger, 0600; none is forgotten.

    Args:
        path: the file; made where it is not there.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._database = PrivateDatabase(path, schema=_SCHEMA, what="the proposals", durable=True)

    def add(self, proposal: Proposal) -> None:
        """Keep a new proposal.

        Raises:
            AlreadyProposedError: it must not be done twice.
        """
        try:
            self._database.insert("proposals", proposal)
        except LedgerError as error:
            if not isinstance(error.__cause__, sqlite3.IntegrityError):
                raise
            raise AlreadyProposedError(
                f"{proposal.action} is proposed, under way, done or unknown for this version of "
                "this record; expected to do it once"
            ) from error

    def find(self, name: str) -> Proposal | None:
        """Return a proposal, or None."""
        return next(iter(self._select("where name = ?", name)), None)

    def all(self, *, principal: str | None = None) -> list[Proposal]:
        """Return the proposals of one principal, or of all, oldest first."""
        order = "order by proposed_at, name"
        if principal is None:
            return self._select(order)
        return self._select(f"where principal = ? {order}", principal)

    def step(
        self,
        name: str,
        *,
        leaves: ProposalState,
        to: ProposalState,
        reason: str,
        now: float,
        by: str | None = None,
    ) -> bool:
        """Take one step, if the proposal is still where it begins; return whether it was.

        Args:
            name: which proposal.
            leaves: the state it must be in.
            to: the state it goes to.
            reason: why, without values.
            now: seconds since the epoch.
            by: who releases it; kept where this step does not tell.
        """
        with self._database.opened() as database:
            done = database.execute(
                "update proposals set state = ?, reason = ?, changed_at = ?, "
                "released_by = case ? when 'proposed' then null else coalesce(?, released_by) end "
                "where name = ? and state = ?",
                (to, reason, now, to, by, name, leaves),
            )
            return done.rowcount == 1

    def _select(self, how: str, *values: str) -> list[Proposal]:
        return self._database.select(Proposal, "proposals", how, *values)


class ReleaseLock:
    """Held by who releases; what dies lets go of it.

    A transaction that is held open on a file of its own: SQLite's locks are the operating
    system's, which frees those of a process that ended however it ended. So whoever holds it knows
    that a proposal found in `releasing` was left there.

    Args:
        path: the file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    @contextmanager
    def held(self, *, wait: float) -> Iterator[bool]:
        """Hold it, waiting so many seconds at most; yields whether it is held."""
        self._path.touch(mode=0o600)
        connection = sqlite3.connect(self._path, timeout=wait, isolation_level=None)
        with closing(connection) as database:
            try:
                database.execute("begin exclusive")
            except sqlite3.OperationalError:
                yield False
                return
            yield True


def new_idempotency_key() -> str:
    """Return a name for a request that no other has."""
    return secrets.token_hex(16)
