"""The shipped scan through the registry's MCP server instead of its HTTP face."""

import json
import sys
from collections.abc import Mapping
from copy import deepcopy
from typing import Any, Final

from scan_pipeline.core.scan import Scan
from scan_pipeline.simulator.answer_faults import ConnectionCut, ResponseLost
from scan_pipeline.simulator.mcp_server import NAME, running_mcp
from scan_pipeline.simulator.registry import Registry
from scan_pipeline.simulator.scenario import Scenario
from scan_pipeline.sources.catalogue import parse_scan
from scan_pipeline.stages.run import run_scan
from scan_pipeline.stages.workspace import Workspace
from scan_pipeline_tests.conftest import Bench, Walked, edited

LOST_AFTER_S: Final = 5.0

COUNTED_BY: Final = ("region", "schema_version", "status", "tenant", "view", "up_to")
"""Parameters of a list that the counts by partition want too."""

ERRORS: Final = [
    {"at": "error.code", "equals": "cursor_consumed", "means": "consumed"},
    {"at": "error.status", "equals": 401, "means": "refused"},
    {"at": "error.status", "equals": 403, "means": "refused"},
    {"at": "error.status", "equals": 410, "means": "expired"},
    {"at": "error.status", "equals": 429, "means": "wait", "wait_at": "error.retry_after_s"},
    {"at": "error.status", "equals": 503, "means": "retry", "wait_at": "error.retry_after_s"},
]
"""What the registry's refusals mean, told by the HTTP status that it repeats in them."""

STDIO: Final = {
    "stdio": {
        "command": sys.executable,
        "args": ["-m", "scan_pipeline.simulator.mcp_server"],
        "env": {"REGISTRY_TOKEN": {"env": "REGISTRY_TOKEN"}},
    }
}


def over_http(endpoint: str) -> dict[str, Any]:
    return {"http": {"url": endpoint, "auth": {"bearer": {"env": "REGISTRY_TOKEN"}}}}


def as_mcp(attributes: Mapping[str, Any], transport: Mapping[str, Any]) -> dict[str, Any]:
    """Return a scan file's attributes with its HTTP source said in the words of `mcp_tool`."""
    changed = deepcopy(dict(attributes))
    http = changed["source"]
    params = http.get("params", {})
    told = {name: params[name] for name in COUNTED_BY if name in params}
    source = {
        "protocol": "mcp_tool",
        "transport": dict(transport),
        "tool": f"{NAME}.list",
        "arguments": params,
        "errors": ERRORS,
    }
    same = ("records_at", "page_size", "next", "snapshot", "count", "continuation", "content")
    same += ("end_signal_basis",)
    source |= {name: http[name] for name in same if name in http}
    if "identity" in http:
        identity = {name: http["identity"][name] for name in ("at", "tenant_at")}
        source["identity"] = {"tool": f"{NAME}.identity", **identity}
    if "partition_counts" in http:
        rows = {name: http["partition_counts"][name] for name in ("at", "value", "count")}
        source["partition_counts"] = {
            "tool": f"{NAME}.partition_counts",
            "arguments": {"by": "region", **told},
            **rows,
        }
    if "high_water_mark" in http:
        mark = {name: value for name, value in http["high_water_mark"].items() if name != "url"}
        source["high_water_mark"] = {"tool": f"{NAME}.high_water_mark", **mark}
    changed["source"] = source
    return changed


class McpBench(Bench):
    """Runs scans against registries that speak MCP, over streamable HTTP."""

    endpoint = "http://127.0.0.1:1/mcp"

    def scan(self, edits: Mapping[str, Any] | None = None, *, base: str = "") -> Scan:
        """Return the shipped scan, edited, led to an endpoint, or to the last one."""
        attributes = as_mcp(edited(self.shipped, edits or {}), over_http(base or self.endpoint))
        return parse_scan(json.loads(json.dumps(attributes)))

    def workspace(self, registry: Registry | None = None, **arguments: Any) -> Workspace:
        """Return a workspace of its own; looking whether to end is no wait."""
        del registry

        def sleep(seconds: float) -> None:
            if seconds:
                self.clock.sleep(seconds)

        return super().workspace(None, **{"sleep": sleep, **arguments})

    def walk(
        self,
        source: Registry | Scenario | None = None,
        edits: Mapping[str, Any] | None = None,
        *,
        over: str = "port",
        **arguments: Any,
    ) -> Walked:
        """Run the shipped scan against a registry; in a process of its own or not is all one."""
        del over
        registry = source if isinstance(source, Registry) else self.registry(source)
        query = dict(source.query) if isinstance(source, Scenario) else {}
        edits = {**({"source.params": query} if query else {}), **(edits or {})}
        if any(isinstance(fault, ConnectionCut | ResponseLost) for fault in registry.script.faults):
            # Here a lost answer never comes: how long to wait for it decides how long this takes.
            edits.setdefault("operation.retries", {"timeout": LOST_AFTER_S})
        self.endpoint = self.stack.enter_context(running_mcp(registry))
        scan, workspace = self.scan(edits), self.workspace(**arguments)
        night = run_scan(scan, workspace=workspace)
        return Walked(scan=scan, workspace=workspace, registry=registry, night=night)
