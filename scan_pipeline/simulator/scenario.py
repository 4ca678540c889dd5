"""A named way for a walk to go right or wrong."""

from collections.abc import Mapping
from dataclasses import field
from typing import Final, Literal

import httpx2

from scan_pipeline.core.value import record
from scan_pipeline.simulator.customers import CUSTOMERS
from scan_pipeline.simulator.naive import NaiveReport, follow_cursors, read_first_page
from scan_pipeline.simulator.registry import Clock, Registry, utc_now
from scan_pipeline.simulator.script import Script

SMALL: Final = 1_000
"""Customers on ten pages of a hundred: enough for most scenarios, and quick."""


@record
class Scenario:
    """What the command line breaks, what the tests walk, and what a naive client makes of it.

    Attributes:
        name: how it is called, snake_case.
        note: what goes on, one sentence.
        script: mutations and faults.
        size: customers in the registry.
        query: parameters of every page request, besides cursor and snapshot.
        reader: which naive reader speaks.
        naive_claim: the sentence it says.
        may_verify: whether an honest reader may call this collection verified, under a snapshot
            contract with an exact count (or a sequence bound, where the query sends one).
    """

    name: str
    note: str
    naive_claim: str
    may_verify: bool
    script: Script = field(default_factory=Script)
    size: int = CUSTOMERS
    query: Mapping[str, str] = field(default_factory=dict)
    reader: Literal["first_page", "follow_cursors"] = "follow_cursors"


def registry_for(scenario: Scenario, *, clock: Clock = utc_now) -> Registry:
    """Return a fresh registry in which the scenario is about to happen."""
    return Registry(size=scenario.size, script=scenario.script, clock=clock)


def naive_report(scenario: Scenario, client: httpx2.Client, url: str) -> NaiveReport:
    """Let the scenario's naive client read the registry.

    Args:
        scenario: what happens.
        client: sends the requests, token included.
        url: of the customers.
    """
    read = read_first_page if scenario.reader == "first_page" else follow_cursors
    return read(client, url, params=scenario.query)
