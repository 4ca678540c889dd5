"""YAML as plain facts: values that every version of YAML reads alike, each with its line.

PyYAML reads YAML 1.1, which takes `no` for false, `0123` for 83, `12:30` for 750 and makes dates of
texts. All of it is refused here: a fact that its writer did not mean is worse than none. So are
expressions, aliases and members named twice.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeAlias

import yaml

from scan_pipeline.core.value import record

At: TypeAlias = tuple[str | int, ...]
"""Path of a field, e.g. `("source", "next")`."""

_TAG: Final = "tag:yaml.org,2002:"
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
    at: At
    message: str

    @property
    def field(self) -> str:
        """The path as people write it: `source.next.ends_when.0`."""
        return ".".join(map(str, self.at)) or "file"


class FactsReader:
    """Turns nodes into plain values, and notes what the text does not plainly say."""

    def __init__(self) -> None:
        self.problems: list[FileProblem] = []
        self._seen: set[int] = set()

    def value(self, node: yaml.Node, at: At) -> Any:
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

    def _members(self, node: yaml.MappingNode, at: At) -> Iterator[tuple[str, Any]]:
        names = set[str]()
        for key, each in node.value:
            if not isinstance(key, yaml.ScalarNode) or key.tag != f"{_TAG}str":
                shown = key.value if isinstance(key, yaml.ScalarNode) else kind_of(key)
                self._wrong(key, at, f"found the field name {shown}; expected a text, in quotes")
                continue
            if key.value in names:
                self._wrong(key, (*at, key.value), "the field stands here a second time; keep one")
            names.add(key.value)
            yield key.value, self.value(each, (*at, key.value))

    def _scalar(self, node: yaml.ScalarNode, kind: str, at: At) -> Any:
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

    def _wrong(self, node: yaml.Node, at: At, message: str) -> None:
        self.problems.append(FileProblem(line=line_at(node), at=at, message=message))


def line_of(node: yaml.Node, at: At) -> int:
    """Return the line of the field at a path, or of the nearest one around it that is there.

    Steps that are no field are passed over: pydantic puts the branch of a union among them.
    """
    line = line_at(node)
    for step in at:
        if isinstance(node, yaml.MappingNode):
            named = next(((k, v) for k, v in node.value if k.value == step), None)
            if named is not None:
                line, node = line_at(named[0]), named[1]
        elif isinstance(node, yaml.SequenceNode) and step in range(len(node.value)):
            node = node.value[int(step)]
            line = line_at(node)
    return line


def line_at(node: yaml.Node) -> int:
    """Return the line on which a node begins, from 1."""
    return node.start_mark.line + 1


def kind_of(node: yaml.Node) -> str:
    """Return what a node is, in words."""
    kinds = {yaml.MappingNode: "a mapping", yaml.SequenceNode: "a list"}
    return kinds.get(type(node), "a single value")


def may_be_secret(at: At) -> bool:
    """Say whether a secret may have been pasted where this problem lies."""
    return "auth" in at or "headers" in at


def _shown(text: str, at: At) -> str:
    if may_be_secret(at):
        return "a value that is not shown here"
    return text if len(text) <= 60 else f"{text[:57]}..."
