"""A scan file as text: its facts, and every problem with the line it stands on.

The file is a mapping of attributes, or a Dagster component file that holds such a mapping under
`attributes`. What is no plain fact to every reader of YAML is refused; see `yaml_facts`.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from scan_pipeline.core.errors import ContractError
from scan_pipeline.core.scan import SCAN_NAME, Scan
from scan_pipeline.core.value import record
from scan_pipeline.sources.face_settings import FACE, read_settings
from scan_pipeline.sources.field_names import unlisted
from scan_pipeline.sources.file_problems import Problem, ScanFileError
from scan_pipeline.sources.yaml_facts import (
    FactsReader,
    FileProblem,
    kind_of,
    line_at,
    line_of,
    may_be_secret,
)

COMPONENT_FIELDS: Final = frozenset(
    {"type", "attributes", "template_vars_module", "requirements", "post_processing"}
)
"""Top-level fields of a Dagster component file (ComponentFileModel of dagster 1.13.27)."""

SCAN_TYPE: Final = "scan_pipeline.components.Scan"
"""The type of a component that is a scan, whatever else its file holds."""

_MISNAMED: Final = Problem(
    at=("name",),
    message="found a name that cannot name tables; expected a small letter, then small letters, "
    "digits and _",
)
_TRIAL: Final = Problem(
    at=("contract", "mode"),
    message="found trial; expected full or bounded: a trial is asked for by the command, "
    "scan-pipeline run FILE --trial PAGES",
)


class LocatedScanFileError(ScanFileError):
    """A scan file does not parse.

    Attributes:
        path: the file.
        located: everything that is wrong, in order of line.
    """

    def __init__(self, path: Path, located: tuple[FileProblem, ...]) -> None:
        super().__init__(tuple(Problem(at=each.at, message=each.message) for each in located))
        self.path, self.located = path, located

    def __str__(self) -> str:
        lines = (f"{self.path}:{p.line}: {p.field}: {p.message}" for p in self.located)
        return "\n".join(lines)


@record
class ScanDocument:
    """One scan of a file, composed and not yet judged.

    Attributes:
        path: the file.
        node: the mapping of attributes.
        attributes: the same as plain values.
        problems: what is wrong with the text itself.
    """

    path: Path
    node: yaml.Node
    attributes: Mapping[str, Any]
    problems: tuple[FileProblem, ...]

    @property
    def name(self) -> str | None:
        """The scan's name, None where there is no text for one."""
        name = self.attributes.get("name")
        return name if isinstance(name, str) else None

    def parse(self) -> Scan:
        """Return the scan; what it names by dotted path is looked for beside the file too.

        Raises:
            LocatedScanFileError: everything that is wrong, line by line.
        """
        if self.problems and not self.attributes:
            raise self.refused()
        # Imported here: whoever looks at a file and does not judge it pays for no protocol.
        from scan_pipeline.sources.adapter_loading import make_importable  # noqa: PLC0415
        from scan_pipeline.sources.catalogue import parse_scan  # noqa: PLC0415

        make_importable(self.path)
        try:
            scan = parse_scan(self.attributes)
        except ScanFileError as error:
            # What the text does not plainly say is told once, not again by its type.
            doubtful = {each.at for each in self.problems}
            wrong = [self.located(p) for p in error.problems if p.at not in doubtful]
            raise self.refused(*wrong) from error
        wrong = [] if re.fullmatch(SCAN_NAME, scan.name) else [self.located(_MISNAMED)]
        wrong += [self.located(_TRIAL)] if scan.contract.mode == "trial" else []
        if wrong or self.problems:
            raise self.refused(*wrong)
        return scan

    def located(self, problem: Problem) -> FileProblem:
        """Give a problem of the parsed attributes the line it stands on."""
        told = problem.message
        if may_be_secret(problem.at):
            told = f"{told.partition(', found')[0]}; what stands here is not shown"
        return FileProblem(line=line_of(self.node, problem.at), at=problem.at, message=told)

    def refused(self, *added: FileProblem) -> LocatedScanFileError:
        """Return the error that tells the text's problems and these, in order of line."""
        once = dict.fromkeys((*self.problems, *added))
        return LocatedScanFileError(self.path, tuple(sorted(once, key=lambda each: each.line)))


