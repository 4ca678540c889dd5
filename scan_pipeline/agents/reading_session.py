"""The readers' operations bound to one principal, for a model that runs in this process.

What the MCP server offers over a connection, a model in our own process gets by the same operations
of the desk: the same policy, budgets, refusals and log. The methods are its tools; their docstrings
and types are what it is told of them.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from scan_pipeline.agents.aggregate import aggregate
from scan_pipeline.agents.answers import AggregateAnswer
from scan_pipeline.agents.audit_log import AuditLog, Entry, with_answer
from scan_pipeline.agents.conclude import conclude
from scan_pipeline.agents.desk import Desk
from scan_pipeline.agents.failures import ReaderError, failure_of
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
from scan_pipeline.core.value import adapter
from scan_pipeline.stages.readers.conditions import ConditionError


class ReadingSession:
    """One principal's calls on one scan, one after another or at once.

    Args:
        desk: what every operation needs.
        principal: who reads; no argument of a call makes another.
        scan: the only scan that is asked.
        log: where each call leaves a line.
    """

    def __init__(self, desk: Desk, *, principal: str, scan: str, log: AuditLog) -> None:
        self._desk, self._principal, self._scan, self._log = desk, principal, scan, log
        self.given: dict[str, dict[int, Mapping[str, Any]]] = {}
        """Rows that were shown, by handle and number."""
        self.verdicts: dict[str, dict[int, Verdict]] = {}
        """The last verdict on each row, by handle."""
        self.refused: list[str] = []
        """Codes of the calls that were not answered, in order."""

    @property
    def tools(self) -> tuple[Callable[..., dict[str, Any]], ...]:
        """The operations as functions a model may call."""
        return (
            self.open_query,
            self.read_page,
            self.read_record,
            self.aggregate,
            self.judge,
            self.conclude,
        )

    def open_query(
        self,
        where: list[ConditionInput] | None = None,
        columns: list[str] | None = None,
        order: list[OrderInput] | None = None,
        stopping: StoppingInput | None = None,
    ) -> dict[str, Any]:
        """Ask which records meet all conditions: an exact count and a handle, no rows yet.

        Read rows with read_page from first_cursor. A page is never the collection: matching_count
        counts all.
        """
        query = rows_query(
            where=where or [],
            columns=columns or [],
            order=order or [],
            stopping=stopping or StoppingInput(),
            at_least="verified",
            accept=None,
        )
        return self._answered(
            "open_query",
            lambda: open_query(
                self._desk, self._principal, scan=self._scan, view=None, query=query
            ),
        )

    def read_page(self, cursor: str, page_size: int | None = None) -> dict[str, Any]:
        """Read the rows at a cursor; next_cursor leads on, and is null at the end.

        Rows are whole: a page over the byte budget holds fewer. A row with values null and
        too_large is read with read_record.
        """
        answer = self._answered(
            "read_page",
            lambda: read_page(self._desk, self._principal, cursor=cursor, page_size=page_size),
        )
        for item in answer.get("page", {}).get("items", ()):
            if item["values"] is not None:
                self._shown(answer["result_handle"])[item["row"]] = item["values"]
        return answer

    def read_record(self, handle: str, row: int) -> dict[str, Any]:
        """Read one record in full, by its row number under a handle."""
        answer = self._answered(
            "read_record",
            lambda: read_record(self._desk, self._principal, handle=handle, row=row),
        )
        if "values" in answer:
            self._shown(handle)[row] = answer["values"]
        return answer

    def aggregate(
        self,
        where: list[ConditionInput] | None = None,
        by: list[str] | None = None,
        measures: list[MeasureInput] | None = None,
    ) -> dict[str, Any]:
        """Compute figures over every matching record in the engine; read no rows for a count."""
        query = figures_query(
            where=where or [],
            by=by or [],
            measures=measures or [],
            at_least="verified",
            accept=None,
        )

        def work() -> AggregateAnswer:
            opened = open_query(
                self._desk, self._principal, scan=self._scan, view=None, query=query
            )
            return aggregate(self._desk, self._principal, handle=opened.result_handle)

        return self._answered("aggregate", work)

    def judge(self, handle: str, verdicts: dict[int, Verdict]) -> dict[str, Any]:
        """Give your verdict on rows you have read, by row number, where no condition can decide.

        Only a verdict on every row that matches supports a statement of the whole; unsure is no
        verdict.
        """
        answer = self._answered(
            "judge",
            lambda: judge(self._desk, self._principal, handle=handle, verdicts=verdicts),
        )
        if "failure" not in answer:
            self.verdicts.setdefault(handle, {}).update(verdicts)
        return answer

    def conclude(self, handle: str) -> dict[str, Any]:
        """Get the sentence you may say of a query or aggregate, with its signed claim id.

        Quote cite_as word for word. Nothing else supports a statement about the collection.
        """
        return self._answered(
            "conclude", lambda: conclude(self._desk, self._principal, handle=handle)
        )

    def _shown(self, handle: str) -> dict[int, Mapping[str, Any]]:
        return self.given.setdefault(handle, {})

    def _answered(self, operation: str, work: Callable[[], Any]) -> dict[str, Any]:
        """Do the work of a call; what a caller can do something about comes back as a failure.

        Raises:
            ScanPipelineError: the evidence disagrees, or the ledger cannot be kept; a model can do
                nothing about it, and its review must not go on.
        """
        one = self._desk.policy().principals.get(self._principal)
        entry = Entry(
            at=self._desk.workspace.clock(),
            principal=self._principal,
            tenant=one.tenant if one else None,
            operation=operation,
            scan=self._scan,
        )
        try:
            answer = work()
        except (ReaderError, ConditionError) as error:
            return self._failed(entry, failure_of(error))
        content = adapter(type(answer)).dump_python(answer, mode="json")
        size = len(adapter(type(answer)).dump_json(answer))
        self._log.write(with_answer(entry, answer, size=size))
        return content

    def _failed(self, entry: Entry, error: ReaderError) -> dict[str, Any]:
        self._log.write(replace(entry, state=error.code, detail=error.detail))
        self.refused.append(error.code)
        return {
            "failure": {"remedy": error.remedy, "code": error.code, "message": str(error)},
        }
