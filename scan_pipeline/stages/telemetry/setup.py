"""Whether anything is measured, and where it goes: one variable, beside OpenTelemetry's own.

`SCAN_PIPELINE_TELEMETRY` is unset (nothing is measured and nothing imported), `otlp` (exporters of
the extra `telemetry`, configured by the variables of the OpenTelemetry specification, as
`OTEL_EXPORTER_OTLP_ENDPOINT`), or `process` (the providers that this process has set up).
"""

from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Final

from scan_pipeline.core.errors import ConfigurationError, GateClosedError

if TYPE_CHECKING:
    from scan_pipeline.stages.telemetry.instruments import Telemetry

VARIABLE: Final = "SCAN_PIPELINE_TELEMETRY"

SERVICE: Final = "scan_pipeline"


def telemetry_of(environ: Mapping[str, str]) -> "Telemetry | None":
    """Return the instruments of this process, None where telemetry is off.

    Raises:
        ConfigurationError: the variable has another value, or the extra is not installed.
    """
    asked = environ.get(VARIABLE, "").strip()
    return _made(asked) if asked not in ("", "none") else None


def tell_blocked(
    environ: Mapping[str, str], error: Exception, *, scan: str | None = None, why: str = ""
) -> None:
    """Count a reader that the gate, or the readers' server, refused; never raises.

    Args:
        environ: the variables.
        error: what the reader met; of the gate unless `why` says otherwise.
        scan: what was to be read.
        why: one word, where it is not the gate.
    """
    if isinstance(error, GateClosedError):
        scan, why = error.scan, why or "gate_closed"
    if not why or not environ.get(VARIABLE):
        return

    def tell() -> None:
        telemetry = telemetry_of(environ)
        if telemetry is not None:
            telemetry.blocked(scan=scan, why=why)

    quietly(tell, warn=lambda _: None)


def quietly(tell: Callable[[], object], *, warn: Callable[[str], None]) -> None:
    """Tell something; what goes wrong with telemetry concerns nobody else."""
    try:
        tell()
    except ConfigurationError as error:
        warn(f"no telemetry: {error}")
    except Exception as error:  # noqa: BLE001  # whatever an exporter does
        warn(f"no telemetry: {type(error).__name__}")


@cache
def _made(asked: str) -> "Telemetry":
    if asked not in ("otlp", "process"):
        raise ConfigurationError(
            f"found {VARIABLE}={asked}; expected otlp, process, or no such variable"
        )
    try:
        return _of_otlp() if asked == "otlp" else _of_process()
    except ModuleNotFoundError as error:
        raise ConfigurationError(
            f"{VARIABLE}={asked} needs {error.name}, which is not installed; expected pip install "
            "'scan-pipeline[telemetry]'"
        ) from error


def _of_process() -> "Telemetry":
    from opentelemetry import metrics, trace  # noqa: PLC0415  # only where it is on

    from scan_pipeline.stages.telemetry.instruments import Telemetry  # noqa: PLC0415

    return Telemetry(tracers=trace.get_tracer_provider(), meters=metrics.get_meter_provider())


def _of_otlp() -> "Telemetry":
    """Make providers of our own: those of the process are the process's."""
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import (  # noqa: PLC0415
        OTLPMetricExporter,
    )
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import (  # noqa: PLC0415
        OTLPSpanExporter,
    )
    from opentelemetry.sdk.metrics import MeterProvider  # noqa: PLC0415
    from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader  # noqa: PLC0415
    from opentelemetry.sdk.resources import Resource  # noqa: PLC0415
    from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415
    from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415

    from scan_pipeline.stages.telemetry.instruments import Telemetry  # noqa: PLC0415

    # OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES come first; the SDK names what they leave out.
    resource = Resource.create()
    if str(resource.attributes.get("service.name")).startswith("unknown_service"):
        resource = resource.merge(Resource({"service.name": SERVICE}))
    tracers = TracerProvider(resource=resource)
    tracers.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    reader = PeriodicExportingMetricReader(OTLPMetricExporter())
    return Telemetry(
        tracers=tracers, meters=MeterProvider(metric_readers=[reader], resource=resource)
    )
