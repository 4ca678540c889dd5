"""What a source holds for a walk is ended before the walk is closed."""

from scan_pipeline.core.findings import Finding, finding
from scan_pipeline.sources.source import Source


def released(
    source: Source, *, interruptions: tuple[type[BaseException], ...]
) -> tuple[Finding, ...]:
    """Let the source end what it holds, and return what could not be ended.

    Args:
        source: the walk's source.
        interruptions: exceptions from outside that end a walk; one more of them leaves what is
            held to end by itself.
    """
    try:
        return source.let_go()
    except interruptions:
        return (finding("held_by_source", found="interrupted before it was ended"),)
