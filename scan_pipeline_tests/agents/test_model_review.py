"""A model reads by the readers' operations; what it may be believed, the control plane counts."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai.exceptions import ModelAPIError
from pydantic_ai.messages import ModelMessage, ModelResponse, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.test import TestModel

from scan_pipeline.agents import model_review
from scan_pipeline.agents.audit_log import audit_log, keyed_in
from scan_pipeline.agents.desk import Desk
from scan_pipeline.agents.ledger import Ledger
from scan_pipeline.agents.model_review import Task, review
from scan_pipeline.agents.one_generation import OneGeneration
from scan_pipeline.agents.policy import Limits, Policy, Principal, ScanPolicy, View
from scan_pipeline.agents.reviewed import Review
from scan_pipeline.core.errors import ConfigurationError, EvidenceError, RetryError

SIZE = 120
WHO = "model"


@dataclass
class Acting:
    """A model that follows a script over the tools it is given.

    Attributes:
        pages: pages it reads before it stops; None for all.
        verdict: its verdict on a row, by its values.
        rows: rows it cites; None for those it judged a match.
        says: its prose; `{cite}` is what it may cite.
        named: how it calls its theme.
    """

    pages: int | None = None
    verdict: Callable[[dict[str, Any]], str] = lambda values: (
        "match" if values["region"] == "eu" else "no_match"
    )
    rows: list[int] | None = None
    says: str = ""
    named: str = "the same region"
    asked: list[str] = field(default_factory=list)
    seen: list[dict[str, Any]] = field(default_factory=list)

    def model(self) -> FunctionModel:
        script = self.script()
        next(script)
        return FunctionModel(lambda messages, info: script.send((messages, info)))

    def script(self) -> Any:
        messages, info = yield
        prompt = messages[0].parts[-1].content
        handle = prompt.split("handle of your review is ")[1].split(",")[0]
        cursor = prompt.split("first cursor ")[1].split(",")[0]
        matches, read = list[int](), 0
        while cursor and (self.pages is None or read < self.pages):
            page = yield from self.call(info, "read_page", cursor=cursor)
            read += 1
            if "failure" in page:
                break
            verdicts = {
                str(item["row"]): self.verdict(item["values"]) for item in page["page"]["items"]
            }
            self.seen += [item["values"] for item in page["page"]["items"]]
            matches += [int(row) for row, said in verdicts.items() if said == "match"]
            yield from self.call(info, "judge", handle=handle, verdicts=verdicts)
            cursor = page["page"]["next_cursor"]
        cite = (yield from self.call(info, "conclude", handle=handle)).get("cite_as", "")
        cited = matches if self.rows is None else self.rows
        theme = {"name": self.named, "rows": cited, "confidence": 0.9}
        finding = {"themes": [theme] if cited else [], "summary": self.says.format(cite=cite)}
        yield ModelResponse(parts=[ToolCallPart(info.output_tools[0].name, finding)])

    def call(self, info: AgentInfo, tool: str, **arguments: Any) -> Any:
        assert tool in {each.name for each in info.function_tools}
        self.asked.append(tool)
        messages: list[ModelMessage]
        messages, _ = yield ModelResponse(parts=[ToolCallPart(tool, arguments)])
        (part,) = messages[-1].parts
        assert isinstance(part, ToolReturnPart), part
        return part.content


@dataclass
class Reviewing:
    """A desk over one walked generation of customers, for one model."""

    desk: Desk
    walked: Any

    def __call__(self, model: Any) -> Review:
        task = Task(
            scan="customers",
            principal=WHO,
            question="Which customers belong together?",
            key="customer_id",
            nouns=("customers",),
        )
        return review(self.desk, task, model=model, log=audit_log(self.walked.workspace))


@pytest.fixture
def reviewing(bench: Any) -> Callable[..., Reviewing]:
    def made(size: int = SIZE, **limits: int) -> Reviewing:
        walked = bench.walk(bench.registry(size=size), {"contract.limits": {"pages": 50}})
        one = OneGeneration(walked.scan, workspace=walked.workspace, generation=walked.generation)
        policy = Policy(
            principals={WHO: Principal(views={"customers": ("some",)})},
            scans={
                "customers": ScanPolicy(
                    views={"some": View(columns=("customer_id", "region"))}, shared=True
                )
            },
            limits=Limits(**{"page_size": 50, **limits}),
        )
        desk = Desk(
            walked.workspace,
            collection=lambda _: one,
            policy=lambda: policy,
            ledger=Ledger(walked.workspace.project.agents / "ledger.sqlite"),
            keyed=keyed_in(walked.workspace),
        )
        return Reviewing(desk=desk, walked=walked)

    return made


def test_model_that_reads_and_judges_all_is_complete(reviewing: Callable[..., Reviewing]) -> None:
    asking, acting = reviewing(), Acting(says="{cite}")
    found = asking(acting.model())
    (theme,) = found.themes

    assert (found.completeness, found.ended) == ("complete", "finding")
    assert (found.conclusion.evaluated_by, found.conclusion.inspected) == ("reader", SIZE)
    assert found.conclusion.statement.startswith(f"A reader judged all {SIZE} customers and marked")
    assert found.conclusion.ground.receipt_id == asking.walked.night.stored.receipt_id
    assert (found.prose, found.unsupported) == ("stands", ())
    assert found.quality["read"] == found.quality["judged"] == SIZE
    assert (found.quality["left_out"], found.quality["refusals"]) == (0, 0)
    assert found.quality["input_tokens"] > 0
    assert len(theme.keys) == found.conclusion.matches > 0
    assert theme.keys[0].startswith("customer-")
    assert acting.asked == [*["read_page", "judge"] * 3, "conclude"]


def test_model_that_stops_after_page_one_is_partial_and_overruled(
    reviewing: Callable[..., Reviewing],
) -> None:
    """It claims all, in prose and in the name of its theme; neither is passed on."""
    found = reviewing()(
        Acting(
            pages=1,
            says="I have read all customers. None but those of Europe belong together.",
            named="all 120 customers",
        ).model()
    )
    (theme,) = found.themes

    assert found.completeness == "partial"
    assert "A reader judged 50 of the 120 customers" in found.conclusion.statement
    assert "70 were not judged, and any may match" in found.conclusion.statement
    assert (found.summary, found.prose, theme.name) == (None, "withheld", None)
    assert [each.fault for each in found.unsupported] == ["uncited"] * 3
    assert found.quality["left_out"] == 70


def test_name_that_counts_is_withheld_and_leaves_the_prose_alone(
    reviewing: Callable[..., Reviewing],
) -> None:
    found = reviewing()(Acting(says="{cite}", named="all 120 customers").model())

    assert (found.prose, found.themes[0].name) == ("stands", None)
    assert [each.sentence for each in found.unsupported] == ["all 120 customers"]


def test_absence_needs_every_verdict(reviewing: Callable[..., Reviewing]) -> None:
    """No match on page one is no match nowhere else; to the end it is none."""
    asking = reviewing()
    some = asking(Acting(pages=1, verdict=lambda _: "no_match").model())
    every = asking(Acting(verdict=lambda _: "no_match").model())

    assert (some.completeness, some.conclusion.claim) == ("partial", "partial_no_match")
    assert (every.completeness, every.conclusion.claim) == ("complete", "complete_no_match")
    assert every.themes == ()


def test_unsure_is_no_verdict(reviewing: Callable[..., Reviewing]) -> None:
    def verdict(values: dict[str, Any]) -> str:
        return "unsure" if values["customer_id"] == "customer-7" else "no_match"

    one_left = reviewing()(Acting(verdict=verdict).model())
    none = reviewing()(Acting(verdict=lambda _: "unsure").model())

    assert (one_left.completeness, one_left.quality["left_out"]) == ("partial", 1)
    assert (none.completeness, none.quality["unsure"]) == ("nothing_judged", SIZE)


def test_rows_that_were_not_given_or_not_judged_a_match_do_not_count(
    reviewing: Callable[..., Reviewing],
) -> None:
    def verdict(values: dict[str, Any]) -> str:
        return "match" if values["customer_id"] in ("customer-1", "customer-2") else "no_match"

    found = reviewing()(Acting(pages=1, verdict=verdict, rows=[1, 2, 2, 3, 119, 5_000]).model())
    (theme,) = found.themes

    assert (theme.rows, theme.keys) == ((1, 2), ("customer-1", "customer-2"))
    assert found.quality["cited_in_vain"] == 3


def test_model_sees_what_its_view_shows_and_no_more(reviewing: Callable[..., Reviewing]) -> None:
    acting = Acting()
    reviewing()(acting.model())

    assert {name for values in acting.seen for name in values} == {"customer_id", "region"}


def test_budget_ends_the_reading_and_the_review_is_partial(
    reviewing: Callable[..., Reviewing],
) -> None:
    found = reviewing(run_pages=1)(Acting(verdict=lambda _: "no_match").model())

    assert found.completeness == "partial"
    assert found.conclusion.claim == "incomplete_budget_exhausted"
    assert (found.quality["read"], found.quality["refusals"]) == (50, 1)


def test_limit_of_requests_keeps_what_was_judged(
    reviewing: Callable[..., Reviewing], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_review, "MOST_REQUESTS", 2)
    found = reviewing()(Acting().model())

    assert (found.ended, found.completeness, found.themes) == ("usage_limit", "partial", ())
    assert (found.quality["judged"], found.quality["requests"]) == (50, 2)


def test_claim_of_another_reader_supports_nothing(reviewing: Callable[..., Reviewing]) -> None:
    """A text in the records may hold a claim's id; a model that repeats it is not believed."""
    asking = reviewing()
    policy = asking.desk.policy()
    other = Policy(
        principals={**policy.principals, "other": policy.principals[WHO]}, scans=policy.scans
    )
    asking.desk.policy = lambda: other
    from scan_pipeline.agents.conclude import conclude
    from scan_pipeline.agents.open_query import open_query
    from scan_pipeline.agents.queries import Query

    opened = open_query(asking.desk, "other", scan="customers", view=None, query=Query())
    theirs = conclude(asking.desk, "other", handle=opened.result_handle)
    found = asking(Acting(pages=1, says=theirs.cite_as).model())

    assert found.prose == "withheld"
    assert "claim_unknown" in {each.fault for each in found.unsupported}


