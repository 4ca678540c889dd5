"""A source whose records lose what must not be stored, before anything of a page is kept.

The body that is stored is then not the body as sent: it is canonical JSON lines, one a record,
after a first line that says what the source's facts saw beside the records. Digests are over these
bytes, and so are the leaves (`canonical-json/v1`). What is dropped is nowhere, and no restaging
brings it back.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from scan_pipeline.core.canonical import (
    CanonicalFormError,
    canonical_json,
    leaf_hashes,
    parse_exact,
)
from scan_pipeline.core.errors import ProtocolError
from scan_pipeline.core.findings import Finding
from scan_pipeline.core.page import Opening, Page, Position
from scan_pipeline.core.redacted_paths import RedactFacts, redacted
from scan_pipeline.core.source_facts import SourceFacts
from scan_pipeline.sources.source import Beside, Noticed, RefusedCallback, Removal, Source

FORMAT: Final = "scan-pipeline/redacted/v1"


class RedactingSource(Source):
    """Takes out of another source's pages what its facts say.

    Args:
        inner: the source itself.
        redact: what is taken out.
    """

    def __init__(self, inner: Source, redact: RedactFacts) -> None:
        self._inner, self._redact = inner, redact
        self.adapter = inner.adapter

    @property
    def facts(self) -> SourceFacts:
        """Return what is declared of the source."""
        return self._inner.facts

    @property
    def waited(self) -> float:
        """Return the seconds spent in waits that the source itself asked for."""
        return self._inner.waited

    def allow(self, limit: float | None, *, used: float) -> None:
        """Pass on what is allowed."""
        self._inner.allow(limit, used=used)

    def tell_aside(self, refused: RefusedCallback) -> None:
        """Pass on who hears of what was refused aside."""
        self._inner.tell_aside(refused)

    def principal(self) -> bytes | None:
        """Return what tells one principal from another."""
        return self._inner.principal()

    def opening(self) -> Opening:
        """Return what the source says of itself before the first page; raises as the inner one."""
        return self._inner.opening()

    def fetch(self, position: Position, *, refused: RefusedCallback) -> Page:
        """Return one page without what must not be stored.

        Raises as the inner source, and ProtocolError where a record cannot be taken apart: what
        cannot be looked into cannot be redacted, and is not stored.
        """
        page = self._inner.fetch(position, refused=refused)
        lines = [self._line(text) for text in self._inner.records(page.body)]
        header = {
            "format": FORMAT,
            "beside": [each.__dict__ for each in self._inner.beside(page.body)],
            "checkpoint": self._inner.checkpoint_in(page.body, position),
        }
        body = b"\n".join([canonical_json(header), *lines])
        return replace(page, body=body, records=len(lines), leaf_hashes=leaf_hashes(lines))

    def closing(self, position: Position) -> Opening:
        """Return what the source says of itself after the last page."""
        return self._inner.closing(position)

    def records(self, body: bytes) -> Sequence[bytes]:
        """Return the records of a stored body.

        Raises:
            ProtocolError: the body is none of ours.
        """
        self._header(body)
        return body.split(b"\n")[1:]

    def noticed(self, records: Sequence[bytes]) -> Iterator[Noticed]:
        """Yield what the facts let us see inside records, as far as it is left."""
        return self._inner.noticed(records)

    def beside(self, body: bytes) -> Iterator[Beside]:
        """Yield what the facts saw beside the records when the page came."""
        for each in self._header(body)["beside"]:
            yield Beside(**each)

    def checkpoint_in(self, body: bytes, position: Position) -> str | None:
        """Return the checkpoint that the page ended with when it came."""
        del position
        return self._header(body)["checkpoint"]

    def removals(self, records: Sequence[bytes]) -> Mapping[int, Removal]:
        """Return which records say that one was removed."""
        return self._inner.removals(records)

    def let_go(self) -> tuple[Finding, ...]:
        """End what the source holds for this walk."""
        return self._inner.let_go()

    def close(self) -> None:
        """Let go of connections."""
        self._inner.close()

    def _line(self, text: bytes) -> bytes:
        try:
            return canonical_json(redacted(parse_exact(text), self._redact))
        except CanonicalFormError as error:
            raise ProtocolError(
                "body_unparsable",
                "a record is no plain JSON value, so that nothing can be taken out of it for sure; "
                "expected members once each, in valid UTF-8",
            ) from error

    def _header(self, body: bytes) -> dict[str, Any]:
        try:
            header = json.loads(body.partition(b"\n")[0])
            if header["format"] == FORMAT:
                return header
        except (ValueError, KeyError, TypeError):
            pass
        raise ProtocolError("body_unparsable", f"the stored body does not begin with {FORMAT}")
