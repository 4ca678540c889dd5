"""The report as a page: it loads nothing, runs nothing, and shows texts from outside as text."""

import sys
from dataclasses import replace
from html.parser import HTMLParser
from xml.etree import ElementTree as ET

import pytest

from scan_pipeline.core.receipt import Identity, IdentityEvidence
from scan_pipeline.stages.reporting.document import Figure
from scan_pipeline.stages.reporting.drawing import draw
from scan_pipeline.stages.reporting.page import to_html
from scan_pipeline.stages.reporting.report import make_report
from scan_pipeline.stages.reporting.wording import visible

HOSTILE = (
    "</title></style><script>alert(1)</script>\"'><img src=x onerror=alert(1)>"
    "\u202egnp\u202c\x1b[31m\x00\u200b {{ 7*7 }} $x^2$ &amp; http://evil.test/?a=1"
)
LOADS = {"src", "srcset", "data", "action", "poster", "background", "ping", "formaction", "cite"}


class Seen(HTMLParser):
    """What a browser would make of a page: tags, attributes, text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags, self.attributes, self.text = list[str](), list[tuple[str, str]](), ""
        self.ids = list[str]()
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]
        self.ids += [value or "" for name, value in attrs if name == "id"]

    def handle_data(self, data):
        self.text += data


@pytest.fixture(params=["verified", "corroborated", "live", "failed"])
def page(request, material) -> str:
    return to_html(make_report(material(request.param)))


def test_page_needs_nothing_else_and_runs_nothing(page) -> None:
    seen = Seen(page)

    assert set(seen.tags).isdisjoint(
        {"script", "link", "iframe", "img", "object", "embed", "base", "form", "image", "a:x"}
    )
    assert {name for name, _ in seen.attributes}.isdisjoint(LOADS)
    assert not [name for name, _ in seen.attributes if name.startswith("on")]
    assert all(v.startswith("#") for n, v in seen.attributes if n in ("href", "xlink:href"))
    assert "@import" not in page
    assert all(part.startswith("#") for part in page.split("url(")[1:])
    assert "default-src 'none'" in page


def test_page_is_laid_out_for_screen_print_dark_and_narrow(page) -> None:
    for rule in ("prefers-color-scheme: dark", "@media print", "max-width: 40rem", "width=device"):
        assert rule in page


def test_ids_are_unique_and_links_lead_to_them(page) -> None:
    seen = Seen(page)

    assert len(seen.ids) == len(set(seen.ids))
    assert {v[1:] for n, v in seen.attributes if n in ("href", "xlink:href")} <= set(seen.ids)


def test_plots_are_text_in_the_colours_of_the_page(material) -> None:
    for block in drawn(material("failed")):
        root = ET.fromstring(draw(block))
        text = [each.text for each in root.iter("{http://www.w3.org/2000/svg}text")]

        assert root.get("role") == "img"
        assert root.get("aria-label") == block.alternative
        assert root.get("width") is None
        assert text
        styles = " ".join(each.get("style", "") for each in root.iter())
        assert "var(--ink)" in styles
        assert "#" not in styles.replace("url(#", "")
        assert "font-family" not in styles


def test_what_came_from_outside_is_shown_and_does_nothing(material, with_receipt) -> None:
    whole = material("failed")
    receipt, first = whole.receipt, whole.receipt.findings.first[0]
    hostile = replace(
        receipt,
        tool=f"GET {HOSTILE}",
        query={"url": HOSTILE, "params": {HOSTILE: HOSTILE}},
        authorized_scope=HOSTILE,
        statement=f"300 records, as visible to {HOSTILE}.",
        identity=IdentityEvidence(before=Identity(principal=HOSTILE, tenant=HOSTILE), after=None),
        snapshot_id=HOSTILE,
        reasons=(HOSTILE,),
        missing_id_ranges=(HOSTILE,),
        findings=replace(
            receipt.findings,
            first=(
                replace(
                    first, key=HOSTILE, expected=HOSTILE, found=HOSTILE, cause=HOSTILE,
                    remedy=HOSTILE, code=HOSTILE,
                ),
            ),
        ),
    )  # fmt: skip
    rows = [{**each, "partition": HOSTILE} for each in whole.partitions[:1]]
    hurt = replace(with_receipt(whole, hostile), partitions=rows)

    page = to_html(make_report(hurt))
    seen = Seen(page)

    plain = Seen(to_html(make_report(whole)))
    assert set(seen.tags) == set(plain.tags)
    assert {name for name, _ in seen.attributes} == {name for name, _ in plain.attributes}
    assert visible(HOSTILE) in seen.text
    assert "\\u202e" in seen.text
    for unseen in "\u202e\u202c\x1b\x00\u200b":
        assert unseen not in page


def test_label_with_dollar_signs_is_no_formula(material) -> None:
    figure = drawn(material("failed"))[0]
    bars = (replace(figure.plot.bars[0], label="$a_1$"), *figure.plot.bars[1:])

    assert "$a_1$" in draw(replace(figure, plot=replace(figure.plot, bars=bars)))


def test_very_long_text_is_shortened(material, with_receipt) -> None:
    whole = material("live")
    receipt = replace(whole.receipt, tool="x" * 5_000)

    page = to_html(make_report(with_receipt(whole, receipt)))

    assert "x" * 401 not in page
    assert "(5,000 characters)" in page


def test_without_the_plotting_library_the_figures_stand_in_tables(material, monkeypatch) -> None:
    report = make_report(material("live"))
    with_plots = to_html(report)
    monkeypatch.setitem(sys.modules, "matplotlib", None)

    page = to_html(report)

    assert "The plot needs scan-pipeline[report]" in page
    assert "<svg" in with_plots
    assert "<svg" not in page
    assert page.count("<table") == with_plots.count("<table")


def test_same_material_gives_the_same_page(material) -> None:
    report = make_report(material("verified"))

    assert to_html(report) == to_html(report)


def drawn(material) -> list[Figure]:
    return [
        block
        for section in make_report(material).sections
        for block in section.blocks
        if isinstance(block, Figure)
    ]
