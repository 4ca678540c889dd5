"""Hold a report against the claims it cites.

A sentence about a collection stands when it is a statement of ours, word for word, with the id of
the claim behind it; the claim is signed by a trusted key, not older than allowed, and its receipt
still says as much. Every other sentence that counts or quantifies is found, whatever it says: a
sentence cannot be judged true here, only whether someone may have said it.
"""

import re
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Final, Literal, TypeAlias

from scan_pipeline.agents.claiming import PREFIX, CollectionClaim
from scan_pipeline.core.errors import EvidenceError, GateClosedError
from scan_pipeline.core.value import record

Fault: TypeAlias = Literal[
    "uncited", "claim_unknown", "claim_tampered", "misquoted", "stale", "receipt_fell"
]

_CITATION: Final = re.compile(r"\[(" + re.escape(PREFIX) + r"[0-9a-f]+)\]")
_QUANTITY: Final = re.compile(
    r"\b(all|every|everything|everyone|each|both|any|none|no|not|never|nothing|nobody|neither|"
    r"without|zero|only|entire|entirely|whole|complete|completely|fully|total|totals|most|many|few|"
    r"several|half|majority|remaining|missing|exhaustive|exhaustively|"
    r"one|two|three|four|five|six|seven|eight|nine|ten|hundred|hundreds|thousand|thousands|million)"
    r"\b|\d|%",
    re.IGNORECASE,
)
_THINGS: Final = (
    "record",
    "row",
    "entry",
    "item",
    "result",
    "match",
    "page",
    "collection",
    "dataset",
    "population",
    "them",
    "they",
    "these",
    "those",
    "it",
)
"""Words for members of a collection, whatever they are called there."""

_SENTENCE: Final = re.compile(r"(?<=[.!?])[\"')*_]*\s+|\n\s*\n|\n(?=\s*(?:[-*+#]|\d+[.)])\s)")
"""Between sentences: a stop, an empty line, a list's next point; a mere line break ends none."""

_SPACE: Final = re.compile(r"[\s*_`>#]+")


@record
class Found:
    """One sentence that does not stand.

    Attributes:
        fault: why.
        sentence: it, whole.
        remedy: what to do.
    """

    fault: Fault
    sentence: str
    remedy: str


@record
class Checked:
    """What came of a report.

    Attributes:
        cited: claims that stand behind a sentence.
        found: sentences that do not stand, in the order of the report.
    """

    cited: tuple[str, ...]
    found: tuple[Found, ...]


ReadClaim: TypeAlias = Callable[[str], CollectionClaim]
"""Returns a claim by its id; raises EvidenceError or TamperedError."""

StillStands: TypeAlias = Callable[[CollectionClaim], None]
"""Raises GateClosedError where a claim's receipt does not say as much any more."""


def check_report(
    text: str,
    *,
    nouns: tuple[str, ...],
    read: ReadClaim,
    stands: StillStands,
    now: datetime,
    max_age: timedelta,
) -> Checked:
    """Find every sentence about a collection that no claim supports.

    Args:
        text: the report, plain text or Markdown.
        nouns: what members of collections are called, e.g. `customers`.
        read: returns a signed claim.
        stands: tells whether a claim's receipt still stands.
        now: time in UTC.
        max_age: how old a claim may be.
    """
    cited, found = list[str](), list[Found]()
    rest, begun = list[str](), 0
    for citation in _CITATION.finditer(text):
        before = text[begun : citation.start()]
        begun = citation.end()
        name = citation.group(1)
        claim, fault = _claim(name, read=read, stands=stands, now=now, max_age=max_age)
        if claim is not None:
            quoted = _without(before, claim.statement)
            if quoted is None:
                fault = Found(
                    fault="misquoted",
                    sentence=_last_sentence(before),
                    remedy=f"quote the statement of {name} word for word: {claim.statement}",
                )
            else:
                before = quoted
                cited.append(name)
        if fault is not None:
            found.append(fault)
        rest.append(before)
    rest.append(text[begun:])
    things = _mentions((*nouns, *_THINGS))
    uncited = [
        Found(
            fault="uncited",
            sentence=sentence,
            remedy="quote a conclusion with its claim id, or say nothing of the collection",
        )
        for part in rest
        for sentence in _sentences(part)
        if _QUANTITY.search(sentence) and things.search(sentence)
    ]
    return Checked(cited=tuple(dict.fromkeys(cited)), found=(*found, *uncited))


def _claim(
    name: str, *, read: ReadClaim, stands: StillStands, now: datetime, max_age: timedelta
) -> tuple[CollectionClaim | None, Found | None]:
    """Return a claim, and the fault that keeps it from supporting anything."""
    try:
        claim = read(name)
    except EvidenceError as error:
        fault: Fault = "claim_unknown" if type(error) is EvidenceError else "claim_tampered"
        return None, Found(fault=fault, sentence=f"[{name}]", remedy=str(error))
    age = now - claim.concluded_at
    if not timedelta(0) <= age <= max_age:
        return claim, Found(
            fault="stale",
            sentence=claim.statement,
            remedy=f"concluded {claim.concluded_at.isoformat()}; conclude again, or allow its age",
        )
    try:
        stands(claim)
    except (GateClosedError, EvidenceError) as error:
        return claim, Found(fault="receipt_fell", sentence=claim.statement, remedy=str(error))
    return claim, None


def _without(before: str, statement: str) -> str | None:
    """Return a text without the statement at its end, or None where it ends otherwise."""
    words = [re.escape(word) for word in _SPACE.split(statement) if word]
    quoted = re.compile(r"[\s*_`>#\"']*" + r"[\s*_`>#]+".join(words) + r"[\s*_`>#\"']*$")
    end = quoted.search(before)
    return None if end is None else before[: end.start()]


def _mentions(nouns: tuple[str, ...]) -> re.Pattern[str]:
    """Return what finds a noun in the singular or plural."""
    forms = {form for noun in nouns for form in (noun, noun.removesuffix("s"), f"{noun}s")}
    forms |= {f"{noun[:-1]}ies" for noun in nouns if noun.endswith("y")}
    forms |= {form.replace("_", " ") for form in forms}
    return re.compile(rf"\b({'|'.join(map(re.escape, sorted(forms)))})\b", re.IGNORECASE)


def _sentences(text: str) -> Iterator[str]:
    for sentence in _SENTENCE.split(text):
        plain = " ".join(_SPACE.split(sentence)).strip()
        if plain:
            yield plain


def _last_sentence(text: str) -> str:
    return next(iter(reversed([*_sentences(text)])), "")
