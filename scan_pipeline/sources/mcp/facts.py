"""What a scan file declares of a tool, or of a list method, of an MCP server."""

from collections.abc import Mapping
from dataclasses import field
from typing import Annotated, Any, ClassVar, Final, Literal, TypeAlias

from pydantic import Field, JsonValue

from scan_pipeline.core.errors import ContractError
from scan_pipeline.core.field_path import FieldPath
from scan_pipeline.core.source_facts import BoundFacts, SourceFacts
from scan_pipeline.core.value import PositiveInt, record
from scan_pipeline.core.vocabulary import LeafEncoding
from scan_pipeline.sources.auth import Auth
from scan_pipeline.sources.http.addresses import origin_of
from scan_pipeline.sources.http.counters import counts_rows
from scan_pipeline.sources.http.end_signals import EndSignal
from scan_pipeline.sources.http.envelope import check_records_at
from scan_pipeline.sources.http.responses import Means
from scan_pipeline.sources.secrets import SecretRef

Arguments: TypeAlias = Mapping[str, JsonValue]

ListMethod: TypeAlias = Literal[
    "tools/list", "resources/list", "resources/templates/list", "prompts/list"
]

RECORDS_OF: Final[Mapping[ListMethod, str]] = {
    "tools/list": "tools",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
    "prompts/list": "prompts",
}
"""By list method, the member of its result that holds the records."""


@record
class StdioServer:
    """A server that is started as a child and spoken to over its stdin and stdout.

    Attributes:
        command: the program.
        args: its arguments; a secret has no place among them, other users can read them.
        env: variables it is given beside the few that every program needs; each names a secret.
    """

    command: Annotated[str, Field(min_length=1)]
    args: tuple[str, ...] = ()
    env: Mapping[str, SecretRef] = field(default_factory=dict[str, SecretRef])


@record
class HttpServer:
    """A server behind streamable HTTP.

    Attributes:
        url: its endpoint, e.g. `https://example.com/mcp`.
        headers: headers without secrets, sent with every request.
        auth: how to prove who we are; secrets are references.
    """

    url: str
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    auth: Auth | None = None

    def __post_init__(self) -> None:
        origin_of(self.url)
        if "@" in self.url.split("://", 1)[1].split("/", 1)[0]:
            raise ContractError(
                "transport.http.url holds credentials, which receipts would show; name them under "
                "auth instead"
            )
        if self.auth is not None and self.auth.is_fetched:
            raise ContractError(
                f"transport.http.auth.{self.auth.scheme} fetches a token, which mcp_tool does not; "
                "expected bearer, api_key or basic"
            )


@record
class McpTransport:
    """How the server is reached: exactly one way.

    Attributes:
        stdio: a process that we start.
        http: a server at an address.
    """

    stdio: StdioServer | None = None
    http: HttpServer | None = None

    def __post_init__(self) -> None:
        if (self.stdio is None) == (self.http is None):
            raise ContractError("transport needs exactly one of: stdio, http")


@record
class ToolPageSize:
    """How many records a page is asked to hold; the source may send fewer.

    Attributes:
        send_as: argument that says it.
        value: records.
        echoed_at: where the answer says how many it took as asked for.
    """

    send_as: str
    value: PositiveInt
    echoed_at: FieldPath | None = None


