"""What the registry holds before anything happens to it."""

import gzip
from functools import lru_cache
from pathlib import Path
from typing import Final

from scan_pipeline.simulator.customers import CUSTOMERS, CustomerMaker
from scan_pipeline.simulator.rows import CollectionName, Maker, Row
from scan_pipeline.simulator.support_cases import SUPPORT_CASES, SupportCaseMaker

MAKERS: Final[dict[CollectionName, Maker]] = {
    "customers": CustomerMaker(),
    "support_cases": SupportCaseMaker(),
}
SIZES: Final[dict[CollectionName, int]] = {
    "customers": CUSTOMERS,
    "support_cases": SUPPORT_CASES,
}
KEY_FIELDS: Final[dict[CollectionName, str]] = {
    "customers": "customer_id",
    "support_cases": "case_id",
}


@lru_cache(maxsize=32)
def population(collection: CollectionName, size: int) -> tuple[Row, ...]:
    """Make the first records of a collection.

    Args:
        collection: which one.
        size: how many, from 0; a smaller population is the beginning of a larger one.

    Returns:
        Rows ordered by number. They never change, so every registry of a process shares them.
    """
    maker = MAKERS[collection]
    rows: list[Row] = []
    for number in range(1, size + 1):
        traits = maker.traits(number)
        rows.append(Row(number=number, traits=traits, raw=maker.render(number, traits)))
    return tuple(rows)


def json_lines(collection: CollectionName) -> bytes:
    """Return a whole collection, one record a line."""
    return b"".join(row.raw + b"\n" for row in population(collection, SIZES[collection]))


def freeze(folder: Path) -> tuple[Path, ...]:
    """Write the population as `<collection>.jsonl.gz`; the same bytes on every run.

    Args:
        folder: where the files go; it must exist.
    """
    paths: list[Path] = []
    for collection in SIZES:
        path = folder / f"{collection}.jsonl.gz"
        path.write_bytes(gzip.compress(json_lines(collection), compresslevel=9, mtime=0))
        paths.append(path)
    return tuple(paths)
