"""What rounds come to, key by key: the last delivery holds, a removal takes away what there was."""

from collections.abc import Iterator
from typing import Any

from scan_pipeline.core.canonical import canonical_json, parse_exact
from scan_pipeline.core.value import record


@record
class Word:
    """The last word on one key.

    Attributes:
        text: the record's text; None where it was removed.
        partly: whether the text is what changed alone, to be laid over what there was.
    """

    text: bytes | None
    partly: bool

    def over(self, earlier: bytes | None) -> bytes | None:
        """Return what the record reads now, None where there is none any more.

        Args:
            earlier: what it read before; None where there was none.
        """
        if self.text is None or not self.partly or earlier is None:
            return self.text
        return laid_over(earlier, self.text)


class Folding:
    """Takes deliveries in their order and keeps the last word on each key.

    Args:
        partly: whether a changed record comes as its changed members alone. After a removal it
            comes whole again.
    """

    def __init__(self, *, partly: bool) -> None:
        self._partly = partly
        self._words: dict[str, Word] = {}

    def __contains__(self, key: object) -> bool:
        return key in self._words

    def take(self, key: str, text: bytes | None) -> None:
        """Take one delivery; None is a removal. The key then comes last."""
        earlier = self._words.pop(key, None)
        word = Word(text=text, partly=self._partly and text is not None)
        if earlier is not None and word.partly:
            word = Word(text=word.over(earlier.text), partly=earlier.partly)
        self._words[key] = word

    def word(self, key: str) -> Word:
        """Return the last word on a key that was taken."""
        return self._words[key]

    def words(self) -> Iterator[tuple[str, Word]]:
        """Yield every key with its last word, in order of its last delivery."""
        yield from self._words.items()


def laid_over(earlier: bytes, changed: bytes) -> bytes:
    """Return a record with changed members in the place of those it had, as canonical JSON."""
    before: Any = parse_exact(earlier)
    now: Any = parse_exact(changed)
    if not isinstance(before, dict) or not isinstance(now, dict):
        return changed
    return canonical_json({**before, **now})
