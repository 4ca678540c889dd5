"""What every command is given: the lake, the project's folder, the surroundings."""

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from scan_pipeline.cli.output import say
from scan_pipeline.core.value import record

if TYPE_CHECKING:
    from scan_pipeline.core.scan import Scan
    from scan_pipeline.stages.workspace import Workspace
    from scan_pipeline.store.project import Project
    from scan_pipeline.store.receipts import ReceiptStore, StoredReceipt
    from scan_pipeline.store.trust import Trust


@record
class Settings:
    """The global options. A command pays only for what it asks for, hence the late imports.

    Attributes:
        lake: `--lake`, None where it was not given.
        folder: `--project`, else the working folder; where the search for a project begins.
        environ: the variables.
        trials: `--trials`, to read what trials left instead of the scans' own nights.
    """

    lake: str | None
    folder: Path
    environ: Mapping[str, str]
    trials: bool = False

    def project(self) -> "Project":
        """Find the places of the project; see `find_project`."""
        from scan_pipeline.store.project import find_project

        found = find_project(lake=self.lake, cwd=self.folder, environ=self.environ)
        if not self.trials:
            return found
        from scan_pipeline.stages.trial_place import trials_of

        return trials_of(found)

    def workspace(self, *, sleep: Callable[[float], None] = time.sleep) -> "Workspace":
        """Open the project for work."""
        from scan_pipeline.stages.workspace import Workspace

        return Workspace(self.project(), environ=self.environ, sleep=sleep)

    def scan(self, named: str) -> "Scan":
        """Return the scan of a name or file.

        Raises:
            ContractError: there is none, or its file does not parse.
        """
        from scan_pipeline.stages.scan_lookup import find_scan

        return find_scan(named, folder=self.folder).parse()

    def contract(self, named: str, generation: str | None, *, workspace: "Workspace") -> "Scan":
        """Return the contract a reader means: the scan's file, else what a generation says.

        A scan that was run from a file is read by its name too: under the contract that its
        generation was walked under, as the lake tells it. So is a trial, which has its own.

        Raises:
            ContractError: there is no such scan, neither in the project nor in the lake.
        """
        from scan_pipeline.stages.scan_lookup import UnknownScanError
        from scan_pipeline.stages.stored_contract import stored_contract

        if self.trials:
            return stored_contract(self.name(named), generation, workspace=workspace)
        try:
            return self.scan(named)
        except UnknownScanError as error:
            if not self.receipts(named).generations():
                raise UnknownScanError(
                    f"{error}. The lake at {workspace.project.lake} holds no receipt of it either"
                ) from error
        return stored_contract(self.name(named), generation, workspace=workspace)

    def name(self, named: str) -> str:
        """Return the scan's name, given that name or its file.

        Raises:
            ContractError: neither a readable file nor a name that project or lake knows.
            ConfigurationError: there is no lake.
        """
        from scan_pipeline.store.lake import check_name
        from scan_pipeline.store.project import is_file

        if not is_file(named):
            self._check_known(check_name(named))
            return named
        from scan_pipeline.stages.scan_lookup import scan_name

        return scan_name(Path(named))

    def _check_known(self, name: str) -> None:
        """Refuse a name that nobody knows, and a lake that is not there.

        Raises:
            UnknownScanError: the lake holds no receipt of it, and the project no file.
            ConfigurationError: there is no lake.
        """
        from scan_pipeline.core.errors import ConfigurationError
        from scan_pipeline.store.lake import Lake
        from scan_pipeline.store.receipts import ReceiptStore

        project = self.project()
        if ReceiptStore(Lake(root=project.lake), name).generations():
            return  # nothing more is read: a reader of receipts pays for no project
        from scan_pipeline.stages.scan_lookup import UnknownScanError, find_scan

        try:
            find_scan(name, folder=self.folder)
        except UnknownScanError as error:
            if not _holds(project.lake, name):
                raise UnknownScanError(
                    f"{error}. The lake at {project.lake} holds nothing of it either"
                ) from error
        if project.local_lake is not None and not project.local_lake.is_dir():
            raise ConfigurationError(
                f"found no lake at {project.lake}; expected one, as the first run makes it: "
                f"scan-pipeline run {name}"
            )

    def receipts(self, named: str) -> "ReceiptStore":
        """Return a scan's receipts; reading them needs no table engine."""
        from scan_pipeline.store.lake import Lake
        from scan_pipeline.store.receipts import ReceiptStore

        return ReceiptStore(Lake(root=self.project().lake), self.name(named))

    def receipt(self, named: str, generation: str | None) -> "StoredReceipt":
        """Return the receipt of a generation, the newest one for None, signature checked.

        Raises:
            GateClosedError: there is none.
            TamperedError: it is not what was signed.
        """
        from scan_pipeline.store.trust import Trust

        project, receipts = self.project(), self.receipts(named)
        trust = Trust.load(project.trust, lake=project.lake)
        chosen = generation or newest(receipts, self.name(named), trust=trust)
        return receipts.read(chosen, trust=trust)


def _holds(lake: str, scan: str) -> bool:
    """Say whether a lake holds pages of a scan, certified or not."""
    from scan_pipeline.store.lake import Lake

    return Lake(root=lake).exists(f"{lake}/evidence/{scan}")


def newest(receipts: "ReceiptStore", scan: str, *, trust: "Trust") -> str:
    """Return the newest generation that has a receipt; files that are none are told and passed by.

    Raises:
        GateClosedError: none has.
    """
    from scan_pipeline.core.errors import GateClosedError
    from scan_pipeline.store.receipts import Untrusted

    for generation in reversed(receipts.generations()):
        found = receipts.look(generation, trust=trust)
        if not isinstance(found, Untrusted):
            return generation
        say(f"{scan} {generation}: no receipt of it is filed there: {found.reason}")
    raise GateClosedError(
        scan=scan, generation=None, reason=f"no receipt; expected one: scan-pipeline run {scan}"
    )
