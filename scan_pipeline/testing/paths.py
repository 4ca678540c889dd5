"""Values under paths of a JSON body, written the way `FieldPath` reads them."""

from typing import Any

from scan_pipeline.core.field_path import FieldPath


def put(around: Any, path: FieldPath, value: Any) -> Any:
    """Return a JSON value with another under a path; what is missing on the way is made.

    A number is a step into a list, from 0.
    """
    if not path:
        return value
    step, *rest = path
    if step.isdecimal() and not isinstance(around, dict):
        items = list(around) if isinstance(around, list) else []
        items += [{}] * (int(step) + 1 - len(items))
        items[int(step)] = put(items[int(step)], tuple(rest), value)
        return items
    members = dict(around) if isinstance(around, dict) else {}
    members[step] = put(members.get(step, {}), tuple(rest), value)
    return members


def other_than(value: Any) -> Any:
    """Return a value of the same type that is not this one."""
    match value:
        case bool():
            return not value
        case int():
            return value + 1
        case str():
            return f"{value}-not"
        case _:
            return "more"
