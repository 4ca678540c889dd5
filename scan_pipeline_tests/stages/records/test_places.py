"""Pages and positions of the rows of a batch."""

from hypothesis import given
from hypothesis import strategies as st

from scan_pipeline.stages.records.places import Places


@given(st.lists(st.tuples(st.integers(1, 9), st.integers(0, 4)), min_size=1, max_size=6))
def test_columns_and_single_rows_say_the_same(pages: list[tuple[int, int]]) -> None:
    """Empty pages stand between others and take no row."""
    expected = [(page, position) for page, size in pages for position in range(size)]

    places = Places(pages)

    columns = places.page_column().to_pylist(), places.position_column().to_pylist()
    assert list(zip(*columns, strict=True)) == expected
    rows = range(len(expected))
    assert [(places.page(row), places.position(row)) for row in rows] == expected
