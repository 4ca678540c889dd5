"""The readers' face as an MCP server, over stdio or streamable HTTP, on the official SDK.

Three operations are kept apart: open a filtered query (counts and a handle, never rows first), read
a page, read one full record; beside them list, describe, aggregate, judge, conclude and receipts.
Every failure is typed: what the caller may do, and why.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Annotated, Any, Final, Literal, TypeVar

from mcp.server.auth.provider import TokenVerifier
from mcp.server.auth.settings import AuthSettings
from mcp.server.mcpserver import MCPServer
from mcp_types import CallToolResult, TextContent, ToolAnnotations

from scan_pipeline.agents.aggregate import aggregate
from scan_pipeline.agents.answers import (
    AggregateAnswer,
    Conclusion,
    Judged,
    Opened,
    PageAnswer,
    RecordAnswer,
)
from scan_pipeline.agents.audit_log import AuditLog, Entry
from scan_pipeline.agents.conclude import conclude
from scan_pipeline.agents.desk import Desk
from scan_pipeline.agents.failures import ReaderError
from scan_pipeline.agents.inputs import (
    ConditionInput,
    MeasureInput,
    OrderInput,
    StoppingInput,
    figures_query,
    rows_query,
)
from scan_pipeline.agents.judge import judge
from scan_pipeline.agents.ledger import Verdict
from scan_pipeline.agents.open_query import open_query
from scan_pipeline.agents.read_page import read_page
from scan_pipeline.agents.read_record import read_record
from scan_pipeline.agents.scans import (
    STOPPING_RULES,
    Described,
    ReceiptAnswer,
    ScanList,
    describe_scan,
    list_scans,
    read_receipt,
)
from scan_pipeline.core.errors import ScanPipelineError
from scan_pipeline.core.value import adapter
from scan_pipeline.core.vocabulary import ConclusionScope
from scan_pipeline.stages.conditions import ConditionError

T = TypeVar("T")

Caller = Callable[[], str]
"""Returns the principal of the call that is being answered."""

READS: Final = ToolAnnotations(read_only_hint=True, open_world_hint=False)


class Answering:
    """Answers one call: who asks, the work, the log, and failures in their shape."""

    def __init__(self, desk: Desk, *, caller: Caller, log: AuditLog) -> None:
        self._desk, self._caller, self._log = desk, caller, log

    def __call__(
        self, operation: str, work: Callable[[str], Any], *, scan: str | None = None
    ) -> CallToolResult:
        """Do the work of a call and say what came of it; every call leaves a line in the log."""
        entry = Entry(
            at=self._desk.workspace.clock(),
            principal="",
            tenant=None,
            operation=operation,
            scan=scan,
        )
        try:
            principal = self._caller()
            one = self._desk.policy().principals.get(principal)
            entry = replace(entry, principal=principal, tenant=one.tenant if one else None)
            answer = work(principal)
        except ReaderError as error:
            return self._failed(entry, error)
        except ConditionError as error:
            return self._failed(entry, ReaderError("narrow", error.code, str(error)))
        except ScanPipelineError as error:
            return self._failed(entry, ReaderError("stop", type(error).__name__, str(error)))
        content = adapter(type(answer)).dump_python(answer, mode="json")
        text = adapter(type(answer)).dump_json(answer).decode()
        self._log.write(_told(entry, answer, size=len(text)))
        return CallToolResult(
            content=[TextContent(type="text", text=text)], structured_content=content
        )

    def _failed(self, entry: Entry, error: ReaderError) -> CallToolResult:
        self._log.write(replace(entry, state=error.code))
        failure = {"remedy": error.remedy, "code": error.code, "message": str(error)}
        said = f"{error.remedy}: {error} ({error.code})"
        return CallToolResult(
            content=[TextContent(type="text", text=said)],
            structured_content={"failure": failure},
            is_error=True,
        )


def create_server(
    desk: Desk,
    *,
    caller: Caller,
    log: AuditLog,
    verifier: TokenVerifier | None = None,
    auth: AuthSettings | None = None,
) -> MCPServer:
    """Return the server.

    Args:
        desk: what every operation needs.
        caller: who asks, by the connection.
        log: where each call leaves a line.
        verifier: verifies bearer tokens, for HTTP.
        auth: where tokens come from, for HTTP.
    """
    server = MCPServer(
        name="scan-pipeline",
        version="1",
        instructions=STOPPING_RULES,
        token_verifier=verifier,
        auth=auth,
        log_level="CRITICAL",
    )
    answer = Answering(desk, caller=caller, log=log)

    @server.tool(name="list_scans", annotations=READS)
    def _list_scans() -> Annotated[CallToolResult, ScanList]:
        """List all scans you may read, with what the newest whole generation is worth."""
        return answer("list_scans", lambda who: list_scans(desk, who))

    @server.tool(name="describe_scan", annotations=READS)
    def _describe_scan(scan: str, view: str | None = None) -> Annotated[CallToolResult, Described]:
        """Tell the columns, key and bounds of a view before you query it."""
        return answer(
            "describe_scan",
            lambda who: describe_scan(desk, who, scan=scan, view=view),
            scan=scan,
        )

    @server.tool(name="read_receipt", annotations=READS)
    def _read_receipt(
        scan: str, generation: str | None = None
    ) -> Annotated[CallToolResult, ReceiptAnswer]:
        """Read what was covered, and how it is known, of one generation of a scan."""
        return answer(
            "read_receipt",
            lambda who: read_receipt(desk, who, scan=scan, generation=generation),
            scan=scan,
        )

    @server.tool(name="open_query", annotations=READS)
    def _open_query(
        *,
        scan: str,
        view: str | None = None,
        where: list[ConditionInput] | None = None,
        columns: list[str] | None = None,
        order: list[OrderInput] | None = None,
        stopping: StoppingInput | None = None,
        at_least: Literal["verified", "corroborated"] = "verified",
        accept: ConclusionScope | None = None,
    ) -> Annotated[CallToolResult, Opened]:
        """Ask which records meet all conditions: an exact count and a handle, no rows yet.

        Read rows with read_page from first_cursor. A page is never the collection: matching_count
        counts all. accept names the lesser scope you are content with where none is proven whole.
        """
        query = rows_query(
            where=where or [],
            columns=columns or [],
            order=order or [],
            stopping=stopping or StoppingInput(),
            at_least=at_least,
            accept=accept,
        )
        return answer(
            "open_query",
            lambda who: open_query(desk, who, scan=scan, view=view, query=query),
            scan=scan,
        )

    @server.tool(name="read_page", annotations=READS)
    def _read_page(
        cursor: str, page_size: int | None = None
    ) -> Annotated[CallToolResult, PageAnswer]:
        """Read the rows at a cursor; next_cursor leads on, and is null at the end.

        Rows are whole: a page over the byte budget holds fewer. A row with values null and
        too_large is read with read_record.
        """
        return answer(
            "read_page", lambda who: read_page(desk, who, cursor=cursor, page_size=page_size)
        )

    @server.tool(name="read_record", annotations=READS)
    def _read_record(handle: str, row: int) -> Annotated[CallToolResult, RecordAnswer]:
        """Read one record in full, by its row number under a handle."""
        return answer("read_record", lambda who: read_record(desk, who, handle=handle, row=row))

    @server.tool(name="aggregate", annotations=READS)
    def _aggregate(
        *,
        scan: str,
        view: str | None = None,
        where: list[ConditionInput] | None = None,
        by: list[str] | None = None,
        measures: list[MeasureInput] | None = None,
        at_least: Literal["verified", "corroborated"] = "verified",
        accept: ConclusionScope | None = None,
    ) -> Annotated[CallToolResult, AggregateAnswer]:
        """Compute figures over every matching record in the engine; read no rows for a count."""
        query = figures_query(
            where=where or [],
            by=by or [],
            measures=measures or [],
            at_least=at_least,
            accept=accept,
        )

        def work(who: str) -> AggregateAnswer:
            opened = open_query(desk, who, scan=scan, view=view, query=query)
            return aggregate(desk, who, handle=opened.result_handle)

        return answer("aggregate", work, scan=scan)

    @server.tool(name="judge")
    def _judge(handle: str, verdicts: dict[int, Verdict]) -> Annotated[CallToolResult, Judged]:
        """Give your verdict on rows you have read, by row number, where no condition can decide.

        Only a verdict on every row that matches supports absence; unsure is no verdict.
        """
        return answer("judge", lambda who: judge(desk, who, handle=handle, verdicts=verdicts))

    @server.tool(name="conclude")
    def _conclude(handle: str) -> Annotated[CallToolResult, Conclusion]:
        """Get the sentence you may say of a query or aggregate, with its signed claim id.

        Quote cite_as word for word. Nothing else supports a statement about the collection.
        """
        return answer("conclude", lambda who: conclude(desk, who, handle=handle))

    return server


def _told(entry: Entry, answer: Any, *, size: int) -> Entry:
    """Return a log entry with what an answer tells of itself: counts, never values."""
    ground = getattr(answer, "ground", None)
    summary = getattr(answer, "summary", None)
    page = getattr(answer, "page", None)
    return replace(
        entry,
        scan=ground.scan if ground else entry.scan,
        generation=ground.scan_generation if ground else None,
        query=str(getattr(answer, "query", "")) or None,
        handle=getattr(answer, "result_handle", None),
        page=page.number if page else None,
        matching=summary.matching_count if summary else None,
        returned=summary.returned_count if summary else None,
        bytes=size,
    )
