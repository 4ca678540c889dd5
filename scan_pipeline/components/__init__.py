"""The Dagster face: a scan file becomes assets, checks, a schedule and sensors; thin bodies."""

from scan_pipeline.components.analysis import partial_asset, verified_asset
from scan_pipeline.components.inventory import Inventory
from scan_pipeline.components.scan import Scan

__all__ = ["Inventory", "Scan", "partial_asset", "verified_asset"]
