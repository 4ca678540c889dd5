"""A scan file's problems, each with the line it stands on."""

from pathlib import Path
from textwrap import dedent

import pytest

from scan_pipeline.core.errors import ContractError
from scan_pipeline.sources.scan_file import LocatedScanFileError, read_documents, read_scan_file

RIGHT = """\
name: shop
source:
  protocol: page_token
  url: https://api.example.com/v1/things
  auth: {bearer: {env: TOKEN}}
  records_at: items
  next: {at: next, send_as: cursor, ends_when: [{is: "null"}]}
contract:
  key: [id]
  consistency: live
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "scan.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def problems(folder: Path, text: str) -> list[tuple[int, str]]:
    """Return line and field of each problem."""
    with pytest.raises(LocatedScanFileError) as refused:
        read_scan_file(written(folder, text)).parse()
    return [(each.line, each.field) for each in refused.value.located]


def test_mapping_alone_and_component_file_mean_the_same(tmp_path: Path) -> None:
    alone = read_scan_file(written(tmp_path, RIGHT)).parse()
    indented = "".join(f"  {line}\n" for line in RIGHT.splitlines())
    component = f"type: scan_pipeline.components.Scan\nattributes:\n{indented}"

    assert read_scan_file(written(tmp_path, component)).parse() == alone


def test_face_of_a_component_does_not_reach_the_scan(tmp_path: Path) -> None:
    indented = "".join(f"  {line}\n" for line in RIGHT.splitlines())
    text = f"type: scan_pipeline.components.Scan\nattributes:\n  dagster: {{group: x}}\n{indented}"

    assert read_scan_file(written(tmp_path, text)).parse().name == "shop"


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("name: shop", "name: Shop", [(1, "name")]),
        ("  records_at: items\n", "", [(2, "source.records_at")]),
        ("  records_at: items", "  records_at: items\n  colour: red", [(7, "source.colour")]),
        ("consistency: live", "consistency: snapshot", [(10, "contract.consistency")]),
        ("key: [id]", "key: id", [(9, "contract.key")]),
        ("key: [id]", "key:\n  - id\n  - 7", [(11, "contract.key.1")]),
        ("key: [id]", "key: [id]\n  limits: {pages: 0}", [(10, "contract.limits.pages")]),
        (
            "name: shop",
            "name: shop\nrecord_schema: [{name: id}]",
            [(2, "record_schema.0.type")],
        ),
    ],
)
def test_each_problem_has_its_line(
    tmp_path: Path, old: str, new: str, expected: list[tuple[int, str]]
) -> None:
    """A missing field is told where its block begins."""
    assert problems(tmp_path, RIGHT.replace(old, new)) == expected


def test_all_problems_are_told_in_order_of_line(tmp_path: Path) -> None:
    text = RIGHT.replace("live", "lively").replace("items", "[1]").replace("shop", "no")

    assert [line for line, _ in problems(tmp_path, text)] == [1, 6, 10]


@pytest.mark.parametrize(
    ("value", "reading"),
    [
        ("no", "a truth value"),
        ("On", "a truth value"),
        ("0123", "an integer"),
        ("12:30", "an integer"),
        ("1_000", "an integer"),
        ("0x1F", "an integer"),
        (".inf", "a number"),
        ("2026-11-30", "a date"),
        ("Null", "nothing"),
        ("=", "a default"),
    ],
)
def test_value_that_yaml_reads_in_a_surprising_way_is_refused(
    tmp_path: Path, value: str, reading: str
) -> None:
    """Also where the type of the field would allow what YAML 1.1 makes of it."""
    expect = f"  key: [id]\n  expect: {{every_record: {{country: {value}}}}}"
    with pytest.raises(LocatedScanFileError) as refused:
        read_scan_file(written(tmp_path, RIGHT.replace("  key: [id]", expect))).parse()

    (problem,) = refused.value.located
    assert (problem.line, problem.at[-1]) == (10, "country")
    assert f"found {value}, {reading}" in problem.message


@pytest.mark.parametrize("value", ["no", "0123", "2026-11-30", "<<"])
def test_the_same_in_quotes_is_a_text(tmp_path: Path, value: str) -> None:
    expect = f"  key: [id]\n  expect: {{every_record: {{country: '{value}'}}}}"
    scan = read_scan_file(written(tmp_path, RIGHT.replace("  key: [id]", expect))).parse()

    assert scan.contract.expect.every_record == {"country": value}


@pytest.mark.parametrize("value", ["true", "False", "7", "-7", "null", "~"])
def test_plain_value_is_what_it_is(tmp_path: Path, value: str) -> None:
    expect = f"  key: [id]\n  expect: {{every_record: {{country: {value}}}}}"
    plain = {"true": True, "False": False, "7": 7, "-7": -7}

    scan = read_scan_file(written(tmp_path, RIGHT.replace("  key: [id]", expect))).parse()

    assert scan.contract.expect.every_record == {"country": plain.get(value)}


@pytest.mark.parametrize(
    ("old", "new", "field", "message"),
    [
        ("name: shop", "name: shop\nname: mart", "name", "a second time"),
        ("name: shop", "name: shop\nno: 1", "file", "found the field name no"),
        ("url: h", "url: '{{ env.URL }}h", "source.url", "found the expression"),
        ("records_at: items", "records_at: &a items\n  errors_at: [*a]", None, "found an alias"),
        ("records_at: items", "records_at: !x items", "source.records_at", "!x"),
    ],
)
def test_what_is_no_plain_fact_is_refused(
    tmp_path: Path, old: str, new: str, field: str | None, message: str
) -> None:
    text = RIGHT.replace(old, new)
    text = text.replace("v1/things", "v1/things'") if "{{" in new else text
    with pytest.raises(LocatedScanFileError) as refused:
        read_scan_file(written(tmp_path, text)).parse()

    assert any(
        message in each.message and field in (None, each.field) for each in refused.value.located
    )


@pytest.mark.parametrize("loop", ["a: &a [*a]", "a: &a {b: *a}"])
def test_file_that_holds_itself_ends(tmp_path: Path, loop: str) -> None:
    assert any("alias" in p for p in messages(tmp_path, f"{RIGHT}{loop}\n"))


def messages(folder: Path, text: str) -> list[str]:
    with pytest.raises(LocatedScanFileError) as refused:
        read_scan_file(written(folder, text)).parse()
    return [each.message for each in refused.value.located]


@pytest.mark.parametrize(
    "auth", ["sk-secret", "{bearer: sk-secret}", "{bearer: {env: sk-secret}}", "{sk-secret: 0123}"]
)
def test_secret_in_the_wrong_place_is_not_shown(tmp_path: Path, auth: str) -> None:
    told = messages(tmp_path, RIGHT.replace("{bearer: {env: TOKEN}}", auth))

    assert told
    assert not any("sk-secret" in each or "0123" in each for each in told)


def test_text_that_is_not_yaml_is_told_with_its_line(tmp_path: Path) -> None:
    with pytest.raises(LocatedScanFileError) as refused:
        read_scan_file(written(tmp_path, RIGHT.replace("key: [id]", "key: [id")))

    (problem,) = refused.value.located
    assert problem.line == 10
    assert problem.message.startswith("not YAML: ")


@pytest.mark.parametrize("text", ["", "- a\n- b\n", "just a text\n", "42\n"])
def test_file_without_a_mapping_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(ContractError):
        read_scan_file(written(tmp_path, text)).parse()


def test_other_components_of_a_file_are_passed_over(tmp_path: Path) -> None:
    indented = "".join(f"  {line}\n" for line in RIGHT.splitlines())
    scan = f"type: scan_pipeline.components.Scan\nattributes:\n{indented}"
    other = dedent(
        """\
        type: dagster_sling.SlingReplicationCollectionComponent
        attributes: {replications: []}
        """
    )

    documents = read_documents(written(tmp_path, f"{other}---\n{scan}"))

    assert [each.name for each in documents] == ["shop"]


def test_two_scans_in_one_file_must_be_called_by_name(tmp_path: Path) -> None:
    path = written(tmp_path, f"{RIGHT}---\n{RIGHT.replace('shop', 'mart')}")

    with pytest.raises(ContractError, match="holds 2 scans: shop, mart"):
        read_scan_file(path)
    assert [each.name for each in read_documents(path)] == ["shop", "mart"]


def test_component_of_another_type_is_told_to_be_no_scan(tmp_path: Path) -> None:
    path = written(
        tmp_path, "type: scan_pipeline.components.Inventory\nattributes: {name: night}\n"
    )

    with pytest.raises(ContractError, match="holds no scan"):
        read_scan_file(path)


def test_unknown_field_of_a_component_file_is_told(tmp_path: Path) -> None:
    indented = "".join(f"  {line}\n" for line in RIGHT.splitlines())
    text = f"type: scan_pipeline.components.Scan\nowner: me\nattributes:\n{indented}"

    assert problems(tmp_path, text) == [(2, "owner")]


def test_file_that_cannot_be_read_is_a_contract_error(tmp_path: Path) -> None:
    (tmp_path / "latin.yaml").write_bytes(b"name: caf\xe9\n")

    for name in ("nowhere.yaml", "latin.yaml"):
        with pytest.raises(ContractError, match=name):
            read_scan_file(tmp_path / name)


COMPONENT = "type: scan_pipeline.components.Scan\nattributes:\n" + "".join(
    f"  {line}\n" for line in RIGHT.splitlines()
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (COMPONENT.replace("attributes:", "atributes:"), [(1, "attributes"), (2, "atributes")]),
        (COMPONENT.replace("contract:", "contact:").replace("source:", "sauce:"), None),
        (f"{COMPONENT}  dagster: {{prefix: [bronze]}}\n", [(13, "dagster.prefix")]),
        ("- name: shop\n", [(1, "file")]),
    ],
    ids=["misspelt", "nothing of a scan", "unknown place", "list"],
)
def test_component_that_is_a_scan_is_told_of_by_line(
    tmp_path: Path, text: str, expected: list[tuple[int, str]] | None
) -> None:
    """Its type says that it is one, whatever else is there; its place in Dagster is looked at."""
    found = problems(tmp_path, text)

    if expected is None:
        assert {field for _, field in found} == {"source", "sauce", "contract", "contact"}
    else:
        assert found == expected
