"""What a source needs of the world, as arguments."""

from collections.abc import Callable, Mapping
from datetime import datetime

import httpx2

from scan_pipeline.core.operation import Retries
from scan_pipeline.core.value import record


@record
class Surroundings:
    """The world around one open source.

    Attributes:
        environ: where secrets are looked up when sending.
        inner: the HTTP transport; None for the network.
        clock: time in UTC.
        sleep: waits so many seconds; may raise to end the walk.
        retries: bounds of sending one request again.
        pace: seconds to wait before the next request to a host, by a budget that every walk of this
            process shares; None for none.
    """

    environ: Mapping[str, str]
    inner: httpx2.BaseTransport | None
    clock: Callable[[], datetime]
    sleep: Callable[[float], None]
    retries: Retries
    pace: Callable[[str], float] | None = None
