"""A scan file as text: its facts, and every problem with the line it stands on.

The file is a mapping of attributes, or a Dagster component file that holds such a mapping under
`attributes`. It is YAML 1.1 as PyYAML composes it; what that version reads in ways that surprise
(`no` as false, `0123` as 83, `12:30` as 750, a date) is refused, for a fact that its writer did not
mean is worse than none. So are expressions, aliases and members named twice.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from scan_pipeline.core.contract import Scan
from scan_pipeline.core.errors import ContractError
from scan_pipeline.core.value import record
from scan_pipeline.sources.catalogue import Problem, ScanFileError, parse_scan

COMPONENT_FIELDS: Final = frozenset(
    {"type", "attributes", "template_vars_module", "requirements", "post_processing"}
)
"""Top-level fields of a Dagster component file (ComponentFileModel of dagster 1.13.27)."""

FACE: Final = "dagster"
"""Attribute of a component that speaks of its face in Dagster and never reaches the scan."""

_TAG: Final = "tag:yaml.org,2002:"
_UNKNOWN: Final = "unknown field; remove it or correct its name"
_NUMBER: Final = "a decimal number"
_PLAINLY: Final[Mapping[str, tuple[re.Pattern[str], str]]] = {
    "null": (re.compile(r"null|~|"), "null"),
    "bool": (re.compile(r"true|false", re.IGNORECASE), "true or false"),
    "int": (re.compile(r"-?(0|[1-9][0-9]*)"), _NUMBER),
    "float": (re.compile(r"-?(0|[1-9][0-9]*)?\.[0-9]+([eE][-+]?[0-9]+)?"), _NUMBER),
}
"""The ways of writing a value that every version of YAML reads alike, by type."""

_KINDS: Final[Mapping[str, str]] = {
    "null": "nothing",
    "bool": "a truth value",
    "int": "an integer",
    "float": "a number",
    "timestamp": "a date",
    "merge": "a merge",
    "value": "a default",
}


@record
class FileProblem:
    """One thing wrong with a scan file.

    Attributes:
        line: number of the line it stands on, from 1.
        at: path of the field, e.g. `("source", "next")`.
        message: what was found, what was expected.
    """

    line: int
    at: tuple[str | int, ...]
    message: str

    @property
    def field(self) -> str:
        """The path as people write it: `source.next.ends_when.0`."""
        return ".".join(map(str, self.at)) or "file"


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
        """Return the scan.

        Raises:
            LocatedScanFileError: everything that is wrong, line by line.
        """
        try:
            scan = parse_scan(self.attributes)
        except ScanFileError as error:
            # What the text does not plainly say is told once, not again by its type.
            doubtful = {each.at for each in self.problems}
            wrong = [self.located(p) for p in error.problems if p.at not in doubtful]
            raise self.refused(*wrong) from error
        if self.problems:
            raise self.refused()
        return scan

    def located(self, problem: Problem) -> FileProblem:
        """Give a problem of the parsed attributes the line it stands on."""
        told = problem.message
        if _is_secret(problem.at):
            told = f"{told.partition(', found')[0]}; what stands here is not shown"
        return FileProblem(line=_line_of(self.node, problem.at), at=problem.at, message=told)

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
    if len(documents) != 1:
        names = ", ".join(each.name or "(without a name)" for each in documents)
        raise ContractError(
            f"{path} holds {len(documents)} scans{f': {names}' if names else ''}; expected one "
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
    except yaml.YAMLError as error:
        raise LocatedScanFileError(path, (_not_yaml(error),)) from error
    documents = (_document(path, root) for root in roots)
    return tuple(each for each in documents if each is not None)


def _document(path: Path, root: yaml.Node) -> ScanDocument | None:
    reader = _Reader()
    value = reader.value(root, ())
    if not isinstance(value, dict):
        problem = FileProblem(
            line=_line(root), at=(), message=f"found {_kind(root)}; expected a scan's facts"
        )
        return ScanDocument(path=path, node=root, attributes={}, problems=(problem,))
    if "attributes" not in value and "type" not in value:
        return ScanDocument(path=path, node=root, attributes=value, problems=tuple(reader.problems))
    attributes = value.get("attributes")
    if not isinstance(attributes, dict) or not {"source", "contract"} & attributes.keys():
        return None
    attributes.pop(FACE, None)
    inner = next(node for name, node in root.value if name.value == "attributes")
    unknown = [
        FileProblem(line=_line_of(root, (name,)), at=(name,), message=_UNKNOWN)
        for name in value
        if name not in COMPONENT_FIELDS
    ]
    found = [
        FileProblem(line=each.line, at=each.at[1:], message=each.message)
        for each in reader.problems
        if each.at[:1] == ("attributes",)
    ]
    return ScanDocument(path=path, node=inner, attributes=attributes, problems=(*unknown, *found))


class _Reader:
    """Turns nodes into plain values, and notes what the text does not plainly say."""

    def __init__(self) -> None:
        self.problems: list[FileProblem] = []
        self._seen: set[int] = set()

    def value(self, node: yaml.Node, at: tuple[str | int, ...]) -> Any:
        """Return a node's value; a doubtful scalar stays the text it was."""
        if id(node) in self._seen:
            return self._wrong(node, at, "found an alias; expected the facts written out here")
        self._seen.add(id(node))
        kind = node.tag.removeprefix(_TAG)
        match node:
            case yaml.MappingNode() if kind == "map":
                return dict(self._members(node, at))
            case yaml.SequenceNode() if kind == "seq":
                return [self.value(each, (*at, n)) for n, each in enumerate(node.value)]
            case yaml.ScalarNode():
                return self._scalar(node, kind, at)
            case _:
                return self._wrong(node, at, f"found the tag {node.tag}; expected a plain value")

    def _members(
        self, node: yaml.MappingNode, at: tuple[str | int, ...]
    ) -> Iterator[tuple[str, Any]]:
        names = set[str]()
        for key, each in node.value:
            if not isinstance(key, yaml.ScalarNode) or key.tag != f"{_TAG}str":
                shown = key.value if isinstance(key, yaml.ScalarNode) else _kind(key)
                self._wrong(key, at, f"found the field name {shown}; expected a text, in quotes")
                continue
            if key.value in names:
                self._wrong(key, (*at, key.value), "the field stands here a second time; keep one")
            names.add(key.value)
            yield key.value, self.value(each, (*at, key.value))

    def _scalar(self, node: yaml.ScalarNode, kind: str, at: tuple[str | int, ...]) -> Any:
        text = node.value
        if kind == "str":
            if "{{" in text or "{%" in text:
                self._wrong(node, at, f"found the expression {_shown(text, at)}; expected a fact")
            return text
        if kind not in _PLAINLY:
            self._wrong(
                node,
                at,
                f"found {_shown(text, at)}, {_KINDS.get(kind, node.tag)}; expected "
                "a text, in quotes",
            )
            return text
        pattern, expected = _PLAINLY[kind]
        value = yaml.safe_load(text) if pattern.fullmatch(text) else text
        if value is text:
            self._wrong(
                node,
                at,
                f"found {_shown(text, at)}, {_KINDS[kind]} to YAML 1.1 and to others not; expected "
                f"{expected}, or quotes around a text",
            )
        return value

    def _wrong(self, node: yaml.Node, at: tuple[str | int, ...], message: str) -> None:
        self.problems.append(FileProblem(line=_line(node), at=at, message=message))


