"""The report as one HTML page that needs nothing else: no script, no font, no address that loads.

Everything is escaped by the template engine; texts from outside stand in `<bdi>`, so that a text
that runs from right to left turns nothing around it. The page forbids itself to load anything.
"""

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Final

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from scan_pipeline.stages.reporting.document import (
    Cell,
    Command,
    Digest,
    Figure,
    Phrase,
    Report,
    Told,
)
from scan_pipeline.stages.reporting.drawing import can_draw, draw
from scan_pipeline.stages.reporting.wording import visible

_FOLDER: Final = files("scan_pipeline.stages.reporting")


def to_html(report: Report) -> str:
    """Return the report as a page; without the plotting library its figures stand in tables."""
    plots = can_draw()
    drawings: Mapping[str, Markup | None] = {
        block.name: Markup(draw(block)) if plots else None  # noqa: S704  # escaped as XML there
        for section in report.sections
        for block in section.blocks
        if isinstance(block, Figure)
    }
    style = Markup(_text("report.css"))  # noqa: S704  # our own file
    return (
        _environment()
        .from_string(_text("report.html.jinja"))
        .render(report=report, drawings=drawings, style=style)
    )


def cell_markup(cell: Cell) -> Markup:
    """Return a cell as HTML."""
    match cell:
        case str():
            return Markup("{}").format(visible(cell))
        case Told():
            return Markup("<bdi>{}</bdi>").format(visible(cell.text))
        case Digest():
            return Markup('<code class="digest">{}</code>').format(visible(cell.text))
        case Command():
            return Markup('<code class="command">{}</code>').format(visible(cell.text))
        case Phrase():
            return Markup("").join(cell_markup(each) for each in cell.parts)


@cache
def _environment() -> Environment:
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["cell"] = cell_markup
    environment.filters["seen"] = visible
    return environment


def _text(name: str) -> str:
    return _FOLDER.joinpath(name).read_text(encoding="utf-8")
