"""What every source behind HTTP and JSON declares, whatever its protocol."""

import re
from collections.abc import Mapping
from dataclasses import field
from typing import ClassVar, Literal

import httpx2
from pydantic import JsonValue

from scan_pipeline.core.errors import ContractError
from scan_pipeline.core.field_path import FieldPath
from scan_pipeline.core.source_facts import (
    ChangeTokenFacts,
    CountFacts,
    HighWaterMarkFacts,
    SourceFacts,
)
from scan_pipeline.core.value import PositiveInt, record
from scan_pipeline.core.vocabulary import Basis, LeafEncoding
from scan_pipeline.sources.auth import Auth
from scan_pipeline.sources.http.envelope import check_records_at
from scan_pipeline.sources.http.network import NetworkFacts
from scan_pipeline.sources.http.record_formats import RecordFormat
from scan_pipeline.sources.http.responses import BodyMatch, ResponseClass

Place = Literal["query", "body", "header"]
"""Where a value travels in a request; in the body under a dotted path, e.g. `variables.after`."""


@record
class PageSize:
    """How many records a page is asked to hold; the source may send fewer.

    Attributes:
        send_as: parameter that carries it.
        value: records of one page.
    """

    send_as: str
    value: PositiveInt


@record
class HttpCountFacts(CountFacts):
    """A count beside the pages: in the body under `at`, or in a response header.

    Attributes:
        at: where it stands in the body.
        header: the header of the answer that holds it.
    """

    at: FieldPath = ()
    header: str | None = None

    def __post_init__(self) -> None:
        if bool(self.at) == (self.header is not None):
            raise ContractError("a count needs exactly one of: at, header")


@record
class HttpChangeTokenFacts(ChangeTokenFacts):
    """A change token at a side address: in its body under `at`, or in a header of its answer.

    RFC 9110, sections 8.8.1 and 8.8.2.2 (excerpts read 2026-11-30): a weak validator need not move
    with every change, and a date of last modification is weak unless much else is known.

    Attributes:
        url: where it is read.
        at: where it stands in the body.
        header: the header of the answer that holds it.
    """

    url: str
    at: FieldPath = ()
    header: str | None = None

    def __post_init__(self) -> None:
        if bool(self.at) == (self.header is not None):
            raise ContractError("a change token needs exactly one of: at, header")
        if self.header is not None and self.header.lower() == "last-modified":
            raise ContractError(
                "a date of last modification does not move with every write; expected a token that "
                "is documented to"
            )


@record
class IdentityFacts:
    """Where the source says who we are.

    Attributes:
        url: the side address that is asked.
        body: JSON that it is asked with, by POST; None for GET.
        at: where the principal lies in its answer.
        tenant_at: where the tenant lies.
        expect: the only principal this scan may be walked as; two principals see two populations.
    """

    url: str
    body: Mapping[str, JsonValue] | None = None
    at: FieldPath
    tenant_at: FieldPath | None = None
    expect: str | None = None


@record
class PartitionCountsFacts:
    """Where the source counts by partition.

    At `at` stands an object from value to number, or a list of rows whose members `value` and
    `count` name the two.

    Attributes:
        url: where it is asked, under the pin or bound of the walk.
        at: where the counts stand.
        value: the member of a row that names the partition.
        count: the member of a row that counts it.
    """

    url: str
    at: FieldPath
    value: str | None = None
    count: str | None = None


@record
class NestedFacts:
    """A list inside each record that the source may cut.

    Attributes:
        at: where the list lies in a record.
        cap: most members the source sends; a list that long may be longer.
        more_at: where the record says that more of it follows.
    """

    at: FieldPath
    cap: PositiveInt | None = None
    more_at: FieldPath | None = None

    def __post_init__(self) -> None:
        if self.cap is None and self.more_at is None:
            raise ContractError("a nested list needs cap, more_at or both")


