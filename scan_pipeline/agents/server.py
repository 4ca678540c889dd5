"""The readers' face as an MCP server, over stdio or streamable HTTP, on the official SDK.

Three operations are kept apart: open a filtered query (counts and a handle, never rows first), read
a page, read one full record; beside them list, describe, aggregate, judge, conclude and receipts.
Every failure is typed: what the caller may do, and why.
"""

from typing import Annotated, Final, Literal

from mcp.server.auth.provider import TokenVerifier
from mcp.server.auth.settings import AuthSettings
from mcp_types import CallToolResult, ToolAnnotations

from scan_pipeline.agents.action_desk import ActionDesk
from scan_pipeline.agents.action_tools import add_action_tools
from scan_pipeline.agents.aggregate import aggregate
from scan_pipeline.agents.answering import Answering, Caller
from scan_pipeline.agents.answers import (
    AggregateAnswer,
    Conclusion,
    Judged,
    Opened,
    PageAnswer,
    RecordAnswer,
)
from scan_pipeline.agents.audit_log import AuditLog
from scan_pipeline.agents.conclude import conclude
from scan_pipeline.agents.desk import Desk
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
from scan_pipeline.agents.readers_server import ReadersServer
from scan_pipeline.agents.scans import (
    STOPPING_RULES,
    Described,
    ReceiptAnswer,
    ScanList,
    describe_scan,
    list_scans,
    read_receipt,
)
from scan_pipeline.core.vocabulary import ConclusionScope

READS: Final = ToolAnnotations(read_only_hint=True, open_world_hint=False)


def create_server(
    desk: Desk,
    *,
    caller: Caller,
    log: AuditLog,
    verifier: TokenVerifier | None = None,
    auth: AuthSettings | None = None,
) -> ReadersServer:
    """Return the server.

    Args:
        desk: what every operation needs.
        caller: who asks, by the connection.
        log: where each call leaves a line.
        verifier: verifies bearer tokens, for HTTP.
        auth: where tokens come from, for HTTP.
    """
    answer = Answering(desk, caller=caller, log=log)
    server = ReadersServer(
        answer,
        name="scan-pipeline",
        version="1",
        instructions=STOPPING_RULES,
        token_verifier=verifier,
        auth=auth,
        log_level="CRITICAL",
    )

    @server.reader(name="list_scans", annotations=READS)
    def _list_scans() -> Annotated[CallToolResult, ScanList]:
        """List all scans you may read, with what the newest whole generation is worth."""
        return answer("list_scans", lambda who: list_scans(desk, who))

    @server.reader(name="describe_scan", annotations=READS)
    def _describe_scan(scan: str, view: str | None = None) -> Annotated[CallToolResult, Described]:
        """Tell the columns, key and bounds of a view before you query it."""
        return answer(
            "describe_scan",
            lambda who: describe_scan(desk, who, scan=scan, view=view),
            scan=scan,
        )

    @server.reader(name="read_receipt", annotations=READS)
    def _read_receipt(
        scan: str, generation: str | None = None
    ) -> Annotated[CallToolResult, ReceiptAnswer]:
        """Read what was covered, and how it is known, of one generation of a scan."""
        return answer(
            "read_receipt",
            lambda who: read_receipt(desk, who, scan=scan, generation=generation),
            scan=scan,
        )

    @server.reader(name="open_query", annotations=READS)
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

    @server.reader(name="read_page", annotations=READS)
    def _read_page(
        cursor: str, page_size: int | None = None
    ) -> Annotated[CallToolResult, PageAnswer]:
        """Read the rows at a cursor; next_cursor leads on, and is null at the end.

        Rows are whole: a page over the byte budget holds fewer. A row with values null and
        too_large is read with read_record.
        """
        return answer(
            "read_page",
            lambda who: read_page(desk, who, cursor=cursor, page_size=page_size),
            cursor=cursor,
        )

    @server.reader(name="read_record", annotations=READS)
    def _read_record(handle: str, row: int) -> Annotated[CallToolResult, RecordAnswer]:
        """Read one record in full, by its row number under a handle."""
        return answer(
            "read_record",
            lambda who: read_record(desk, who, handle=handle, row=row),
            handle=handle,
        )

    @server.reader(name="aggregate", annotations=READS)
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

    @server.reader(name="judge")
    def _judge(handle: str, verdicts: dict[int, Verdict]) -> Annotated[CallToolResult, Judged]:
        """Give your verdict on rows you have read, by row number, where no condition can decide.

        Only a verdict on every row that matches supports absence; unsure is no verdict.
        """
        return answer(
            "judge",
            lambda who: judge(desk, who, handle=handle, verdicts=verdicts),
            handle=handle,
        )

    @server.reader(name="conclude")
    def _conclude(handle: str) -> Annotated[CallToolResult, Conclusion]:
        """Get the sentence you may say of a query or aggregate, with its signed claim id.

        Quote cite_as word for word. Nothing else supports a statement about the collection.
        """
        return answer("conclude", lambda who: conclude(desk, who, handle=handle), handle=handle)

    add_action_tools(server, ActionDesk(desk, log=log), answer=answer)
    return server
