"""The one way to declare a value."""

from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, TypeAlias, TypeVar, dataclass_transform

from pydantic import Field, TypeAdapter

T = TypeVar("T")

PARSED_STRICTLY = {"extra": "forbid", "strict": True}
"""How pydantic reads a value at the border: unknown fields and wrong types are refused."""


@dataclass_transform(frozen_default=True, kw_only_default=True)
def record(cls: type[T]) -> type[T]:
    """Make a class a frozen, keyword-only value; a change is a new one (`dataclasses.replace`)."""
    value = dataclass(frozen=True, kw_only=True)(cls)
    value.__pydantic_config__ = PARSED_STRICTLY  # type: ignore[attr-defined]  # pydantic's own hook
    return value


@cache
def adapter(kind: Any) -> TypeAdapter[Any]:
    """Return what parses and writes a type; kept, since making one takes tens of milliseconds."""
    return TypeAdapter(kind)


PositiveInt: TypeAlias = Annotated[int, Field(gt=0)]
NaturalInt: TypeAlias = Annotated[int, Field(ge=0)]
