"""Plots as SVG that stands in a page: its colours are the page's, its text is text, no script.

matplotlib draws in fixed colours; each stands for a variable of the page's style sheet and is
replaced by it, so that one drawing serves light, dark and print.
"""

import io
from base64 import b64encode
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final
from xml.etree import ElementTree as ET  # reads what matplotlib wrote a moment ago

from scan_pipeline.core.errors import ConfigurationError
from scan_pipeline.stages.reporting.document import Bars, Course, Figure, Weight
from scan_pipeline.stages.reporting.wording import visible

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawn

WIDTH: Final = 5.0
"""Width of a plot in inches of 72 units; about a phone's width, so that text keeps its size."""

INK: Final = "#010101"
MUTED: Final = "#020202"
GRID: Final = "#030303"
ACCENT: Final = "#040404"
WAIT: Final = "#050505"

OF_WEIGHT: Final[Mapping[Weight, str]] = MappingProxyType(
    {"good": "#060606", "fair": "#070707", "poor": "#080808", "bad": "#090909", "plain": ACCENT}
)

_VARIABLES: Final[Mapping[str, str]] = MappingProxyType(
    {
        INK: "var(--ink)",
        MUTED: "var(--muted)",
        GRID: "var(--line)",
        ACCENT: "var(--plain)",
        WAIT: "var(--wait)",
        "#060606": "var(--good)",
        "#070707": "var(--fair)",
        "#080808": "var(--poor)",
        "#090909": "var(--bad)",
    }
)

_ON_WHITE: Final[Mapping[str, str]] = MappingProxyType(
    {
        "var(--ink)": "#1c1f24",
        "var(--muted)": "#5a6270",
        "var(--line)": "#d5dae1",
        "var(--plain)": "#4a6fa5",
        "var(--wait)": "#f0dfc0",
        "var(--good)": "#1f7a4d",
        "var(--fair)": "#1667a8",
        "var(--poor)": "#a15c00",
        "var(--bad)": "#b3261e",
    }
)
"""The colours of report.css in light, for where no style sheet reaches."""

_SETTINGS: Final[Mapping[str, Any]] = MappingProxyType(
    {
        "svg.fonttype": "none",
        "text.parse_math": False,  # a dollar sign in a label is one
        "font.size": 12,
        "font.family": "DejaVu Sans",  # to measure by; the page's own font is shown
        "text.color": INK,
        "axes.edgecolor": GRID,
        "axes.labelcolor": MUTED,
        "xtick.color": MUTED,
        "ytick.color": INK,
    }
)

_SVG: Final = "{http://www.w3.org/2000/svg}"


def can_draw() -> bool:
    """Say whether the plotting library is installed."""
    try:
        import matplotlib as _  # noqa: F401, ICN001, PLC0415  # half a second, for reports alone
    except ModuleNotFoundError:
        return False
    return True


def draw(figure: Figure) -> str:
    """Return a figure's plot as an SVG element.

    Raises:
        ConfigurationError: matplotlib is not installed.
    """
    try:
        import matplotlib as mpl  # noqa: PLC0415  # half a second, for reports alone
        from matplotlib.figure import Figure as Drawn  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise ConfigurationError(
            f"the plots of a report need {error.name}, which is not installed; expected pip "
            "install 'scan-pipeline[report]'"
        ) from error
    settings: dict[Any, Any] = {**_SETTINGS, "svg.hashsalt": figure.name}
    with mpl.rc_context(settings):
        if isinstance(figure.plot, Bars):
            drawn = Drawn(figsize=(WIDTH, 0.8 + 0.34 * len(figure.plot.bars)), layout="constrained")
            _draw_bars(drawn, figure.plot)
        else:
            drawn = Drawn(figsize=(WIDTH, 2.9), layout="constrained")
            _draw_course(drawn, figure.plot)
        written = io.StringIO()
        drawn.savefig(written, format="svg", transparent=True, metadata={"Date": None})
    return _fitted(written.getvalue(), alternative=figure.alternative)


def image(figure: Figure) -> str:
    """Return a figure's plot as a `data:` address: an image of its own, in fixed colours on white.

    Raises:
        ConfigurationError: matplotlib is not installed.
    """
    drawing = draw(figure)
    for variable, colour in _ON_WHITE.items():
        drawing = drawing.replace(variable, colour)
    own = '<svg style="background: #ffffff; font-family: system-ui, sans-serif" width="640" '
    drawing = drawing.replace("<svg ", own, 1)
    return f"data:image/svg+xml;base64,{b64encode(drawing.encode()).decode()}"


