"""What every source behind HTTP and JSON declares, whatever its protocol."""

from collections.abc import Mapping
from dataclasses import field
from typing import ClassVar

import httpx2

from scan_pipeline.core.contract import FieldPath, PositiveInt, SourceFacts
from scan_pipeline.core.value import record
from scan_pipeline.sources.auth import Auth
from scan_pipeline.sources.responses import ResponseClass


@record
class PageSize:
    """How many records a page is asked to hold; the source may send fewer."""

    send_as: str
    value: PositiveInt


@record
class IdentityFacts:
    """Where the source says who we are."""

    url: str
    at: FieldPath
    tenant_at: FieldPath | None = None


@record
class PartitionCountsFacts:
    """Where the source counts by partition.

    At `at` stands an object from value to number, or a list of rows whose members `value` and
    `count` name the two.
    """

    url: str
    at: FieldPath
    value: str | None = None
    count: str | None = None


@record
class HttpFacts(SourceFacts):
    """The facts of one collection behind HTTP.

    Attributes:
        url: the collection.
        params: filter, order and projection, sent with every request.
        headers: headers without secrets, sent with every request.
        auth: how to prove who we are; secrets are references.
        records_at: where the records lie.
        page_size: how many to ask for.
        identity: where the source says who we are.
        partition_counts: where it counts by partition.
        errors_at: fields whose presence says that an answer is an error whatever its status.
        responses: what statuses mean here, where they differ from HTTP.
    """

    OPERATION: ClassVar[tuple[str, ...]] = ("page_size", "auth")

    url: str
    params: Mapping[str, str] = field(default_factory=dict[str, str])
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    auth: Auth | None = None
    records_at: FieldPath
    page_size: PageSize | None = None
    identity: IdentityFacts | None = None
    partition_counts: PartitionCountsFacts | None = None
    errors_at: tuple[FieldPath, ...] = (("error",), ("errors",))
    responses: tuple[ResponseClass, ...] = ()

    @property
    def tool(self) -> str:
        """Return the collection's address without its query."""
        return f"GET {httpx2.URL(self.url).copy_with(query=None)}"
