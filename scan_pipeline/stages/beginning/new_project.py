"""`init`: a project's files, each made once and none written over, and then its keys.

Where a project is already, only the keys are begun that it lacks. That is also how a remote lake
gets its keys: a run into one never makes them, since it cannot see what they would have to vouch
for.
"""

from collections.abc import Callable, Iterable
from datetime import datetime
from pathlib import Path
from typing import Final

from scan_pipeline.core.errors import ContractError
from scan_pipeline.core.value import record
from scan_pipeline.stages.beginning.project_files import (
    OFTEN_THERE,
    SAMPLE,
    component_file,
    defs_file,
    package_in,
    project_texts,
)
from scan_pipeline.stages.beginning.schema_line import SCHEMA_FILE, line_to
from scan_pipeline.stages.scan_lookup import dg_project, scan_names
from scan_pipeline.store.keys import SIGNING_KEY_FILE, data_key, signing_signer
from scan_pipeline.store.project import Project, has_table
from scan_pipeline.store.trust import Trust

LOCAL_LAKE: Final = "data/lake"

TABLE: Final = """\
[tool.scan_pipeline]
lake = "data/lake"
keys = "data/keys"
trust = "scan_pipeline_trust.json"
dagster_home = "data/dagster_home"
"""
"""What a pyproject.toml says of scan_pipeline's places, relative to itself."""


@record
class DraftedScan:
    """A scan that was drafted for a new project.

    Attributes:
        name: of the scan.
        text: the scan file.
        whole: whether nothing is left that only a person can fill in.
    """

    name: str
    text: str
    whole: bool


@record
class BegunProject:
    """What a folder holds now.

    Attributes:
        folder: of the project.
        package: its Python package; None where the project was there before.
        sample: name of the sample scan; None likewise.
        written: files that were made, below the folder.
        kept: files that were there and stay as they are.
        drafted: the file of the drafted scan; None where none was asked for.
    """

    folder: Path
    package: str | None = None
    sample: str | None = None
    written: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    drafted: str | None = None


@record
class BegunKeys:
    """The keys of a project.

    Attributes:
        fingerprint: of the public key whose receipts are believed, newest first.
        signing_begun: whether the signing key was made now.
        sealing_begun: scans whose data key was made now.
    """

    fingerprint: str
    signing_begun: bool
    sealing_begun: tuple[str, ...]


def begin_project(
    folder: Path, *, lake: str | None = None, drafted: DraftedScan | None = None
) -> BegunProject:
    """Make a project in a folder; one that is there is left as it is.

    Args:
        folder: where; made where it is missing.
        lake: where its lake will be, None for a folder of the project.
        drafted: a scan to be put beside the sample.

    Raises:
        ContractError: the folder holds something else that a project would write over. Nothing
            was written then.
    """
    if has_table(folder):
        if drafted is not None:
            raise ContractError(
                f"{folder} is a project already; expected a new one for --from. In this one: "
                "scan-pipeline draft URL --out FILE"
            )
        return BegunProject(folder=folder, kept=("pyproject.toml",))
    package = package_in(folder)
    sample = SAMPLE if drafted is None or drafted.name != SAMPLE else f"sample_{SAMPLE}"
    texts = project_texts(package, lake=lake or LOCAL_LAKE, sample=sample)
    place = None
    if drafted is not None:
        # A file with gaps would keep Dagster from loading any scan of the project.
        place = defs_file(package, drafted.name) if drafted.whole else f"drafts/{drafted.name}.yaml"
        line = line_to(Path(SCHEMA_FILE), folder=Path(place).parent)
        texts[place] = component_file(drafted.text, line=line)
    there = [name for name in texts if (folder / name).exists()]
    # What an init wrote that broke off is there already, and is not in the way of the next.
    others = [name for name in there if not _holds(folder / name, texts[name])]
    in_the_way = [name for name in others if name not in OFTEN_THERE]
    if in_the_way:
        raise ContractError(_told_of(folder, in_the_way))
    written = tuple(name for name in texts if name not in there)
    for name in sorted(written, key=lambda each: each == "pyproject.toml"):  # last: it says whole
        _write(folder / name, texts[name])
    return BegunProject(
        folder=folder,
        package=package,
        sample=sample,
        written=written,
        kept=tuple(there),
        drafted=place,
    )


def begin_keys(
    project: Project, *, scans: Iterable[str] = (), clock: Callable[[], datetime]
) -> BegunKeys:
    """Begin the keys that a project lacks: one that signs, and one a scan that seals.

    Each file is made once, for this user alone; of two that begin at once, one makes it.

    Args:
        project: its places.
        scans: names of scans beside those below the project's own defs.
        clock: time in UTC.

    Raises:
        ConfigurationError: a key is missing where something rests on it already; or the folder of
            keys is open to others.
    """
    before = _files_in(project.keys)
    signing_signer(project, now=clock(), create="init")
    for scan in sorted({*_own_scans(project), *scans}):
        data_key(project, scan=scan, now=clock(), create="init")
    made = _files_in(project.keys) - before
    trust = Trust.load(project.trust, lake=project.lake)
    ends = ".data_key.json"
    return BegunKeys(
        fingerprint=trust.keys[-1].fingerprint,
        signing_begun=SIGNING_KEY_FILE in made,
        sealing_begun=tuple(sorted(n.removesuffix(ends) for n in made if n.endswith(ends))),
    )


def _own_scans(project: Project) -> list[str]:
    """Return the scans below the project's defs; a folder that is no project of `dg` has none."""
    root = project.root
    return [] if root is None or dg_project(root) is None else scan_names(root)


def _files_in(folder: Path) -> set[str]:
    return {each.name for each in folder.glob("*")}


def _told_of(folder: Path, in_the_way: list[str]) -> str:
    shown = ", ".join(in_the_way)
    if "pyproject.toml" not in in_the_way:
        return f"{folder} holds {shown} already; expected a folder where nothing is written over"
    return (
        f"{folder} holds {shown} already, and nothing is written over; expected a new folder. In a "
        f"project that exists, add these lines to its pyproject.toml and call init again for its "
        f"keys; a scan is then made by `dg scaffold defs scan_pipeline.components.Scan NAME`:\n\n"
        f"{TABLE}"
    )


def _holds(path: Path, text: str) -> bool:
    return path.is_file() and path.read_bytes() == text.encode()


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError as error:
        raise ContractError(f"{path} is there already; expected to make it, and left it") from error
