"""Children of a test: whether they live, and what they wrote."""

import os
import threading
from collections.abc import Callable
from pathlib import Path


def alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{process}/stat")
    return (
        not stat.exists() or stat.read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z"
    )


def wait_for(holds: Callable[[], bool]) -> None:
    """Wait for what happens in another process; the test's own timeout ends it."""
    while not holds():
        threading.Event().wait(0.05)


def processes(*words: str, parent: int | None = None) -> list[int]:
    """Return the living processes whose command line has these words, of one parent or of any."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            stat = (folder / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()
            command = (folder / "cmdline").read_text(encoding="utf-8")
        except (FileNotFoundError, ProcessLookupError):
            continue
        ours = parent is None or int(stat[1]) == parent
        if ours and all(word in command for word in words) and alive(int(folder.name)):
            found.append(int(folder.name))
    return found


def wait_for_word(file: Path, word: str) -> None:
    """Wait for what another process writes; the test's own timeout ends it."""
    wait_for(lambda: file.exists() and word in file.read_text(encoding="utf-8").split())
