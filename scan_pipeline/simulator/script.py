"""The script that lies over a registry: what changes, what breaks, and when."""

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Annotated, Literal

from pydantic import Field, TypeAdapter, ValidationError

from scan_pipeline.core.errors import ContractError
from scan_pipeline.core.value import record
from scan_pipeline.simulator.faults import Fault
from scan_pipeline.simulator.mutations import STRICT, Mutation


@record
class Script:
    """Everything a registry does that it should not, and everything that happens to its rows.

    Attributes:
        mutations: scripted changes; each names the page it follows.
        faults: what breaks. Several may strike one page; of one kind the first counts.
        cursors: `single_use` cursors are consumed by the request that presents them.
        consumed_status: status of the answer to a consumed cursor, code `cursor_consumed`.
        walk_nonces: every start of a walk is given cursors of its own; rows are not affected.
    """

    __pydantic_config__ = STRICT

    mutations: tuple[Annotated[Mutation, Field(discriminator="kind")], ...] = ()
    faults: tuple[Annotated[Fault, Field(discriminator="kind")], ...] = ()
    cursors: Literal["repeatable", "single_use"] = "repeatable"
    consumed_status: Literal[400, 410] = 410
    walk_nonces: bool = False


def parse_script(raw: Mapping[str, object]) -> Script:
    """Read a script from a mapping, as JSON or YAML gives it.

    Raises:
        ContractError: a field is unknown, missing or of another type, a kind does not exist, or a
            mutation does not say after which page it happens.
    """
    try:
        script = _adapter().validate_json(json.dumps(raw))
    except (ValidationError, TypeError) as error:
        raise ContractError(f"the simulator's script is not valid: {_told(error)}") from error
    for mutation in script.mutations:
        if mutation.after_page is None:
            raise ContractError(f"the script's {mutation.kind} needs after_page, found none")
    return script


@lru_cache(maxsize=1)
def _adapter() -> TypeAdapter[Script]:
    return TypeAdapter(Script)


def _told(error: Exception) -> str:
    if not isinstance(error, ValidationError):
        return str(error)
    told = [
        f"{'.'.join(str(part) for part in problem['loc'])}: {problem['msg']}"
        for problem in error.errors(include_url=False, include_input=False)
    ]
    return "; ".join(told[:5])
