"""A report as a value: sections in the order of a reviewer's questions, made of plain blocks.

Nothing here knows of HTML or Markdown. What came from outside our code (a source, a scan file, a
person) is `Told`, so that a writer can fence it in; writers escape everything all the same.
"""

from typing import ClassVar, Literal, TypeAlias

from scan_pipeline.core.value import record


@record
class Told:
    """A text from outside: an address, a key, a principal, what a source said."""

    text: str


@record
class Digest:
    """A digest or an id, to be compared and not to be read."""

    text: str


@record
class Command:
    """What a reader can type."""

    text: str


@record
class Phrase:
    """A sentence of ours with texts from outside in it."""

    parts: tuple[str | Told, ...]


Cell: TypeAlias = str | Told | Digest | Command | Phrase

Weight: TypeAlias = Literal["good", "fair", "poor", "bad", "plain"]
"""How much a reader should worry; always beside a word that says it too."""


@record
class Fact:
    """A named fact; several values stand one below the other.

    Attributes:
        name: what it is.
        values: none is told as a dash.
        weight: how much a reader should worry.
    """

    name: str
    values: tuple[Cell, ...]
    weight: Weight = "plain"


@record
class Facts:
    """Named facts, one a line."""

    kind: ClassVar[str] = "facts"

    facts: tuple[Fact, ...]


@record
class Column:
    """A column of a table; numbers stand to the right."""

    name: str
    numeric: bool = False


@record
class Row:
    """A row of a table."""

    cells: tuple[Cell, ...]
    weight: Weight = "plain"


@record
class Table:
    """A table.

    Attributes:
        caption: what it holds.
        columns: its columns.
        rows: its rows, of as many cells.
        wordy: whether its cells are sentences, so that a narrow screen lays each row out as a card.
    """

    kind: ClassVar[str] = "table"

    caption: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    wordy: bool = False


@record
class Note:
    """A sentence or two of ours."""

    kind: ClassVar[str] = "note"

    text: Cell
    weight: Weight = "plain"


@record
class Bar:
    """One bar of a plot.

    Attributes:
        label: what it is of.
        value: its length; None where it is not known.
        expected: where a mark stands; None where nothing is.
        said: words at its end.
        weight: how much a reader should worry.
        strong: whether it is the one that the report is about.
    """

    label: str
    value: int | None
    expected: int | None
    said: str
    weight: Weight = "plain"
    strong: bool = False


@record
class Bars:
    """Bars from left to right, one below the other.

    Attributes:
        unit: what is counted.
        bars: the bars.
    """

    kind: ClassVar[str] = "bars"

    unit: str
    bars: tuple[Bar, ...]


@record
class Line:
    """A course over time: (seconds since the first began, pages so far)."""

    label: str
    points: tuple[tuple[float, int], ...]


@record
class Span:
    """A stretch of time in which nothing came because something was waited for; seconds."""

    begins: float
    ends: float


@record
class Course:
    """Pages over time.

    Attributes:
        lines: a line a walk.
        waits: waits before an answer that took more than one send.
        refused: when an answer came that was not a page, with pages so far.
    """

    kind: ClassVar[str] = "course"

    lines: tuple[Line, ...]
    waits: tuple[Span, ...]
    refused: tuple[tuple[float, int], ...]


@record
class Figure:
    """A plot, the words for who cannot see it, and the table of what it shows.

    Attributes:
        name: of a file or an element, `[a-z_]+`.
        caption: what it shows.
        alternative: the same in words.
        legend: what its marks mean.
        plot: what is drawn.
        table: what is drawn, as figures.
    """

    kind: ClassVar[str] = "figure"

    name: str
    caption: str
    alternative: str
    legend: str
    plot: Bars | Course
    table: Table


Block: TypeAlias = Facts | Table | Note | Figure


@record
class Section:
    """One of a reviewer's questions.

    Attributes:
        anchor: `[a-z_]+`.
        question: the question.
        answer: its answer in a sentence or two.
        weight: how much a reader should worry.
        blocks: what the answer rests on.
    """

    anchor: str
    question: str
    answer: Cell
    weight: Weight
    blocks: tuple[Block, ...]


@record
class Report:
    """The account of one generation.

    Attributes:
        title: scan and generation.
        scan: name of the scan.
        generation: name of the generation.
        verdict: status and whether it was accepted, in words.
        weight: how much a reader should worry.
        statement: the receipt's one sentence.
        glance: the figures that are asked for first.
        sections: the questions.
        foot: what made the report, when and from what.
    """

    title: str
    scan: str
    generation: str
    verdict: str
    weight: Weight
    statement: Cell
    glance: tuple[Fact, ...]
    sections: tuple[Section, ...]
    foot: Cell
