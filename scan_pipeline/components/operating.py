"""How Dagster works a scan: what shares its pool, and when its receipt counts as overdue."""

from datetime import UTC, datetime
from typing import Final
from urllib.parse import urlsplit

import dagster as dg

from scan_pipeline.components.face import Face
from scan_pipeline.core.calendar import longest_silence
from scan_pipeline.core.scan import Scan

_REFERENCE: Final = datetime(2026, 1, 1, tzinfo=UTC)
"""From where a schedule's periods are looked at: definitions must not depend on when they load."""


def pool_of(scan: Scan, *, face: Face) -> str:
    """Return the concurrency pool of a scan's work: what its project says, else the host it asks.

    Scans of one host take turns, and two runs of one scan with them. What has no address (a
    database named by a secret, a cloud's own endpoint, a program) has a pool of its scan's name.
    """
    asked = urlsplit(str(getattr(scan.source, "url", None) or "")).netloc
    return face.settings.pool or asked or scan.name


def freshness_of(scan: Scan) -> dg.FreshnessPolicy | None:
    """Return when Dagster calls the receipt overdue: past the longest period and half a one more.

    Dagster looks at whether a receipt came, whatever it says; whether it is accepted is what the
    check `receipt_accepted` shows. Its cron policies cannot wait for a walk to end (their window
    closes at the tick; dagster 1.13, FreshnessPolicy.cron), hence the window of time. None without
    a schedule.
    """
    if scan.schedule is None:
        return None
    return dg.FreshnessPolicy.time_window(fail_window=longest_silence(scan.schedule, at=_REFERENCE))