def _line_of(node: yaml.Node, at: tuple[str | int, ...]) -> int:
    """Return the line of the field at a path, or of the nearest one around it that is there.

    Steps that are no field are passed over: pydantic puts the branch of a union among them.
    """
    line = _line(node)
    for step in at:
        if isinstance(node, yaml.MappingNode):
            named = next(((k, v) for k, v in node.value if k.value == step), None)
            if named is not None:
                line, node = _line(named[0]), named[1]
        elif isinstance(node, yaml.SequenceNode) and step in range(len(node.value)):
            node = node.value[int(step)]
            line = _line(node)
    return line


def _line(node: yaml.Node) -> int:
    return node.start_mark.line + 1


def _kind(node: yaml.Node) -> str:
    kinds = {yaml.MappingNode: "a mapping", yaml.SequenceNode: "a list"}
    return kinds.get(type(node), "a single value")


def _is_secret(at: tuple[str | int, ...]) -> bool:
    """Say whether a secret may have been pasted where this problem lies."""
    return "auth" in at or "headers" in at


def _shown(text: str, at: tuple[str | int, ...]) -> str:
    if _is_secret(at):
        return "a value that is not shown here"
    return text if len(text) <= 60 else f"{text[:57]}..."


def _not_yaml(error: yaml.YAMLError) -> FileProblem:
    mark = getattr(error, "problem_mark", None)
    told = getattr(error, "problem", None) or "a character that YAML does not allow"
    return FileProblem(
        line=1 if mark is None else mark.line + 1, at=(), message=f"not YAML: {told}"
    )
