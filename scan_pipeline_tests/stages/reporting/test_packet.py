"""The report as Markdown: what a renderer makes of it has no HTML, no link and whole tables."""

from dataclasses import replace
from itertools import pairwise

import pytest
from markdown_it import MarkdownIt

from scan_pipeline.stages.reporting.document import Told
from scan_pipeline.stages.reporting.packet import markdown, to_markdown
from scan_pipeline.stages.reporting.report import make_report

HOSTILE = "`` ` | [x](http://evil.test) <b>x</b> ![i](http://evil.test/i.png) \u202e\n# @octocat\\"


def tokens(text: str):
    parsed = MarkdownIt("commonmark").enable("table").parse(text)
    return [*parsed, *(inner for each in parsed for inner in each.children or ())]


def harmless(text: str) -> bool:
    kinds = {each.type for each in tokens(text)}
    return kinds.isdisjoint({"html_inline", "html_block", "link_open", "image", "fence"})


@pytest.mark.parametrize("kind", ["verified", "corroborated", "live", "failed"])
def test_packet_has_the_questions_as_headings_and_every_table_whole(material, kind) -> None:
    report = make_report(material(kind))
    text = to_markdown(report)

    parsed = MarkdownIt("commonmark").enable("table").parse(text)
    headings = [
        after.content
        for each, after in pairwise(parsed)
        if each.type == "heading_open" and each.tag == "h2"
    ]
    assert headings == [each.question for each in report.sections]
    assert harmless(text)
    assert "\n|" in text
    assert not [each for each in parsed if each.type == "paragraph_open" and "---|" in str(each)]


def test_text_from_outside_is_code_and_nothing_else(material, with_receipt) -> None:
    whole = material("failed")
    receipt, first = whole.receipt, whole.receipt.findings.first[0]
    hurt = replace(
        receipt,
        authorized_scope=HOSTILE,
        statement=f"300 records, as visible to {HOSTILE}.",
        tool=HOSTILE,
        findings=replace(receipt.findings, first=(replace(first, key=HOSTILE, found=HOSTILE),)),
    )
    report = make_report(with_receipt(whole, hurt))
    text = to_markdown(report)

    assert harmless(text)
    assert "\u202e" not in text
    rows = [line for line in text.splitlines() if line.startswith("| error")]
    assert len(rows) == 1
    cells = [each for each in tokens(text) if each.type == "td_open"]
    plain = [each for each in tokens(to_markdown(make_report(whole))) if each.type == "td_open"]
    kinds = len({each.code for each in receipt.findings.first})
    assert len(plain) - len(cells) == 6 * (kinds - 1)


@pytest.mark.parametrize("text", ["a", "`", "``a`", " a ", "a|b", "", "  ", "a`"])
def test_code_span_holds_the_text_as_it_is(text) -> None:
    rendered = MarkdownIt("commonmark").renderInline(f"x {markdown(Told(text=text))} y")

    expected = {"": "(empty)", "  ": "(blank)"}.get(text, f"<code>{text}</code>")
    assert rendered == f"x {expected} y"
