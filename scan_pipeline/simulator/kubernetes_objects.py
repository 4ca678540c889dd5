"""The registry's customers as objects of a custom resource, in the order that etcd keeps them."""

import re
from functools import lru_cache
from typing import Final
from uuid import NAMESPACE_URL, uuid5

from scan_pipeline.core.value import record
from scan_pipeline.simulator.answers import compact
from scan_pipeline.simulator.collection import Revision
from scan_pipeline.simulator.rows import EPOCH, Row, instant

API_VERSION: Final = "registry.example.com/v1"
LIST_PATH: Final = f"/apis/{API_VERSION}/customers"
FIRST_VERSION: Final = 1_000
"""Version of the population; clients must not read anything into the number."""

_PAIR: Final = re.compile(r"(?P<name>[A-Za-z0-9_./-]+)(?P<op>==|=|!=)(?P<value>[A-Za-z0-9_.-]*)")


class SelectorError(Exception):
    """A selector cannot be read."""


@record
class Selection:
    """Which objects are listed.

    Attributes:
        namespace: only this one; None for all.
        labels: (label, whether it must be equal, value).
        fields: the same for `metadata.name` and `metadata.namespace`.
    """

    namespace: str | None = None
    labels: tuple[tuple[str, bool, str], ...] = ()
    fields: tuple[tuple[str, bool, str], ...] = ()

    @property
    def filters(self) -> bool:
        """Whether a selector is in force; what remains is unknown then."""
        return bool(self.labels or self.fields)


@record
class CustomerObject:
    """One object: its key below the resource's prefix, and its bytes."""

    key: str
    raw: bytes
    partial: bytes


def parse_selector(text: str) -> tuple[tuple[str, bool, str], ...]:
    """Read equality-based requirements.

    Raises:
        SelectorError: it is something else.
    """
    found: list[tuple[str, bool, str]] = []
    for part in filter(None, text.split(",")):
        shape = _PAIR.fullmatch(part.strip())
        if shape is None:
            raise SelectorError(f"unable to parse requirement: {part!r}")
        found.append((shape["name"], shape["op"] != "!=", shape["value"]))
    return tuple(found)


@lru_cache(maxsize=16)
def objects_of(revision: Revision, selection: Selection) -> tuple[CustomerObject, ...]:
    """Return the objects of a revision, ordered by key as bytes: `customer-10` before `customer-2`.

    Raises:
        SelectorError: a field selector names another field.
    """
    for name, _, _ in selection.fields:
        if name not in ("metadata.name", "metadata.namespace"):
            raise SelectorError(f"field label not supported: {name}")
    chosen = [row for row in revision.rows if _is_listed(row, selection)]
    return tuple(sorted((_object(row) for row in chosen), key=lambda each: each.key))


def _is_listed(row: Row, selection: Selection) -> bool:
    if selection.namespace is not None and row.traits.tenant != selection.namespace:
        return False
    labels = _labels(row)
    fields = {"metadata.name": _name(row), "metadata.namespace": row.traits.tenant}
    return all((labels.get(n) == v) == equal for n, equal, v in selection.labels) and all(
        (fields.get(n) == v) == equal for n, equal, v in selection.fields
    )


def _name(row: Row) -> str:
    return f"customer-{row.number}"


def _labels(row: Row) -> dict[str, str]:
    return {"region": row.traits.region, "status": row.traits.status}


@lru_cache(maxsize=65_536)
def _object(row: Row) -> CustomerObject:
    namespace, name = row.traits.tenant, _name(row)
    written = FIRST_VERSION + max(0, row.traits.updated - EPOCH)
    metadata = compact(
        {
            "creationTimestamp": instant(row.traits.created),
            "labels": _labels(row),
            "name": name,
            "namespace": namespace,
            "resourceVersion": str(written),
            "uid": str(uuid5(NAMESPACE_URL, f"{namespace}/{name}")),
        }
    )
    head = b'{"apiVersion":"%b","kind":"Customer","metadata":%b' % (API_VERSION.encode(), metadata)
    partial = b'{"apiVersion":"meta.k8s.io/v1","kind":"PartialObjectMetadata","metadata":%b}'
    return CustomerObject(
        key=f"{namespace}/{name}",
        raw=head + b',"spec":' + row.raw + b"}",
        partial=partial % metadata,
    )