def _draw_bars(drawn: "Drawn", plot: Bars) -> None:
    axes = drawn.add_subplot()
    places = range(len(plot.bars))
    largest = max(max(each.value or 0, each.expected or 0) for each in plot.bars) or 1
    for place, each in zip(places, plot.bars, strict=True):
        axes.barh(
            place,
            each.value or 0,
            height=0.62,
            color=OF_WEIGHT[each.weight],
            edgecolor=INK if each.strong else "none",
            linewidth=1.6 if each.strong else 0,
        )
        if each.expected is not None:
            axes.plot(
                [each.expected, each.expected], [place - 0.42, place + 0.42], color=INK, linewidth=2
            )
        end = max(each.value or 0, each.expected or 0)
        axes.text(end + largest * 0.02, place, visible(each.said), va="center", color=INK)
    axes.set_yticks(list(places), [visible(each.label) for each in plot.bars])
    axes.set_ylim(len(plot.bars) - 0.4, -0.6)
    axes.set_xlim(0, largest * _room(each.said for each in plot.bars))
    axes.tick_params(axis="y", length=0)
    axes.set_xlabel(plot.unit)
    _plain(axes)
    _few_whole_numbers(axes.xaxis, largest)


def _room(said: Any) -> float:
    """Return how much longer than its longest bar a plot is, so that the words behind it fit."""
    return 1.08 + 0.045 * max((len(each) for each in said), default=0)


def _draw_course(drawn: "Drawn", plot: Course) -> None:
    axes = drawn.add_subplot()
    for each in plot.waits:
        axes.axvspan(each.begins, each.ends, color=WAIT, linewidth=0)
    for index, line in enumerate(plot.lines):
        xs, ys = zip(*line.points, strict=True)
        axes.plot(
            xs,
            ys,
            color=ACCENT if index == 0 else OF_WEIGHT["fair"],
            linestyle="-" if index == 0 else "--",
            linewidth=1.8,
            drawstyle="steps-post",
        )
        if len(plot.lines) > 1:
            # Said at the line itself: a legend would have to be looked up.
            axes.annotate(
                line.label,
                (xs[len(xs) // 2], ys[len(ys) // 2]),
                xytext=(6, -12),
                textcoords="offset points",
            )
    if plot.refused:
        xs, ys = zip(*plot.refused, strict=True)
        axes.plot(xs, ys, linestyle="none", marker="x", color=OF_WEIGHT["bad"], markersize=8, mew=2)
    most = max(pages for line in plot.lines for _, pages in line.points)
    axes.set_ylim(0, most * 1.08 or 1)
    axes.set_xlim(left=0)
    axes.set_xlabel("seconds since it was opened")
    axes.set_ylabel("pages")
    _plain(axes)
    _few_whole_numbers(axes.yaxis, most)


def _plain(axes: "Axes") -> None:
    """Leave what carries data: no frame, a light grid across."""
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.grid(axis="x", color=GRID, linewidth=0.6)
    axes.set_axisbelow(True)


def _few_whole_numbers(axis: Any, largest: int) -> None:
    from matplotlib.ticker import MaxNLocator, StrMethodFormatter  # noqa: PLC0415

    axis.set_major_locator(MaxNLocator(nbins=4, integer=True, min_n_ticks=1))
    axis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    ticks: Sequence[float] = axis.get_major_locator().tick_values(0, largest)
    axis.set_ticks([each for each in ticks if 0 <= each <= largest])


def _fitted(drawing: str, *, alternative: str) -> str:
    """Fit a drawing into a page: no fixed size, no colour, font or name of its own."""
    ET.register_namespace("", "http://www.w3.org/2000/svg")
    ET.register_namespace("xlink", "http://www.w3.org/1999/xlink")
    root = ET.fromstring(drawing)  # noqa: S314  # our own, of this moment
    used = _references(drawing)
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag in {f"{_SVG}metadata", f"{_SVG}style"}:
                parent.remove(child)
        for name in ("width", "height", "version") if parent is root else ():
            parent.attrib.pop(name, None)
        if parent.get("id") not in used:
            parent.attrib.pop("id", None)
        if "style" in parent.attrib:
            parent.set("style", _styled(parent.attrib["style"]))
    root.set("role", "img")
    root.set("aria-label", alternative)
    for parent in [each for each in root.iter() if len(each)]:
        for child in [c for c in parent if c.tag == f"{_SVG}defs" and not len(c)]:
            parent.remove(child)
    return ET.tostring(root, encoding="unicode")


def _references(drawing: str) -> frozenset[str]:
    """Return the names that something in the drawing refers to."""
    parts = drawing.replace("url(#", '"#').replace(")", '"').split('"#')[1:]
    return frozenset(each.split('"', 1)[0] for each in parts)


def _styled(style: str) -> str:
    kept = list[str]()
    for each in style.split(";"):
        name, _, value = each.partition(":")
        if name.strip() == "font":  # `10.5px 'DejaVu Sans'`
            kept.append(f"font-size: {value.split()[0]}")
        elif name.strip() and name.strip() != "font-family":
            kept.append(f"{name.strip()}: {_VARIABLES.get(value.strip(), value.strip())}")
    return "; ".join(kept)
