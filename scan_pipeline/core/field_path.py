"""Where a field lies in a JSON body."""

from typing import Annotated, TypeAlias

from pydantic import BeforeValidator, PlainSerializer


def _path_steps(raw: object) -> object:
    """Read `a.b` as two steps, a list as steps taken literally, and `$` as the body itself.

    The name of an OData annotation (`@odata.nextLink`, `members@odata.count`) is one step: split at
    its dot it would lead nowhere, and nowhere is where some sources show their end.
    """
    if isinstance(raw, str):
        if "@" in raw:
            return (raw,)
        return () if raw == "$" else tuple(raw.split("."))
    return tuple(raw) if isinstance(raw, list) else raw  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]


FieldPath: TypeAlias = Annotated[
    tuple[str, ...],
    BeforeValidator(_path_steps, json_schema_input_type=str | list[str]),
    PlainSerializer(list, return_type=list[str]),
]
"""Where a field lies in a JSON body: `page.next_cursor`, or `["@odata.nextLink"]` with dots."""