def test_the_library_s_own_test_model_is_believed_nothing(
    reviewing: Callable[..., Reviewing],
) -> None:
    """It calls every tool with made-up arguments and hands in a made-up finding."""
    calls = ["open_query", "read_page", "read_record", "aggregate", "conclude"]
    made_up = {"themes": [{"name": "a", "rows": [1], "confidence": 1}], "summary": "All match."}
    found = reviewing()(TestModel(call_tools=calls, custom_output_args=made_up))

    assert (found.ended, found.completeness) == ("finding", "nothing_judged")
    assert (found.themes, found.quality["cited_in_vain"]) == ((), 1)
    assert found.conclusion.evaluated_by == "engine"
    assert found.quality["refusals"] == 3


def test_empty_collection_is_complete_without_asking_anyone(
    reviewing: Callable[..., Reviewing],
) -> None:
    def never(*_: Any) -> ModelResponse:
        raise AssertionError

    found = reviewing(0)(FunctionModel(never))

    assert (found.completeness, found.ended) == ("complete", "nothing_to_read")
    assert found.conclusion.claim == "complete_no_match"


def test_receipt_that_falls_while_the_model_reads_ends_the_review(
    reviewing: Callable[..., Reviewing],
) -> None:
    asking = reviewing()

    def verdict(values: dict[str, Any]) -> str:
        for path in (
            asking.walked.workspace.store("customers", asking.walked.generation)
            .records()
            .file_uris(asking.walked.generation)
        ):
            with Path(path).open("ab") as file:
                file.write(b"x")
        return "no_match"

    with pytest.raises(EvidenceError, match="bytes; expected"):
        asking(Acting(verdict=verdict).model())


def test_provider_that_fails_is_told_by_kind_and_not_in_its_words(
    reviewing: Callable[..., Reviewing],
) -> None:
    def failing(*_: Any) -> ModelResponse:
        raise ModelAPIError("m", "invalid key sk-secret")

    with pytest.raises(RetryError, match="ModelAPIError") as told:
        reviewing()(FunctionModel(failing))

    assert "sk-secret" not in str(told.value)


@pytest.mark.parametrize("model", ["nonsense", "nobody:model"])
def test_model_that_is_not_known_is_a_matter_of_configuration(
    reviewing: Callable[..., Reviewing], model: str
) -> None:
    with pytest.raises(ConfigurationError, match="expected provider:name"):
        reviewing()(model)


def test_each_call_leaves_a_line_in_the_log(reviewing: Callable[..., Reviewing]) -> None:
    asking = reviewing()
    asking(Acting().model())
    log = (asking.walked.workspace.project.agents / "audit.jsonl").read_text()

    assert log.count("\n") == 7
    assert log.count('"principal":"model"') == 7
    assert "customer-7" not in log
