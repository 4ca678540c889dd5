"""Memory that one batch has freed, kept for the next one."""

from typing import Final

_OWN_BLOCK: Final = 32 * 2**20 - 8192  # just below DEFAULT_MMAP_THRESHOLD_MAX of 64-bit systems


def keep_freed_memory() -> None:
    """Keep glibc from giving memory back to the system between two batches.

    Freeing a block that was mapped for itself raises the size from which blocks are, and twice
    that much may then lie free (mallopt(3), M_MMAP_THRESHOLD, read 2026-11-30). Without it, whether
    a batch's memory is given back, and faulted in again page by page for the next, depends on what
    happens to lie above it: of a million records, half the runs took 350,000 faults and a tenth
    more time, the others 130,000. The block itself is never touched; elsewhere it does nothing.
    """
    bytes(_OWN_BLOCK)
