"""The plots of a report as Dagster shows them: an image inside Markdown, else its table."""

from collections.abc import Iterable
from typing import Any

import dagster as dg

from scan_pipeline.core.errors import ConfigurationError
from scan_pipeline.stages.reporting.bars import expected_against_observed, records_by_night
from scan_pipeline.stages.reporting.course import course_of
from scan_pipeline.stages.reporting.document import Figure
from scan_pipeline.stages.reporting.drawing import image
from scan_pipeline.stages.reporting.gather import gather
from scan_pipeline.stages.reporting.material import Ledger
from scan_pipeline.stages.reporting.packet import block_markdown, markdown
from scan_pipeline.stages.walking.walks import SECOND_WALK
from scan_pipeline.stages.workspace import Workspace
from scan_pipeline.store.generations import GenerationStore
from scan_pipeline.store.receipts import StoredReceipt


def plot_of_walk(store: GenerationStore) -> dict[str, Any]:
    """Return pages over time, with retries and waits, as metadata."""
    first, second = store.events(), store.events(SECOND_WALK)
    walks = (first, second) if second else (first,)
    return _shown([course_of(Ledger(walks=walks, contract=first[0].facts["contract"]))])


def plots_of_receipt(stored: StoredReceipt, *, workspace: Workspace) -> dict[str, Any]:
    """Return expected against observed, and the generations around this one, as metadata."""
    material = gather(stored, workspace=workspace, audited=False)
    by_night = records_by_night(material.nights, stored.receipt)
    return _shown([expected_against_observed(material), by_night])


def _shown(figures: Iterable[Figure | None]) -> dict[str, Any]:
    return {each.name: dg.MetadataValue.md(_markdown(each)) for each in figures if each}


def _markdown(figure: Figure) -> str:
    try:
        drawn = image(figure)
    except ConfigurationError:
        return block_markdown(figure)  # no plotting library: the figures are told all the same
    said = markdown(f"{figure.alternative} {figure.legend}")
    above = f"**{markdown(figure.caption)}**\n\n{said}\n\n![{figure.name}]({drawn})"
    return f"{above}\n\n{block_markdown(figure.table)}"
