"""What a parser refuses is told in words of our own, once for each field."""

import pytest

from scan_pipeline.sources.catalogue import ScanFileError, parse_scan

GOOD = {
    "name": "things",
    "source": {
        "protocol": "page_token",
        "url": "https://api.test/things",
        "records_at": "items",
        "next": {"at": "next", "send_as": "cursor", "ends_when": [{"is": "null"}]},
    },
    "contract": {"key": ["id"], "consistency": "live"},
}


def told(edit, changes):
    with pytest.raises(ScanFileError) as refused:
        parse_scan(edit(GOOD, changes))
    return [(".".join(map(str, each.at)), each.message) for each in refused.value.problems]


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("name", 5, "found 5; expected a text"),
        ("source.method", "PUT", "found a text; expected GET or POST"),
        ("source.params", ["a"], "found a list; expected a mapping"),
        ("source.page_size", {"send_as": "n", "value": 0}, "found 0; expected more than 0"),
        ("contract.key", [], "found an empty list; expected at least 1 of them"),
        ("contract.limits", {"pages": 1.5}, "found 1.5; expected an integer"),
        ("contract.accept", {"nonconforming": -1}, "found -1; expected 0 or more"),
        ("schedule", "daily", "found a text; expected a mapping"),
        ("contract.model", 1, "unknown field; did you mean mode?"),
        ("source.next", ..., "missing; expected a value"),
    ],
)
def test_common_mistakes_are_told_as_found_and_expected(edit, path, value, message):
    ((field, found),) = told(edit, {path: value})

    assert found == message
    assert field.startswith(path)


def test_field_of_several_kinds_is_told_once_with_all_that_would_do(edit):
    sequence = {"field": "id", "last": "all"}
    count = {"at": "total", "exactness": "exact"}

    problems = told(edit, {"contract.expect": {"id_sequence": sequence}, "source.count": count})

    assert problems == [
        ("contract.expect.id_sequence.last", "found all; expected an integer, or count")
    ]


def test_list_that_was_meant_is_told_of_its_items_alone(edit):
    problems = told(edit, {"record_schema": [{"name": 5, "type": "int64"}, {"name": "x"}]})

    assert problems == [
        ("record_schema.0.name", "found 5; expected a text"),
        ("record_schema.1.type", "missing; expected a value"),
    ]


def test_no_word_of_the_library_is_left(edit):
    problems = told(
        edit,
        {"name": 1, "source.url": 2, "contract.key": 3, "record_schema": 4, "operation": 5},
    )

    words = " ".join(f"{field} {message}" for field, message in problems)
    assert len(problems) == 5
    for word in ("input", "valid", "tuple", "dataclass", "Column", "literal"):
        assert word not in words


def test_word_that_is_none_of_a_list_is_shown_where_it_can_be_no_secret(edit):
    count = {"at": "total", "exactness": "exakt"}
    assert told(edit, {"source.count": count}) == [
        ("source.count.exactness", "found exakt; expected exact or estimate")
    ]
    assert told(edit, {"source.method": "S3cr3t"}) == [
        ("source.method", "found a text; expected GET or POST")
    ]


def test_list_whose_items_are_wrong_is_not_told_to_be_empty(edit):
    (problem,) = told(edit, {"source.next.ends_when": [{"is": "nothing"}]})

    assert problem[0] == "source.next.ends_when.0.is"


@pytest.mark.parametrize(
    ("changes", "field", "message"),
    [
        ({"source.auth": {"bearer": "s3cr3t"}}, "source.auth.bearer", "found a text that names no"),
        ({"source.auth": {}}, "source.auth", "auth needs exactly one of"),
        (
            {"source.snapshot": {"at": "v", "send_as": "v", "rotates": True}}
            | {"source.snapshot.travels_in": "continuation"},
            "source.snapshot",
            "a version whose name rotates",
        ),
    ],
)
def test_rule_over_several_fields_is_told_where_it_belongs(edit, changes, field, message):
    """The record raises it without a place; what it is about is found by leaving members out."""
    ((at, found),) = told(edit, changes)

    assert (at, found[: len(message)]) == (field, message)


def test_likely_name_is_told_else_all_there_are(edit):
    assert told(edit, {"contract.keys": ["id"]}) == [
        ("contract.keys", "unknown field; did you mean key?")
    ]
    ((_, message),) = told(edit, {"contract.limits": {"most": 1}})
    assert message.startswith("unknown field; expected one of: over_count, pages, records")
    assert told(edit, {"source.surprise": 1}) == [
        ("source.surprise", "unknown field; remove it or correct its name")
    ]
