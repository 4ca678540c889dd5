"""The `dagster` block beside a scan's attributes: its place in a project's Dagster.

It is read here, without Dagster, so that `check` refuses what Dagster would.
"""

import json
from typing import Annotated, Any

from pydantic import Field, ValidationError

from scan_pipeline.core.errors import ContractError
from scan_pipeline.core.scan import SCAN_NAME
from scan_pipeline.core.value import adapter, record
from scan_pipeline.sources.file_problems import Problem, problems_in

FACE = "dagster"
"""Attribute of a component that speaks of its face in Dagster and never reaches the scan."""

_Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9_]+$")]


@record
class FaceSettings:
    """What a project may say of a scan's place in its Dagster; nothing here reaches the scan.

    Attributes:
        key_prefix: stands before `[<scan>, <stage>]` in every asset key.
        group: the assets' group; the scan's name where silent.
        owners: e-mail addresses, or `team:<name>`.
        pool: concurrency pool of the stages; one for each host that is asked where silent.
        inventory: the inventory that the scan is read together with; they share one partition set.
        plots: whether runs draw plots of what they report, where the extra `report` is installed;
            each is some 20 KB in Dagster's event log.
    """

    key_prefix: tuple[_Name, ...] = ()
    group: _Name | None = None
    owners: tuple[str, ...] = ()
    pool: str | None = None
    inventory: Annotated[str, Field(pattern=SCAN_NAME)] | None = None
    plots: bool = True


def parse_settings(raw: Any) -> FaceSettings:
    """Read the block; None is an empty one.

    Raises:
        ContractError: a field is unknown or of another type.
    """
    settings, problems = read_settings(raw)
    if settings is None:
        told = "; ".join(f"{'.'.join(map(str, each.at))}: {each.message}" for each in problems)
        raise ContractError(told)
    return settings


def read_settings(raw: Any) -> tuple[FaceSettings | None, list[Problem]]:
    """Return the block, or all that is wrong with it."""
    raw = {} if raw is None else raw
    try:
        return adapter(FaceSettings).validate_json(json.dumps(raw)), []
    except ValidationError as error:
        return None, problems_in(error, raw, (FACE,), kind=FaceSettings)
