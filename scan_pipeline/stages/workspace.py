"""Where the stages work: a project's places, its keys, and the world outside as arguments."""

import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path

import httpx2

from scan_pipeline.core.acknowledgement import Acknowledgement
from scan_pipeline.core.amendment import Amendment
from scan_pipeline.core.current_pin import CurrentPin
from scan_pipeline.core.hold import Hold
from scan_pipeline.core.scan import Scan
from scan_pipeline.sources.catalogue import open_source
from scan_pipeline.sources.http.rates import PROCESS, HostBudgets
from scan_pipeline.sources.source import Source
from scan_pipeline.sources.surroundings import Surroundings
from scan_pipeline.store.generations import GenerationStore
from scan_pipeline.store.keys import Creation, data_key, signing_signer
from scan_pipeline.store.lake import Lake
from scan_pipeline.store.project import Project, find_project
from scan_pipeline.store.receipts import ReceiptStore
from scan_pipeline.store.sealing import Sealer
from scan_pipeline.store.signed_notes import (
    NoteStore,
    acknowledgement_store,
    amendment_store,
    current_pin_store,
    hold_store,
)
from scan_pipeline.store.trust import Trust

SIMULATOR = "simulator://"
SAMPLE_TOKEN = "REGISTRY_TOKEN"  # noqa: S105  # the name of a variable


def utc_now() -> datetime:
    """Return the time in UTC."""
    return datetime.now(UTC)


class Workspace:
    """One project, opened for work.

    Args:
        project: its places.
        environ: where secrets are looked up when sending.
        inner: HTTP transport for every source; None for the network, or for the simulator in
            this process where a source's address begins with `simulator://`.
        clock: time in UTC.
        sleep: waits so many seconds.
        budgets: how often hosts were asked; by default one for this process.
    """

    def __init__(
        self,
        project: Project,
        *,
        environ: Mapping[str, str],
        inner: httpx2.BaseTransport | None = None,
        clock: Callable[[], datetime] = utc_now,
        sleep: Callable[[float], None] = time.sleep,
        budgets: HostBudgets = PROCESS,
    ) -> None:
        self._budgets = budgets
        self.project, self.environ = project, environ
        self.clock, self.sleep = clock, sleep
        self.lake = Lake(root=project.lake)
        self._inner = inner

    def at(self, project: Project) -> "Workspace":
        """Return the same surroundings for work in another place."""
        return Workspace(
            project,
            environ=self.environ,
            inner=self._inner,
            clock=self.clock,
            sleep=self.sleep,
        )

    def source(self, scan: Scan, *, sleep: Callable[[float], None] | None = None) -> Source:
        """Open a scan's source; nothing is sent yet."""
        return open_in_world(
            scan,
            environ=self.environ,
            inner=self._inner,
            clock=self.clock,
            sleep=sleep or self.sleep,
            budgets=self._budgets,
        )

    def store(
        self,
        scan: str,
        generation: str,
        *,
        evidence: str | None = None,
        create: Creation = "never",
    ) -> GenerationStore:
        """Return a generation's tables; keys are looked up when something is sealed or opened."""

        def new_sealer() -> Sealer:
            return Sealer(data_key(self.project, scan=scan, now=self.clock(), create=create))

        return GenerationStore(
            self.lake, scan=scan, generation=generation, new_sealer=new_sealer, evidence=evidence
        )

    def receipts(self, scan: str) -> ReceiptStore:
        """Return the receipts of a scan."""
        return ReceiptStore(self.lake, scan)

    def amendments(self, scan: str) -> NoteStore[Amendment]:
        """Return what was taken out of a scan's sealed generations, as it was signed."""
        return amendment_store(self.lake, scan)

    def holds(self, scan: str) -> NoteStore[Hold]:
        """Return which generations of a scan are held."""
        return hold_store(self.lake, scan)

    def acknowledgements(self, scan: str) -> NoteStore[Acknowledgement]:
        """Return the acknowledgements of a scan's withheld receipts."""
        return acknowledgement_store(self.lake, scan)

    def current_pins(self, scan: str) -> NoteStore[CurrentPin]:
        """Return what was signed for the versions of a scan's current table."""
        return current_pin_store(self.lake, scan)

    def begin(self, scan: str) -> None:
        """Make sure of the keys before anything is written, creating them for a fresh local lake.

        Raises:
            ConfigurationError: a key is missing and may not be begun here.
        """
        now = self.clock()
        signing_signer(self.project, now=now)
        data_key(self.project, scan=scan, now=now)

    @cached_property
    def trust(self) -> Trust:
        """The keys whose receipts are believed."""
        return Trust.load(self.project.trust, lake=self.project.lake)


def open_world(
    url: str,
    *,
    environ: Mapping[str, str],
    inner: httpx2.BaseTransport | None = None,
    clock: Callable[[], datetime] = utc_now,
    sleep: Callable[[float], None] = time.sleep,
) -> tuple[Mapping[str, str], httpx2.BaseTransport | None]:
    """Return where a source's secrets are looked up and what carries its requests.

    The sample registry runs in this process; its token is public, so that a first run needs no
    set-up.

    Args:
        url: address of the source.
        environ: the variables.
        inner: the HTTP transport, None for the one that the address calls for.
        clock: time in UTC.
        sleep: waits so many seconds.
    """
    if not url.startswith(SIMULATOR):
        return environ, inner
    # Imported here: only scans of the sample registry pay for it.
    from scan_pipeline.simulator.principals import AUDITOR_TOKEN  # noqa: PLC0415
    from scan_pipeline.simulator.registry import Registry  # noqa: PLC0415
    from scan_pipeline.simulator.transport import SimulatorTransport  # noqa: PLC0415

    environ = {SAMPLE_TOKEN: AUDITOR_TOKEN, **environ}
    return environ, inner or SimulatorTransport(Registry(clock=clock), sleep=sleep)


def open_in_world(
    scan: Scan,
    *,
    environ: Mapping[str, str],
    inner: httpx2.BaseTransport | None = None,
    clock: Callable[[], datetime] = utc_now,
    sleep: Callable[[float], None] = time.sleep,
    budgets: HostBudgets = PROCESS,
) -> Source:
    """Open a scan's source without any lake; nothing is sent yet. Arguments as `Workspace`."""
    url = str(getattr(scan.source, "url", ""))
    environ, inner = open_world(url, environ=environ, inner=inner, clock=clock, sleep=sleep)
    rate = scan.operation.rate
    surroundings = Surroundings(
        environ=environ,
        inner=inner,
        clock=clock,
        sleep=sleep,
        retries=scan.operation.retries,
        pace=rate and budgets.pace(rate, clock=clock),
    )
    return open_source(scan, surroundings)


def open_workspace(
    *, lake: str | None = None, cwd: Path | None = None, environ: Mapping[str, str]
) -> Workspace:
    """Open the workspace of the project around a folder."""
    project = find_project(lake=lake, cwd=cwd or Path.cwd(), environ=environ)
    return Workspace(project, environ=environ)
