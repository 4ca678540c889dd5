"""The catalogue of scenarios, shared by the command line and the tests."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from scan_pipeline.core.errors import ContractError
from scan_pipeline.simulator.answer_scenarios import ANSWER_SCENARIOS
from scan_pipeline.simulator.moving_scenarios import MOVING_SCENARIOS
from scan_pipeline.simulator.scenario import Scenario
from scan_pipeline.simulator.walk_scenarios import WALK_SCENARIOS

SCENARIOS: Final[Mapping[str, Scenario]] = MappingProxyType(
    {one.name: one for one in (*WALK_SCENARIOS, *MOVING_SCENARIOS, *ANSWER_SCENARIOS)}
)
"""Every scenario by its name."""


def scenario(name: str) -> Scenario:
    """Return a scenario.

    Raises:
        ContractError: there is none of this name.
    """
    found = SCENARIOS.get(name)
    if found is None:
        raise ContractError(f"found scenario {name!r}, expected one of {', '.join(SCENARIOS)}")
    return found