@record
class HttpFacts(SourceFacts):
    """The facts of one collection behind HTTP.

    Attributes:
        url: the collection.
        method: GET, or POST for sources that take their query in a body.
        params: filter, order and projection, sent with every request.
        body: JSON sent with every request; for POST alone.
        headers: headers without secrets, sent with every request.
        auth: how to prove who we are; secrets are references.
        network: how the network is reached: proxy, CA, client certificate.
        send_in: where page size, pin, bound and continuation travel.
        projection: parameter that names which fields of the answer come back; where it is sent, it
            must name all that the walk reads.
        records_format: what a body is; where it is not `json`, it is records and nothing else.
        records_at: where the records lie; `$` where the body is the records.
        records_omitted_when_empty: whether an answer without the list is an empty page, as the JSON
            mapping of protocol buffers has it; otherwise it is no page.
        record_field: for records that are bare texts or numbers, the field they are kept as.
        page_size: how many to ask for.
        change_token: where it tells its state, to be equal before and after the walk.
        identity: where the source says who we are.
        partition_counts: where it counts by partition.
        nested: lists inside records that may be cut.
        success: a value that every page must show, e.g. `{at: ok, equals: true}`.
        errors_at: fields whose presence says that an answer is an error whatever its status.
        responses: what statuses mean here, where they differ from HTTP.
    """

    OPERATION: ClassVar[tuple[str, ...]] = ("page_size", "auth", "network")

    url: str
    method: Literal["GET", "POST"] = "GET"
    params: Mapping[str, str] = field(default_factory=dict[str, str])
    body: Mapping[str, JsonValue] | None = None
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    auth: Auth | None = None
    network: NetworkFacts | None = None
    send_in: Literal["query", "body"] = "query"
    projection: str | None = None
    records_format: RecordFormat = "json"
    records_at: FieldPath
    records_omitted_when_empty: bool = False
    record_field: str | None = None
    count: HttpCountFacts | None = None
    high_water_mark: HighWaterMarkFacts | None = None
    page_size: PageSize | None = None
    change_token: HttpChangeTokenFacts | None = None
    identity: IdentityFacts | None = None
    partition_counts: PartitionCountsFacts | None = None
    nested: tuple[NestedFacts, ...] = ()
    success: BodyMatch | None = None
    errors_at: tuple[FieldPath, ...] = (("error",), ("errors",))
    responses: tuple[ResponseClass, ...] = ()

    def __post_init__(self) -> None:
        if self.method == "GET" and (self.body is not None or self.send_in == "body"):
            raise ContractError("a request with a body needs method: POST")
        check_records_at(self.records_at)

    @property
    def leaf_encoding(self) -> LeafEncoding:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Return what a leaf hashes; rows of CSV have no bytes of their own."""
        return "canonical-json/v1" if self.records_format == "csv" else "raw/v1"

    @property
    def change_token_basis(self) -> Basis | None:
        """Return why the change token is believed to cover all writes."""
        return None if self.change_token is None else self.change_token.basis

    def check_reads(self, *paths: FieldPath | None) -> None:
        """Refuse facts about fields of the answer that it cannot show.

        Args:
            paths: where the protocol reads, beside records, count and pin; None for nowhere.

        Raises:
            ContractError: a projection does not name one of them, or the body has no fields.
        """
        own = (self.records_at, self.count and self.count.at, self.snapshot and self.snapshot.at)
        read = {path[0] for path in (*own, *paths) if path}
        if self.records_format != "json" and read:
            raise ContractError(
                f"a body of {self.records_format} is records and nothing else; expected "
                f"records_at: $ and no field of it, found {', '.join(sorted(read))}"
            )
        if self.projection is None or self.projection not in self.params:
            return
        hidden = sorted(read - set(re.findall(r"[\w@.-]+", self.params[self.projection])))
        if hidden:
            raise ContractError(
                f"params.{self.projection} lets only some fields of the answer come back, and not "
                f"{', '.join(hidden)}; expected it to name all that the walk reads"
            )

    @property
    def tool(self) -> str:
        """Return the collection's address without its query."""
        return f"{self.method} {httpx2.URL(self.url).copy_with(query=None)}"
