"""Values of AWS answers as JSON: the published type table, and the way back for requests.

| type in the service's model | JSON |
|---|---|
| string, enum | text |
| boolean | `true`, `false` |
| integer, long | number, exact |
| float, double | shortest decimal of the same float; NaN and infinities as texts |
| blob | text, base64 |
| timestamp | text, RFC 3339 in UTC: `2026-11-30T02:00:00.5Z` |
| list, map, structure | list, object, object; members that are not there are left out |
| document | the JSON value itself |
| DynamoDB attribute value | by the table below |

DynamoDB says its types in the value (`{"N": "1.50"}`). They become plain JSON, so that keys and
columns are what a table's owner calls them, and nothing is lost:

| attribute value | JSON |
|---|---|
| `S`, `BOOL`, `NULL` | text, boolean, null |
| `N` | number, all of its 38 digits, exact by value (`1.50` is `1.5`) |
| `L`, `M` | list, object of the same |
| `B` | `{"B": base64}` |
| `SS`, `NS`, `BS` | `{"SS": [...]}` and so on, numbers by value, others by their code points |
| `M` of one member named `B`, `SS`, `NS`, `BS` or `M` | `{"M": {...}}` |

A set has no order, so that one must be chosen. The last line keeps a map from being taken for one
of the types above it.

Types are those of botocore's models (1.44.8; dynamodb 2012-08-10, AttributeValue; read 2026-11-30).
Members that a model does not know are dropped by botocore before we see them; which version read an
answer stands in the body of its page.
"""

import math
from base64 import b64decode, b64encode
from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from typing import Any, Final, Protocol

from scan_pipeline.core.errors import ContractError, ProtocolError

SETS: Final = ("SS", "NS", "BS")
MARKED: Final = frozenset({"B", "M", *SETS})
"""Names that alone in an object mean a type of DynamoDB's."""


class Shape(Protocol):
    """A type of a service's model, as botocore describes it."""

    name: str
    type_name: str


def json_of(value: Any, shape: Any) -> Any:
    """Return a parsed value as JSON, by the tables above.

    Raises:
        ProtocolError: `body_unparsable`, the value is not of its type.
    """
    if value is None:
        return None
    match shape.type_name:
        case "structure" if getattr(shape, "is_document_type", False):
            return value
        case "structure" if is_attribute_value(shape):
            return _attribute(value)
        case "structure":
            known = shape.members
            return {n: json_of(v, known[n]) for n, v in _mapping(value).items() if n in known}
        case "map":
            return {n: json_of(v, shape.value) for n, v in _mapping(value).items()}
        case "list":
            if not isinstance(value, list):
                raise _not_of(shape)
            return [json_of(each, shape.member) for each in value]
        case _:
            return plain(value)


def plain(value: Any) -> Any:
    """Return a value as JSON by what it is, attribute values of DynamoDB left as they are typed.

    For continuation tokens, which must find their way back.

    Raises:
        ProtocolError: `body_unparsable`, it is nothing that an answer may hold.
    """
    match value:
        case None | bool() | int() | str() | Decimal():
            return value
        case float():
            return value if math.isfinite(value) else _no_number(value)
        case bytes():
            return b64encode(value).decode("ascii")
        case datetime():
            return _moment(value)
        case dict():
            return {name: plain(each) for name, each in value.items()}
        case list():
            return [plain(each) for each in value]
        case _:
            raise ProtocolError(
                "body_unparsable",
                f"the answer holds a {type(value).__name__}; expected values that JSON can say",
            )


def sendable(value: Any, shape: Any, *, at: str) -> Any:
    """Return a JSON value as a parameter of a request: base64 becomes bytes again.

    Args:
        value: as it stands in a scan file or token.
        shape: the parameter's type.
        at: where it stands, for messages.

    Raises:
        ContractError: the operation has no such parameter, or bytes are no base64.
    """
    match shape.type_name, value:
        case "structure", Mapping() if not getattr(shape, "is_document_type", False):
            unknown = sorted(set(value) - set(shape.members))
            if unknown:
                raise ContractError(
                    f"found {at}.{unknown[0]}, which the operation does not take; expected some "
                    f"of {sorted(shape.members)}"
                )
            return {n: sendable(v, shape.members[n], at=f"{at}.{n}") for n, v in value.items()}
        case "map", Mapping():
            return {n: sendable(v, shape.value, at=f"{at}.{n}") for n, v in value.items()}
        case "list", list() | tuple():
            return [sendable(each, shape.member, at=f"{at}[{n}]") for n, each in enumerate(value)]
        case "blob", str():
            try:
                return b64decode(value, validate=True)
            except ValueError as error:
                raise ContractError(f"found {at} that is no base64; expected bytes so") from error
        case _:
            return value


def is_attribute_value(shape: Any) -> bool:
    """Say whether a type is DynamoDB's (also of its streams)."""
    return shape.name == "AttributeValue" and {"S", "N", "B", *SETS} <= set(shape.members)


def _attribute(value: Any) -> Any:
    if not isinstance(value, dict) or len(value) != 1:
        raise ProtocolError(
            "body_unparsable", "found an attribute value of several types or none; expected one"
        )
    ((kind, held),) = value.items()
    match kind, held:
        case "S", str():
            return held
        case "BOOL", bool():
            return held
        case "NULL", True:
            return None
        case "N", str():
            return _number(held)
        case "B", bytes():
            return {"B": plain(held)}
        case "L", list():
            return [_attribute(each) for each in held]
        case "M", dict():
            inner = {name: _attribute(each) for name, each in held.items()}
            return {"M": inner} if len(inner) == 1 and MARKED.issuperset(inner) else inner
        case "SS" | "BS", list():
            return {kind: sorted(plain(each) for each in held)}
        case "NS", list():
            return {kind: sorted(map(_number, held))}
    raise ProtocolError(
        "body_unparsable", f"found an attribute value of type {kind!r} that is none"
    )


def _number(text: Any) -> Decimal:
    try:
        found = Decimal(text)
    except (InvalidOperation, TypeError, ValueError):
        found = Decimal("NaN")
    if not found.is_finite():
        raise ProtocolError("body_unparsable", "found an attribute of type N that is no number")
    return found


def _mapping(value: Any) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise ProtocolError("body_unparsable", "the answer has something else where an object goes")
    return value


def _not_of(shape: Shape) -> ProtocolError:
    return ProtocolError("body_unparsable", f"the answer holds no list where {shape.name} goes")


def _no_number(value: float) -> str:
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _moment(value: datetime) -> str:
    """Return a moment as RFC 3339 in UTC; botocore gives every one its zone."""
    if value.tzinfo is None:
        raise ProtocolError("body_unparsable", "the answer holds a moment without a zone")
    utc = value.astimezone(UTC)
    seconds = utc.strftime("%Y-%m-%dT%H:%M:%S").rjust(19, "0")
    fraction = f".{utc.microsecond:06}".rstrip("0") if utc.microsecond else ""
    return f"{seconds}{fraction}Z"
