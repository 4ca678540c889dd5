"""A draft as a scan file: plain YAML, a remark above every guess."""

import textwrap
from collections.abc import Iterator, Mapping
from typing import Any, Final

import yaml

from scan_pipeline.core.footprint import NIGHTS, told_bytes
from scan_pipeline.stages.drafting.proposal import Draft

WIDTH: Final = 100
"""Columns of a line, about at most."""


def scan_file(draft: Draft) -> str:
    """Return the text of the proposed scan file."""
    lines = [*_heading(draft), ""]
    for name, value in draft.attributes.items():
        if isinstance(value, Mapping):
            lines += ["", *_remarks(draft, name, indent=0), f"{name}:"]
            lines += _block(draft, name, value)
        elif isinstance(value, list):
            lines += ["", *_remarks(draft, name, indent=0), f"{name}:"]
            lines += [f"  - {_flow(each)}" for each in value]
        else:
            lines += [*_remarks(draft, name, indent=0), f"{name}: {_flow(value)}"]
    return "\n".join(lines) + "\n"


def sizes(draft: Draft) -> Iterator[str]:
    """Yield what a night and a year of it would read, in sentences."""
    page = f"a page is about {draft.page_bytes:,} bytes"
    if draft.night_bytes is None or draft.pages_implied is None:
        yield f"{page}; nothing says how many there are, so a night's bytes are not known"
        return
    night = draft.night_bytes
    implied = f"the count implies {draft.pages_implied:,} pages"
    yield f"{page}; {implied}: about {told_bytes(night)} a night"
    yield f"a year of nights would read about {told_bytes(night * NIGHTS)}"


def _heading(draft: Draft) -> Iterator[str]:
    yield "# A draft: proposed, never run. Lines that say guess or weaker are for you to confirm."
    for each in (*draft.heading, *sizes(draft)):
        yield from _comment(each, indent=0)
    if draft.fill_in:
        yield from _comment(f"TO FILL IN: {', '.join(draft.fill_in)}", indent=0)


def _block(draft: Draft, name: str, value: Mapping[str, Any]) -> Iterator[str]:
    for field, inner in value.items():
        path = f"{name}.{field}"
        yield from _remarks(draft, path, indent=2)
        yield f"  {field}: {_flow(inner)}"
    for path, what in draft.fill_in.items():
        if path.startswith(f"{name}."):
            yield from _comment(f"TO FILL IN: {path.partition('.')[2]}: {what}", indent=2)


def _remarks(draft: Draft, path: str, *, indent: int) -> Iterator[str]:
    for each in draft.notes.get(path, ()):
        yield from _comment(each, indent=indent)


def _comment(text: str, *, indent: int) -> Iterator[str]:
    before = " " * indent + "# "
    shown = "".join(each if each.isprintable() else " " for each in text)
    yield from textwrap.wrap(
        shown,
        WIDTH,
        initial_indent=before,
        subsequent_indent=before + "  ",
        break_long_words=False,
        break_on_hyphens=False,
    )


def _flow(value: Any) -> str:
    """Return a value on one line."""
    text = yaml.safe_dump(
        value, default_flow_style=True, sort_keys=False, allow_unicode=True, width=2**31
    )
    return text.removesuffix("\n").removesuffix("\n...")
