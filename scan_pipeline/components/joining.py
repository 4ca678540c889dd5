"""When analyses of several scans are asked for: once every scan of them is accepted for a night.

Dagster asks for a partition once all its dependencies have that very one. A night may end under
several: a member that expired begins again as another attempt, while the others stand by their
first. So the lake is asked, and not the partitions.
"""

from collections.abc import Mapping, Sequence
from typing import Final

import dagster as dg

from scan_pipeline.components.analysis import INVENTORY_TAG
from scan_pipeline.components.face import Face
from scan_pipeline.components.generations import SENSOR_SECONDS
from scan_pipeline.components.resource import ScanResource
from scan_pipeline.core.canonical import digest_of
from scan_pipeline.core.receipt import Receipt
from scan_pipeline.stages.inventory import Inventory, night_of
from scan_pipeline.store.receipts import generation_order

NIGHTS: Final = 3
"""The newest nights that a look goes through; older ones were asked for or are launched by hand."""


def join_sensor(inventory: str, faces: Sequence[Face]) -> dg.SensorDefinition:
    """Return the sensor that asks for the analyses of several scans of an inventory.

    An analysis is asked for once for each set of receipts: anew where one is superseded.
    """

    @dg.sensor(
        name=f"{inventory}_join",
        target=dg.AssetSelection.tag(INVENTORY_TAG, inventory),
        default_status=dg.DefaultSensorStatus.RUNNING,
        minimum_interval_seconds=SENSOR_SECONDS,
        required_resource_keys={face.resource for face in faces},
        description="Asks for the analyses of several scans of a night once all are accepted.",
    )
    def join(context: dg.SensorEvaluationContext) -> dg.SensorResult | dg.SkipReason:
        opened: dict[str, ScanResource] = {
            face.scan: getattr(context.resources, face.resource) for face in faces
        }
        members = {scan: each.collection() for scan, each in opened.items()}
        filed = {scan: each.generations() for scan, each in members.items()}
        look = digest_of(filed).hex()
        if look == context.cursor:
            return dg.SkipReason("no receipt since the last look")
        nights = sorted({night_of(each) for names in filed.values() for each in names})
        analyses, together = _analyses(context, inventory, faces), Inventory(members)
        requests = [
            request
            for night in nights[-NIGHTS:]
            for request in _of_night(together.standing(night), analyses)
        ]
        named = sorted({str(each.partition_key) for each in requests})
        adding = [faces[0].partitions.build_add_request(named)] if named else []
        return dg.SensorResult(
            run_requests=requests, dynamic_partitions_requests=adding, cursor=look
        )

    return join


def _of_night(
    standing: Mapping[str, Receipt], analyses: Mapping[dg.AssetKey, frozenset[str]]
) -> list[dg.RunRequest]:
    """Ask for each analysis all of whose scans are accepted for a night."""
    requests = list[dg.RunRequest]()
    for key, scans in analyses.items():
        if standing.keys() >= scans:
            mine = [standing[each] for each in sorted(scans)]
            names = "+".join(f"{each.scan}/{each.scan_generation}" for each in mine)
            requests.append(
                dg.RunRequest(
                    run_key=f"{key.to_user_string()}: {names}",
                    partition_key=max(
                        (each.scan_generation for each in mine), key=generation_order
                    ),
                    asset_selection=[key],
                )
            )
    return requests


def _analyses(
    context: dg.SensorEvaluationContext, inventory: str, faces: Sequence[Face]
) -> dict[dg.AssetKey, frozenset[str]]:
    """Return the scans of each analysis of the inventory, as its dependencies name them."""
    if context.repository_def is None:
        return {}
    by_receipt = {face.key("receipt"): face.scan for face in faces}
    return {
        node.key: frozenset(by_receipt[each] for each in node.parent_keys if each in by_receipt)
        for node in context.repository_def.asset_graph.asset_nodes
        if node.tags.get(INVENTORY_TAG) == inventory
    }
