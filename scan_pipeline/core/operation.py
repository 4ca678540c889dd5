"""How the work of a scan is done; nothing here changes what a result means."""

from typing import Annotated

from pydantic import Field

from scan_pipeline.core.retention import Retention
from scan_pipeline.core.value import NaturalInt, PositiveInt, record
from scan_pipeline.core.vocabulary import Overlap


@record
class Retries:
    """How often one request is sent again.

    Attributes:
        attempts: sends of one request, the first included.
        max_wait: longest wait before one retry that we choose ourselves, in seconds.
        timeout: seconds without a byte after which a request counts as lost.
        whole_timeout: seconds after which it counts as lost whatever has come of its answer; what
            is left of `limits.seconds` bounds it too.
    """

    attempts: PositiveInt = 5
    max_wait: Annotated[float, Field(gt=0)] = 30.0
    timeout: Annotated[float, Field(gt=0)] = 60.0
    whole_timeout: Annotated[float, Field(gt=0)] = 900.0


@record
class Rate:
    """How often a host may be asked, by all walks of one process together.

    Attributes:
        requests: how many.
        per_seconds: in how many seconds.
    """

    requests: PositiveInt
    per_seconds: Annotated[float, Field(gt=0)]


@record
class Operation:
    """How the work is done; nothing here changes what the result means.

    Attributes:
        retries: bounds of sending one request again.
        rate: how often a host may be asked; None where nothing bounds it.
        restarts: how many new generations may follow one that expired.
        commit_pages: pages of one commit, at most.
        commit_seconds: age of the oldest uncommitted page, in seconds, at most.
        recheck_pages: pages read again at random after the end, beside the first.
        retention: how long generations are kept; None for ever.
    """

    retries: Retries = Retries()
    rate: Rate | None = None
    restarts: NaturalInt = 2
    commit_pages: PositiveInt = 64
    commit_seconds: Annotated[float, Field(gt=0)] = 5.0
    recheck_pages: NaturalInt = 1
    retention: Retention | None = None


@record
class Schedule:
    """When a new generation is begun.

    Attributes:
        cron: five fields, as cron reads them.
        timezone: in which they are read, a name of the IANA time zone database, e.g.
            `Europe/Berlin`.
        overlap: what a tick does while a generation of the scan is under way.
    """

    cron: str
    timezone: str = "UTC"
    overlap: Overlap = "refuse"
