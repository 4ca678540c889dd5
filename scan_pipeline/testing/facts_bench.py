"""The bench of a scan file over HTTP: its own facts are played by a server made from them."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Final

from scan_pipeline.core.scan import Scan
from scan_pipeline.sources.http.facts import HttpFacts
from scan_pipeline.sources.last_key import LastKeySource
from scan_pipeline.sources.next_link import NextLinkSource
from scan_pipeline.sources.offset import OffsetSource
from scan_pipeline.sources.page_token import PageTokenSource
from scan_pipeline.testing.bench import Bench, Opened
from scan_pipeline.testing.facts_population import keys_of, made_record
from scan_pipeline.testing.facts_server import FactsServer, Row
from scan_pipeline.testing.faults import Fault, NotExercisedError
from scan_pipeline.testing.http_faults import AT_THE_EXCHANGE, HttpFaults

SIZE: Final = 4
"""Records of a page."""

RECORDS: Final = 11
"""Records of the population: three pages, the last one short."""

PLAYED: Final = (PageTokenSource, NextLinkSource, OffsetSource, LastKeySource)
"""Facts from which a server can be made."""

WITHOUT_CONTINUATION: Final = (OffsetSource, LastKeySource)


class FactsBench(Bench):
    """Plays a source over HTTP from the facts of its scan file alone.

    Credentials are left out, since nothing here would check them.

    Args:
        scan: the scan; its protocol is page_token, next_link, offset or last_key.
    """

    def __init__(self, scan: Scan) -> None:
        if not isinstance(scan.source, PLAYED):
            raise NotExercisedError(
                f"no server can be made from facts of protocol {scan.source.protocol}; expected "
                "page_token, next_link, offset or last_key, or a bench of your own"
            )
        self._scan = replace(scan, source=_prepared(scan.source))

    @property
    def scan(self) -> Scan:
        """The scan, its pages small and its credentials left out."""
        return self._scan

    @contextmanager
    def open(self, scan: Scan, fault: Fault) -> Iterator[Opened]:
        """Make a server, and put the fault between it and the walk, or into it."""
        records = {"no_records": 0, "last_page_full": 2 * SIZE}.get(fault.kind, RECORDS)
        rows = [Row(made=made_record(scan, number)) for number in range(1, records + 1)]
        inside = fault.kind not in AT_THE_EXCHANGE or fault.kind in ("page_repeated", "expired")
        server = FactsServer(
            scan, rows=rows, size=SIZE, fault=fault if inside else replace(fault, kind="none")
        )
        self._refuse(fault, scan, server)
        between = replace(fault, kind="none") if inside else fault
        faults = HttpFaults(server, between, is_page=server.is_page, answers={})
        yield Opened(
            keys=keys_of(scan, [each.made for each in rows]),
            inner=faults,
            struck=lambda: not fault.strikes or server.struck or faults.struck,
        )

    def _refuse(self, fault: Fault, scan: Scan, server: FactsServer) -> None:
        """Refuse a fault that this source has nothing to break for."""
        why = None
        match fault.kind:
            case "continuation_repeated" | "continuation_cycle":
                if isinstance(scan.source, WITHOUT_CONTINUATION):
                    why = "the walk computes where to go on; no answer names a continuation"
            case "pin_changed" | "pin_ignored" if scan.contract.consistency != "snapshot":
                why = "no version is pinned"
            case "continuation_missing" if not server.ends.can_be_missing():
                why = "the end is told by the shape of pages; there is no field to be missing"
            case "signals_disagree" if not server.ends.can_disagree():
                why = "one field tells the end; there is no other to disagree"
            case "error_with_success" if not server.can_err():
                why = "an answer is records and nothing else; there is no place for an error"
            case "other_signal" if fault.variant == 0:
                why = "the variant is the first one"
            case _:
                pass
        if why is not None:
            raise NotExercisedError(why)


def _prepared(facts: HttpFacts) -> HttpFacts:
    """Return facts whose pages hold `SIZE` records and whose requests carry no secret."""
    size = facts.page_size and replace(facts.page_size, value=SIZE)
    window = facts.result_window
    return replace(
        facts,
        auth=None,
        page_size=size,
        result_window=window if window is None or window > RECORDS else None,
    )