@record
class ToolNext:
    """How the next page is asked for, and what says the end.

    Signals on the same field are alternatives; signals on different fields must all agree.

    Attributes:
        by: `cursor` sends back what stands at `at`; `offset` counts the records that came, not
            those that were asked for, so that a clipped page loses nothing; `page` counts pages.
        at: where the cursor lies.
        send_as: argument that carries it; dots lead into an argument that is an object.
        ends_when: the declared end signals. Of `offset` and `page` each says where it stands,
            all but `empty_page`.
        first: its value in the very first call; None sends none, and counts offsets from 0 and
            pages from 1.
    """

    by: Literal["cursor", "offset", "page"] = "cursor"
    at: FieldPath | None = None
    send_as: str
    ends_when: Annotated[tuple[EndSignal, ...], Field(min_length=1)]
    first: str | int | None = None

    def __post_init__(self) -> None:
        if (self.at is None) == (self.by == "cursor"):
            raise ContractError(
                f"next.by {self.by} needs "
                + ("next.at, where the cursor lies" if self.at is None else "no next.at")
            )
        if self.by != "cursor" and isinstance(self.first, str):
            raise ContractError(f"next.first is a text; expected a number for next.by {self.by}")
        for signal in self.ends_when:
            if self.at is None and signal.at is None and signal.word != "empty_page":
                raise ContractError(f"next.ends_when: {signal.word} needs at, the field it is of")
            if signal.word == "total_reached" and (self.by != "offset" or signal.at is None):
                raise ContractError(
                    "next.ends_when: total_reached needs at, where the total stands, and next.by "
                    "offset, which knows how many records came"
                )


@record
class ToolIdentity:
    """The tool that says who we are.

    Attributes:
        tool: its name.
        arguments: its arguments.
        at: where the principal stands.
        tenant_at: where the tenant stands.
    """

    tool: str
    arguments: Arguments = field(default_factory=dict[str, JsonValue])
    at: FieldPath
    tenant_at: FieldPath | None = None


@record
class ToolPartitionCounts:
    """The tool that counts by partition, asked under the pin or bound of the walk.

    At `at` stands an object from value to number, or a list of rows whose members `value` and
    `count` name the two.

    Attributes:
        tool: its name.
        arguments: its arguments.
        at: where the counts stand.
        value: the member of a row that names the partition.
        count: the member of a row that counts it.
    """

    tool: str
    arguments: Arguments = field(default_factory=dict[str, JsonValue])
    at: FieldPath
    value: str | None = None
    count: str | None = None


@record
class ToolHighWaterMark(BoundFacts):
    """The tool that is asked for an upper bound before the first page.

    Attributes:
        tool: its name.
        arguments: its arguments.
    """

    tool: str
    arguments: Arguments = field(default_factory=dict[str, JsonValue])


@record
class ToolRefusal:
    """What a refusal means at this server; what none of these describes ends the walk as failed.

    Attributes:
        code: code of the JSON-RPC error.
        at: where an `isError` result, or the data of a JSON-RPC error, says which it is.
        equals: what it says there.
        means: `wait` and `retry` call again, `refused` ends for lack of rights, `expired` ends
            the generation, `consumed` says that a single-use continuation is spent.
        wait_at: where it says how many seconds to wait.
    """

    code: int | None = None
    at: FieldPath | None = None
    equals: str | int | bool | None = None
    means: Means
    wait_at: FieldPath | None = None

    def __post_init__(self) -> None:
        if self.code is None and self.at is None:
            raise ContractError("errors: a refusal is told by code, or by at and equals, or both")


