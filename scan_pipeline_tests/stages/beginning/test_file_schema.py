"""The schema for editors takes every scan file there is, and refuses what an editor should mark."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from scan_pipeline.cli.check import problems_of
from scan_pipeline.stages.beginning.project_files import component_file, sample_scan
from scan_pipeline.stages.beginning.schema_line import schema_line, shipped_schema
from scan_pipeline_tests.conftest import edited

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def schema() -> jsonschema.Draft7Validator:
    found = json.loads(shipped_schema())
    jsonschema.Draft7Validator.check_schema(found)
    return jsonschema.Draft7Validator(found)


def scan_files() -> Iterator[Path]:
    """Every YAML file of the repository that holds a scan."""
    for folder in ("scan_pipeline/defs", "scan_pipeline_tests", "docs"):
        for path in sorted((ROOT / folder).rglob("*.yaml")):
            first = next(yaml.safe_load_all(path.read_text("utf-8")), None)
            if isinstance(first, dict) and {"source", "attributes"} & first.keys():
                yield path


@pytest.mark.parametrize("path", [*scan_files()], ids=lambda path: str(path.relative_to(ROOT)))
def test_every_scan_file_there_is_fits(schema: jsonschema.Draft7Validator, path: Path) -> None:
    for document in yaml.safe_load_all(path.read_text("utf-8")):
        schema.validate(document)


def test_what_is_scaffolded_fits_alone_and_as_a_component(
    schema: jsonschema.Draft7Validator,
) -> None:
    schema.validate(yaml.safe_load(sample_scan("shop")))
    component = yaml.safe_load(component_file(sample_scan("shop")))
    component["attributes"]["dagster"] = {"key_prefix": ["bronze"], "pool": "api"}
    schema.validate(component)


@pytest.mark.parametrize(
    "edits",
    [
        {"name": "Shop"},
        {"contract": ...},
        {"surprise": 1},
        {"source.protocol": "carrier_pigeon"},
        {"source.protocol": ...},
        {"source.provider": "nobody"},
        {"source.url": ...},
        {"source.next": {"at": "next", "send_as": "cursor"}},
        {"source.next.ends_when": [{"is": "nothing"}]},
        {"source.page_size": 100},
        {"source.auth": {"bearer": "a-pasted-secret"}},
        {
            "source.auth": {
                "bearer": {"env": "A"},
                "api_key": {"header": "h", "value": {"env": "B"}},
            }
        },
        {"source.count.exactness": "roughly"},
        {"source.prefix": "of another protocol"},
        {"contract.key": []},
        {"contract.key": "customer_id"},
        {"contract.consistency": "strong"},
        {"contract.mode": "trial"},
        {"contract.limits": {"seconds": "120"}},
        {"contract.accept": {"scope": "everything"}},
        {"record_schema": [{"name": "id", "type": "text"}]},
        {"schedule": "0 2 * * *"},
        {"operation": {"retry": 3}},
    ],
    ids=str,
)
def test_mistake_is_refused_by_the_schema_as_by_check(
    schema: jsonschema.Draft7Validator, edits: Mapping[str, Any], tmp_path: Path
) -> None:
    """A schema that is stricter than `check` would be in the way."""
    wrong, file = edited(yaml.safe_load(sample_scan("shop")), edits), tmp_path / "shop.yaml"
    file.write_text(yaml.safe_dump(wrong), encoding="utf-8")

    assert not schema.is_valid(wrong)
    assert problems_of(file) != ()


def test_provider_s_facts_need_not_be_given_again(schema: jsonschema.Draft7Validator) -> None:
    source: dict[str, Any] = {"provider": "slack", "url": "https://slack.com/api/users.list"}
    scan = {"name": "u", "source": source, "contract": {"key": ["id"], "consistency": "live"}}

    assert not schema.is_valid(scan)  # where the records lie differs by method
    assert schema.is_valid(scan | {"source": source | {"records_at": "members"}})
    assert not schema.is_valid(scan | {"source": source | {"records_at": "members", "prefix": "a"}})


def test_line_names_the_nearest_schema_from_where_the_file_lies(tmp_path: Path) -> None:
    file = tmp_path / "a" / "b" / "defs.yaml"
    assert schema_line(file) == ""

    (tmp_path / "scan-file.schema.json").touch()
    assert schema_line(file) == "# yaml-language-server: $schema=../../scan-file.schema.json\n"


def test_every_field_is_described(schema: jsonschema.Draft7Validator) -> None:
    """What an editor shows, and what the reference is made of, stands where a field is declared."""
    silent = [
        f"{name}.{field}"
        for name, each in schema.schema["definitions"].items()
        for field, about in each.get("properties", {}).items()
        if isinstance(about, dict) and not {"description", "$ref"} & about.keys()
        if not name.startswith("provider_")
    ]

    assert silent == []
