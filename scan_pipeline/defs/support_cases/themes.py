"""Cases that tell of the same thing: TF-IDF of their texts, clustered by density.

DBSCAN over cosine distances (scikit-learn 1.9): the number of themes is found and not asked for, a
case that is like few others is left out instead of being forced into a theme, and nothing in it is
drawn at random, so that equal cases give equal themes.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from scan_pipeline.core.errors import NarrowError
from scan_pipeline.core.value import record
from scan_pipeline.sources.extras import needs_extra

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

EXTRA: Final = "model"

NEARNESS: Final = 0.55
"""Most cosine distance (0 to 1) between two cases that are alike. On the sample's cases any value
from 0.5 to 0.6 gives the same themes; at 0.7 different defects run into one."""

ALIKE: Final = 5
"""Least cases, itself among them, near a case that a theme grows from."""

RARE: Final = 2
"""Least cases that a word must be in, to say that two are alike. There is no most: greetings weigh
little by themselves, and a trouble that most cases tell of must keep its words."""

ONE_PRODUCT: Final = 0.8
"""Least share of a theme's cases in one product for a defect: a defect sits somewhere, while wishes
and questions of one kind come from everywhere."""

TERMS: Final = 5
"""Words that a theme is shown by."""

MOST_CASES: Final = 20_000
"""Most cases that are clustered at once: distances are taken between all pairs."""


@record
class Case:
    """A support case, as far as it is clustered.

    Attributes:
        case_id: its key.
        product: the product it was filed under.
        text: subject and body.
    """

    case_id: str
    product: str
    text: str


@record
class Theme:
    """Cases that are alike.

    Attributes:
        cases: keys of the cases, in the order of the cases given.
        terms: the words that weigh most over them, the weightiest first.
        product: the product most of them are filed under.
        product_share: share of them under it, 0 to 1.
        confidence: mean silhouette of the cases, -1 to 1: how much nearer they are to one another
            than to the next theme. 0 where there is no other.
    """

    cases: tuple[str, ...]
    terms: tuple[str, ...]
    product: str
    product_share: float
    confidence: float

    @property
    def is_defect(self) -> bool:
        """Whether the theme sits in one product."""
        return self.product_share >= ONE_PRODUCT


@record
class Themes:
    """What was found in a set of cases.

    Attributes:
        found: the themes, the largest first.
        left_out: keys of cases in no theme.
        without_text: keys of those among them that have no word to be told apart by.
        confidence: mean silhouette over all cases in themes; None where there are no two themes.
    """

    found: tuple[Theme, ...]
    left_out: tuple[str, ...]
    without_text: tuple[str, ...]
    confidence: float | None


def find_themes(cases: Sequence[Case]) -> Themes:
    """Group cases by what they tell of.

    Args:
        cases: in an order that does not depend on how they were stored.

    Raises:
        ConfigurationError: scikit-learn is not installed; names the extra.
        NarrowError: there are more cases than are compared pair by pair.
    """
    with needs_extra(EXTRA, "support_cases/recurring_defects"):
        import sklearn.cluster  # noqa: PLC0415  # seconds, and of an extra
        import sklearn.feature_extraction.text as texts  # noqa: PLC0415

    if len(cases) > MOST_CASES:
        raise NarrowError(
            f"found {len(cases):,} cases; expected at most {MOST_CASES:,}, since all pairs are "
            "compared. Scan fewer, e.g. by a filter on the time they were opened"
        )
    everyone = tuple(case.case_id for case in cases)
    weigh = texts.TfidfVectorizer(sublinear_tf=True, min_df=RARE, strip_accents="unicode")
    try:
        weights = weigh.fit_transform(case.text for case in cases)
    except ValueError:  # no word is in two cases: nothing recurs
        return Themes(found=(), left_out=everyone, without_text=everyone, confidence=None)
    worded = weights.getnnz(axis=1) > 0
    labels = (
        sklearn.cluster.DBSCAN(eps=NEARNESS, min_samples=ALIKE, metric="cosine")
        .fit(weights)
        .labels_.tolist()
    )
    # A text without any word lies at distance 1 from all others; it belongs nowhere by itself.
    labels = [label if has else -1 for label, has in zip(labels, worded, strict=True)]
    scores = _silhouettes(weights, labels)
    members: dict[int, list[int]] = {}
    for place, label in enumerate(labels):
        members.setdefault(label, []).append(place)
    words = weigh.get_feature_names_out()
    found = [
        _theme(
            [cases[place] for place in places],
            _top(weights[places], words, rows=len(places)),
            scores,
            places,
        )
        for label, places in members.items()
        if label >= 0
    ]
    return Themes(
        found=tuple(sorted(found, key=lambda theme: (-len(theme.cases), theme.cases[0]))),
        left_out=tuple(everyone[place] for place in members.get(-1, ())),
        without_text=tuple(name for name, has in zip(everyone, worded, strict=True) if not has),
        confidence=sum(scores.values()) / len(scores) if scores else None,
    )


def _theme(
    cases: Sequence[Case], terms: tuple[str, ...], scores: dict[int, float], places: Sequence[int]
) -> Theme:
    filed = [case.product for case in cases]
    product = min(set(filed), key=lambda name: (-filed.count(name), name))
    return Theme(
        cases=tuple(case.case_id for case in cases),
        terms=terms,
        product=product,
        product_share=filed.count(product) / len(filed),
        confidence=sum(scores.get(place, 0.0) for place in places) / len(places),
    )


def _top(weights: "csr_matrix", words: Any, *, rows: int) -> tuple[str, ...]:
    """Return the words of most weight over some cases; those of equal weight by the alphabet."""
    total: list[float] = weights.T.dot([1.0] * rows).tolist()
    ranked = sorted(range(len(total)), key=lambda place: (-total[place], words[place]))
    return tuple(str(words[place]) for place in ranked[:TERMS] if total[place] > 0)


def _silhouettes(weights: "csr_matrix", labels: Sequence[int]) -> dict[int, float]:
    """Return the silhouette of each case in a theme, by its place; none without two themes."""
    import sklearn.metrics  # noqa: PLC0415

    places = [place for place, label in enumerate(labels) if label >= 0]
    inside = [labels[place] for place in places]
    # Two themes of one case each have no silhouette; a theme has several by its making.
    if len(set(inside)) < 2 or len(set(inside)) == len(inside):
        return {}
    scores = sklearn.metrics.silhouette_samples(weights[places], inside, metric="cosine")
    return dict(zip(places, scores.tolist(), strict=True))