@record
class McpToolSource(SourceFacts):
    """The facts of one collection behind a tool or a list method.

    Attributes:
        transport: how the server is reached.
        called: the tool, written `tool` in a scan file.
        method: a list method in place of a tool; it pages by the protocol's own cursor.
        arguments: filter, order and projection: the frozen query of every call.
        content: `structured` reads the result's structured content; `text` reads JSON from its
            one text block, for tools that give no structured content, or whose numbers need more
            than a double.
        records_at: where the records lie; `$` where the content is the list.
        page_size: how many to ask for.
        next: how the next page is asked for.
        pages: `none` says that the tool gives one answer and pages in no way. Unless that answer
            says by `whole_when` that it is whole, what lies beyond it is unknown.
        whole_when: signals by which the one answer says that it is whole; each says where it
            stands.
        identity: the tool that says who we are.
        partition_counts: the tool that counts by partition.
        sent_as_numbers: arguments whose pin or bound is a number; it is kept as text.
        errors_at: fields whose presence says that a result is an error although it is not marked.
        errors: what refusals mean at this server.
    """

    OPERATION: ClassVar[tuple[str, ...]] = ("page_size",)
    QUERY: ClassVar[tuple[str, ...]] = ("transport", "tool", "method", "arguments")

    protocol: Literal["mcp_tool"]
    transport: McpTransport
    called: Annotated[str | None, Field(alias="tool", min_length=1)] = None
    method: ListMethod | None = None
    arguments: Arguments = field(default_factory=dict[str, JsonValue])
    content: Literal["structured", "text"] = "structured"
    records_at: FieldPath | None = None
    page_size: ToolPageSize | None = None
    next: ToolNext | None = None
    pages: Literal["none"] | None = None
    whole_when: tuple[EndSignal, ...] = ()
    high_water_mark: ToolHighWaterMark | None = None
    identity: ToolIdentity | None = None
    partition_counts: ToolPartitionCounts | None = None
    sent_as_numbers: tuple[str, ...] = ()
    errors_at: tuple[FieldPath, ...] = (("error",), ("errors",))
    errors: tuple[ToolRefusal, ...] = ()

    def __post_init__(self) -> None:
        if (self.called is None) == (self.method is None):
            raise ContractError("a source needs exactly one of: tool, method")
        if self.method is not None:
            self._check_list_method()
            return
        if self.records_at is None:
            raise ContractError("records_at is missing; expected where the records lie")
        check_records_at(self.records_at)
        if (self.next is None) == (self.pages is None):
            raise ContractError(
                "a tool needs exactly one of: next, how it pages; or pages: none, where it gives "
                "one answer"
            )
        self._check_arguments()
        for signal in self.whole_when:
            if self.pages is None or signal.at is None:
                raise ContractError("whole_when needs pages: none, and at for each signal")
            if signal.word == "empty_page":
                raise ContractError("whole_when: an empty answer says nothing of what is beyond it")

    @property
    def tool(self) -> str:
        """Return the tool, or the list method."""
        return self.called or str(self.method)

    @property
    def leaf_encoding(self) -> LeafEncoding:  # pyright: ignore[reportIncompatibleVariableOverride]  # a text has bytes
        """What a leaf hashes: of a text the record as sent, else the JSON that we wrote."""
        return "raw/v1" if self.content == "text" else "canonical-json/v1"

    @property
    def positions_are_ours(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]  # it depends on how the tool pages
        """Whether we compute the next position, so that an equal page means it was ignored."""
        return self.next is not None and self.next.by != "cursor"

    def counter_in(self, token: str) -> str | None:
        """Return the argument by which a cursor counts rows or pages, None for none."""
        if self.next is None:
            return None
        return self.next.send_as if counts_rows(self.next.send_as, token.strip('"')) else None

    def _check_arguments(self) -> None:
        """Refuse an argument that leads into one that is no object."""
        sent = (self.page_size, self.next, self.snapshot, self.high_water_mark)
        for each in sent:
            if each is None:
                continue
            inner: Any = self.arguments
            for step in each.send_as.split(".")[:-1]:
                inner = inner.get(step, {})
                if not isinstance(inner, Mapping):
                    raise ContractError(
                        f"{each.send_as} leads into arguments.{step}, which is no object; expected "
                        "an object there, or nothing"
                    )

    def _check_list_method(self) -> None:
        absent: dict[str, Any] = {
            "records_at": None,
            "next": None,
            "pages": None,
            "whole_when": (),
            "page_size": None,
            "arguments": {},
            "count": None,
            "snapshot": None,
            "high_water_mark": None,
        }
        wrong = [name for name, value in absent.items() if getattr(self, name) != value]
        if wrong or self.content != "structured":
            raise ContractError(
                f"method {self.method} has {', '.join(wrong) or 'content'}; expected none: the "
                "protocol says where its records and its cursor lie, and knows no count and no pin"
            )