def read_scan_file(path: Path) -> ScanDocument:
    """Read a file that holds one scan.

    Raises:
        LocatedScanFileError: it is not YAML.
        ContractError: it cannot be read, or holds no scan, or several.
    """
    documents = read_documents(path)
    if not documents:
        raise ContractError(
            f"{path} holds no scan (another component is none); expected one mapping with name, "
            "source and contract"
        )
    if len(documents) != 1:
        names = ", ".join(each.name or "(without a name)" for each in documents)
        raise ContractError(
            f"{path} holds {len(documents)} scans: {names}; expected one "
            "mapping with name, source and contract"
        )
    return documents[0]


def read_documents(path: Path) -> tuple[ScanDocument, ...]:
    """Read every scan of a file; Dagster components of other kinds are passed over.

    Raises:
        LocatedScanFileError: it is not YAML.
        ContractError: it cannot be read.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise ContractError(f"{path} cannot be read: {reason}; expected a scan file") from error
    try:
        roots = [root for root in yaml.compose_all(text, Loader=yaml.SafeLoader) if root]
    except (yaml.YAMLError, RecursionError) as error:
        raise LocatedScanFileError(path, (_not_yaml(error),)) from error
    documents = (_document(path, root) for root in roots)
    return tuple(each for each in documents if each is not None)


def _document(path: Path, root: yaml.Node) -> ScanDocument | None:
    reader = FactsReader()
    value = reader.value(root, ())
    if not isinstance(value, dict):
        problem = FileProblem(
            line=line_at(root), at=(), message=f"found {kind_of(root)}; expected a scan's facts"
        )
        return ScanDocument(path=path, node=root, attributes={}, problems=(problem,))
    if "attributes" not in value and "type" not in value:
        return ScanDocument(path=path, node=root, attributes=value, problems=tuple(reader.problems))
    attributes = value.get("attributes")
    if not isinstance(attributes, dict):
        if value.get("type") != SCAN_TYPE:
            return None
        told = "missing; expected the scan's facts, a mapping"
        missing = FileProblem(line=line_of(root, ("attributes",)), at=("attributes",), message=told)
        problems = (missing, *_beside(root, value))
        return ScanDocument(path=path, node=root, attributes={}, problems=problems)
    if value.get("type") != SCAN_TYPE and not {"source", "contract"} & attributes.keys():
        return None
    inner = next(node for name, node in root.value if name.value == "attributes")
    _, wrong = read_settings(attributes.pop(FACE, None))
    found = [
        FileProblem(line=each.line, at=each.at[1:], message=each.message)
        for each in reader.problems
        if each.at[:1] == ("attributes",)
    ]
    placed = [
        FileProblem(line=line_of(inner, each.at), at=each.at, message=each.message)
        for each in wrong
    ]
    problems = (*_beside(root, value), *found, *placed)
    return ScanDocument(path=path, node=inner, attributes=attributes, problems=problems)


def _beside(root: yaml.Node, value: Mapping[str, Any]) -> Iterator[FileProblem]:
    """Yield what stands beside the attributes of a component and is no field of one."""
    for name in value:
        if name not in COMPONENT_FIELDS:
            told = unlisted(name, sorted(COMPONENT_FIELDS))
            yield FileProblem(line=line_of(root, (name,)), at=(name,), message=told)


def _not_yaml(error: Exception) -> FileProblem:
    mark = getattr(error, "problem_mark", None)
    told = (
        getattr(error, "problem", None)
        or "it holds a character that is not allowed, or is nested too deep"
    )
    return FileProblem(
        line=1 if mark is None else mark.line + 1, at=(), message=f"not YAML: {told}"
    )
