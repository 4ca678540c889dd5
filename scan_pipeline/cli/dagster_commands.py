"""`launch` and `ui`: the commands that reach Dagster, and the only module that may.

Both work in the project's persistent home: without one, Dagster forgets its partitions.
"""

import os
import signal
import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from scan_pipeline.cli.exit_codes import ExitCode, code_of_acceptance
from scan_pipeline.cli.output import json_option, print_json, say
from scan_pipeline.cli.settings import Settings
from scan_pipeline.core.errors import ConfigurationError, ContractError, GateClosedError

if TYPE_CHECKING:
    import dagster as dg

    from scan_pipeline.store.project import Project

SHIPPED_DEFINITIONS: Final = "scan_pipeline.definitions"


@click.command()
@click.argument("scan", metavar="NAME|FILE")
@json_option
@click.pass_obj
def launch(settings: Settings, *, scan: str, as_json: bool) -> ExitCode:
    """Begin a new generation through Dagster, wait for it, and show its receipt."""
    from scan_pipeline.cli.account import Filed, print_account
    from scan_pipeline.core.receipt import last_stop_reason
    from scan_pipeline.core.receipt_statement import receipt_json

    contract, workspace = settings.scan(scan), settings.workspace()
    generations = _Generations(settings, scan=contract.name)
    generation = generations.fresh()
    while True:
        succeeded = generations.run(generation)
        try:
            stored = settings.receipt(contract.name, generation)
        except GateClosedError:
            if succeeded:
                raise
            say(f"{contract.name} {generation}: the run failed before there was a receipt")
            return ExitCode.COULD_NOT_RUN
        stopped = last_stop_reason(stored.receipt)
        following = generations.attempt_after(generation, stopped, contract)
        if following is None:
            break
        say(f"began again after {stopped}: {stored.receipt.statement}")
        generation = following
    receipt = stored.receipt
    path = workspace.lake.receipt_path(receipt.scan, receipt.scan_generation)
    if as_json:
        print_json(
            {"receipt_id": stored.receipt_id, "path": path, "receipt": receipt_json(receipt)}
        )
    else:
        print_account(Filed(receipt=receipt, receipt_id=stored.receipt_id, path=path))
    return code_of_acceptance(accepted=receipt.accepted)


@click.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port", type=click.IntRange(1, 65535), default=3000, show_default=True, help="Its port."
)
@click.pass_obj
def ui(settings: Settings, *, host: str, port: int) -> ExitCode:
    """Serve Dagster's UI and daemon on the project's persistent home."""
    project = settings.project()
    environ = {**settings.environ, **places(project)}
    folder, target = code_location(settings)
    command = [sys.executable, "-m", "dagster", "dev", "--host", host, "--port", str(port)]
    say(f"Dagster's home is {project.dagster_home}; http://{host}:{port}")
    os.chdir(folder)
    os.execve(sys.executable, [*command, *target], environ)  # noqa: S606  # our own interpreter


class _Generations:
    """Begins generations of one scan in the project's Dagster, and waits for them."""

    def __init__(self, settings: Settings, *, scan: str) -> None:
        self._scan = scan
        project = settings.project()
        # Assets open the lake by their own environment; it must be the one asked for here.
        os.environ.update(places(project))
        import dagster as dg

        self._workspace = settings.workspace()
        self._instance = dg.DagsterInstance.get()
        self._job = _job(_definitions(settings), f"{scan}_generation")

    def fresh(self) -> str:
        """Return the name of a generation that begins now."""
        from scan_pipeline.stages.run import free_generation
        from scan_pipeline.store.generations import next_attempt

        generation = free_generation(self._scan, workspace=self._workspace)
        while self._instance.has_dynamic_partition(self._partitions, generation):
            generation = next_attempt(generation)
        return generation

    def run(self, generation: str) -> bool:
        """Run all stages of a generation; say whether Dagster calls that a success."""
        import dagster as dg

        self._instance.add_dynamic_partitions(self._partitions, [generation])
        before = signal.signal(signal.SIGTERM, signal.default_int_handler)
        try:
            result = self._job.execute_in_process(
                instance=self._instance,
                partition_key=generation,
                raise_on_error=False,
                run_config={"loggers": {"console": {"config": {"log_level": "INFO"}}}},
            )
        except (KeyboardInterrupt, dg.DagsterExecutionInterruptedError):
            return False  # the walk was closed and certified on its way out
        finally:
            signal.signal(signal.SIGTERM, before)
        return result.success

    def attempt_after(self, generation: str, stop_reason: str, contract: Any) -> str | None:
        """Return the attempt that follows one that expired, None where none does."""
        from scan_pipeline.components.restarts import attempt_after

        return attempt_after(generation, stop_reason, scan=contract)

    @property
    def _partitions(self) -> str:
        return f"{self._scan}_generations"


def places(project: "Project") -> dict[str, str]:
    """Return the variables by which another process finds the same places; make the home."""
    from scan_pipeline.components.home import prepare_home
    from scan_pipeline.store.project import VARIABLES

    prepare_home(project.dagster_home)
    return {variable: str(getattr(project, name)) for name, variable in VARIABLES.items()}


def code_location(settings: Settings) -> tuple[Path, list[str]]:
    """Return where `dagster dev` is started, and what tells it where the definitions are."""
    root = settings.project().root
    folders = [settings.folder] if root is None else [root, settings.folder]
    for folder in folders:
        if (folder / "workspace.yaml").is_file():
            return folder, ["-w", "workspace.yaml"]
    return folders[0], ["-m", _module(settings)]


def _module(settings: Settings) -> str:
    from scan_pipeline.stages.scan_lookup import dg_project

    table = dg_project(settings.folder)
    if table is None:
        return SHIPPED_DEFINITIONS
    return str(
        table.get("code_location_target_module") or f"{table.get('root_module')}.definitions"
    )


def _definitions(settings: Settings) -> "dg.Definitions":
    """Load the project's definitions.

    Raises:
        ConfigurationError: the module that should hold them cannot be imported or holds none.
    """
    import dagster as dg
    from dagster.components.definitions import LazyDefinitions

    from scan_pipeline.sources.adapter_loading import make_importable

    name = _module(settings)
    make_importable(settings.folder / "pyproject.toml")  # a project need not be installed
    try:
        module = import_module(name)
    except ImportError as error:
        raise ConfigurationError(
            f"{name} cannot be imported: {error}; expected the project's definitions: install the "
            "project into this environment"
        ) from error
    for value in vars(module).values():
        if isinstance(value, dg.Definitions):
            return value
        if isinstance(value, LazyDefinitions):
            return value()
    raise ConfigurationError(f"{name} holds no definitions; expected a `@dg.definitions` function")


def _job(definitions: "dg.Definitions", name: str) -> "dg.JobDefinition":
    found = {each.name: each for each in definitions.resolve_all_job_defs()}
    if name not in found:
        raise ContractError(
            f"found no job {name} in Dagster; expected one of: {', '.join(sorted(found))}. A scan "
            "is known there by its file below the project's defs"
        )
    return found[name]
