"""What a parser refuses of a scan file, in words of our own: what was found, what was expected."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from pydantic import ValidationError

from scan_pipeline.core.errors import ContractError
from scan_pipeline.core.value import record
from scan_pipeline.sources.field_names import unknown_field


@record
class Problem:
    """One thing wrong with a scan file: where, what was found, what was expected."""

    at: tuple[str | int, ...]
    message: str


class ScanFileError(ContractError):
    """A scan file does not parse.

    Attributes:
        problems: everything that is wrong, in the order of the file.
    """

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        super().__init__(
            "; ".join(
                f"{'.'.join(map(str, each.at)) or 'file'}: {each.message}" for each in problems
            )
        )
        self.problems = problems


_KINDS: Final[Mapping[type, str]] = {str: "a text", dict: "a mapping", list: "a list"}
"""Kinds of value that are named and not shown: a text in the wrong place may be a pasted secret."""

_WANTED: Final[Mapping[str, str]] = {
    "string_type": "a text",
    "int_type": "an integer",
    "int_parsing": "an integer",
    "int_from_float": "an integer",
    "float_type": "a number",
    "float_parsing": "a number",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "dataclass_type": "a mapping",
    "dict_type": "a mapping",
    "mapping_type": "a mapping",
    "list_type": "a list",
    "tuple_type": "a list",
    "none_required": "null",
}
"""What was wanted, by pydantic's word for what is wrong (pydantic 2.14, `ErrorDetails.type`)."""

_WORD: Final = re.compile(r"[a-z_]{1,40}")
"""What is shown where one word of a list was wanted: a misspelt one, and hardly a secret."""

_NOT_THERE: Final = object()
_UNKNOWN: Final = ("unexpected_keyword_argument", "extra_forbidden")


@record
class _Refused:
    """One error of pydantic's: the field, whether a branch of a union stood in its path, words.

    `counted` says that it is about how many there are.
    """

    at: tuple[str | int, ...]
    branch: bool
    counted: bool
    shown: str
    wanted: str | None
    message: str


def problems_in(
    error: ValidationError, raw: Any, at: tuple[str | int, ...], *, kind: Any
) -> list[Problem]:
    """Return what a validation refused, a problem for each field.

    Where a field may be one of several kinds, what is wrong is told once: of the kind that was got
    furthest with, else with all that would have done.

    Args:
        error: of the validation.
        raw: what was validated.
        at: path of the raw value in the file.
        kind: what it was validated as.
    """
    refused = list(_refused(error, raw, kind))
    deeper = {each.at[:n] for each in refused for n in range(len(each.at))}
    # A list whose items were refused is told of as empty too: it is not.
    kept = [each for each in refused if not ((each.branch or each.counted) and each.at in deeper)]
    problems = list[Problem]()
    for each in kept:
        same = [other for other in kept if other.at == each.at]
        wanted = [other.wanted for other in same if other.wanted is not None]
        if each.branch and len(wanted) > 1:
            shown = next((o.shown for o in same if o.shown not in _KINDS.values()), each.shown)
            told = f"found {shown}; expected {', or '.join(dict.fromkeys(wanted))}"
        else:
            told = each.message
        problems.append(Problem(at=(*at, *each.at), message=told))
    return list(dict.fromkeys(problems))


def _refused(error: ValidationError, raw: Any, record_kind: Any) -> Iterator[_Refused]:
    for each in error.errors():
        path = tuple(_fields(each["loc"], raw, missing=each["type"] == "missing"))
        shown = _shown(each)
        wanted = _wanted(each["type"], each.get("ctx") or {})
        unknown = each["type"] in _UNKNOWN
        yield _Refused(
            at=path,
            branch=len(path) < len(each["loc"]),
            counted=each["type"] == "too_short",
            shown=shown,
            wanted=wanted,
            message=unknown_field(record_kind, path)
            if unknown
            else _told(each["msg"], each["type"], shown, wanted),
        )


def _fields(path: Sequence[str | int], raw: Any, *, missing: bool) -> Iterator[str | int]:
    """Yield the steps of a path that are fields of the file; branches of unions are none."""
    for number, step in enumerate(path):
        inner = _inside(raw, step)
        if inner is _NOT_THERE:
            if not (missing and number == len(path) - 1):
                continue
        else:
            raw = inner
        yield step


def _inside(raw: Any, step: str | int) -> Any:
    if isinstance(raw, Mapping):
        return raw.get(step, _NOT_THERE)
    if isinstance(raw, list) and isinstance(step, int) and step < len(raw):
        return raw[step]
    return _NOT_THERE


def _shown(error: Mapping[str, Any]) -> str:
    """Return what was found, in a word where it could be a secret or is long."""
    found, hidden = error["input"], {"auth", "headers"}.intersection(map(str, error["loc"]))
    if hidden:
        return "something else"
    if error["type"] == "literal_error" and isinstance(found, str) and _WORD.fullmatch(found):
        return found
    return _KINDS.get(type(found)) or json.dumps(found)


def _wanted(kind: str, about: Mapping[str, Any]) -> str | None:
    match kind:
        case "literal_error":
            return str(about["expected"]).replace("'", "")
        case "greater_than":
            return f"more than {about['gt']}"
        case "greater_than_equal":
            return f"{about['ge']} or more"
        case "less_than":
            return f"less than {about['lt']}"
        case "less_than_equal":
            return f"{about['le']} or less"
        case "string_pattern_mismatch":
            return f"a text of the form {about['pattern']}"
        case "too_short":
            return f"at least {about['min_length']} of them"
        case "too_long":
            return f"at most {about['max_length']} of them"
        case "string_too_short":
            return f"a text of at least {about['min_length']} characters"
        case _:
            return _WANTED.get(kind)


def _told(message: str, kind: str, shown: str, wanted: str | None) -> str:
    if kind == "missing":
        return "missing; expected a value"
    if wanted is None:
        plain = message.removeprefix("Value error, ")
        return f"{plain[0].lower()}{plain[1:]}, found {shown}"
    found = "an empty list" if kind == "too_short" and wanted.startswith("at least 1") else shown
    return f"found {found}; expected {wanted}"
