"""The JSON Schema of a scan file, for editors, made from the records that read one.

Draft 7, which the YAML servers of editors speak. It refuses what one value can be wrong by: an
unknown field, a missing one, a wrong type or word. Blocks that are right alone and wrong together
are for `scan-pipeline check`. Descriptions are those of the records' docstrings.
"""

import inspect
import re
from collections.abc import Mapping
from dataclasses import is_dataclass
from typing import Any, Final

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaMode, JsonSchemaValue
from pydantic_core import core_schema

from scan_pipeline.core.scan import SCAN_NAME
from scan_pipeline.sources.catalogue import Blocks
from scan_pipeline.sources.face_settings import FACE, FaceSettings
from scan_pipeline.sources.protocols import MODULES, protocol
from scan_pipeline.sources.provider_facts import provider_facts, provider_names
from scan_pipeline.sources.scan_file import COMPONENT_FIELDS

TITLE: Final = "Scan file of scan_pipeline"

_DEFINITIONS: Final = "#/definitions/"
_ONE_OF_THEM: Final = ("Auth", "SecretRef")
"""Records whose fields are ways to say one thing: exactly one is said."""

_LISTED: Final = re.compile(r"^ {4}(\w+): (.*(?:\n {8,}.*)*)", re.MULTILINE)
"""A field and its description, in the attributes of a docstring of Google's style."""


def scan_file_schema() -> dict[str, Any]:
    """Return the schema; every protocol is imported for it, so that every extra is needed.

    Raises:
        ConfigurationError: an extra is missing.
    """
    kinds = {name: protocol(name).facts for name in MODULES}
    parsed = {**kinds, "blocks": Blocks, "face": FaceSettings}
    mode: JsonSchemaMode = "validation"
    named, shared = TypeAdapter.json_schemas(
        [(name, mode, TypeAdapter[Any](kind)) for name, kind in parsed.items()],
        ref_template=f"{_DEFINITIONS}{{model}}",
        schema_generator=_Described,
    )
    definitions = shared["$defs"]
    names = {name: _name(named[name, mode]) for name in kinds}
    blocks = definitions.pop(_name(named["blocks", mode]))
    definitions["Source"] = _source(names, definitions)
    for each in provider_names():
        definitions[f"provider_{each}"] = _of_provider(each, names, definitions)
    # A trial is asked for by the command, never by a file.
    definitions["Contract"]["properties"]["mode"]["enum"].remove("trial")
    scan = _scan(blocks)
    face = {"$ref": f"{_DEFINITIONS}{_name(named['face', mode])}"}
    inner = {**scan, "properties": {**scan["properties"], FACE: face}}
    definitions["Scan"], definitions["ScanOfAComponent"] = scan, inner
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": TITLE,
        "if": {"anyOf": [{"required": ["attributes"]}, {"required": ["type"]}]},
        "then": _component(),
        "else": {"$ref": f"{_DEFINITIONS}Scan"},
        "definitions": dict(sorted(definitions.items())),
    }


class _Described(GenerateJsonSchema):
    """Puts what docstrings say of a record's fields where the fields stand."""

    def dataclass_schema(self, schema: core_schema.DataclassSchema) -> JsonSchemaValue:
        made, kind = super().dataclass_schema(schema), schema["cls"]
        made["description"] = _head(kind)
        made.pop("title", None)
        told = _attributes(kind)
        for name, field in made.get("properties", {}).items():
            field.pop("title", None)
            if field.get("default", ...) is None or isinstance(field.get("default"), dict):
                del field["default"]  # what may be left out is told by `required`
            for bound in ("min", "max"):
                # Of a path that may be a text or its steps, pydantic bounds the text too.
                if "anyOf" in field and f"{bound}Length" in field:
                    field[f"{bound}Items"] = field.pop(f"{bound}Length")
            if name in told:
                field["description"] = told[name]
        if kind.__name__ in _ONE_OF_THEM:
            made |= {"minProperties": 1, "maxProperties": 1}
        return made


def _head(kind: type) -> str:
    return (inspect.getdoc(kind) or "").partition("\n\nAttributes:")[0]


def _attributes(kind: type) -> dict[str, str]:
    """Return what the docstrings of a record and of those it extends say of its fields."""
    told = dict[str, str]()
    for each in reversed(kind.__mro__):
        if is_dataclass(each):
            _, _, listed = inspect.cleandoc(each.__doc__ or "").partition("Attributes:\n")
            for name, text in _LISTED.findall(listed):
                told[_written(kind, name)] = " ".join(text.split())
    return told


def _written(kind: type, field: str) -> str:
    """Return what a field is called in a file, where Python keeps its name to itself (`is`)."""
    about = getattr(kind, "__annotations__", {}).get(field)
    aliases = (getattr(each, "alias", None) for each in getattr(about, "__metadata__", ()))
    return next((each for each in aliases if each), field)


def _name(reference: Mapping[str, Any]) -> str:
    return str(reference["$ref"]).removeprefix(_DEFINITIONS)


def _source(names: Mapping[str, str], definitions: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a source: a protocol's facts, a provider's, or an adapter's."""
    for name in names.values():
        facts = definitions[name]
        # An editor completes the words of one list; each protocol says its own word by itself.
        facts["properties"] |= {"protocol": True, "provider": True}
        facts["required"] = [each for each in facts.get("required", ()) if each != "protocol"]
    plain = [_when("protocol", word, names[word]) for word in names]
    for each in plain:
        each["if"]["not"] = {"anyOf": [{"required": ["provider"]}, {"required": ["adapter"]}]}
    return {
        "type": "object",
        "description": "Which population, and how its end is told.",
        "properties": {
            "protocol": {"enum": sorted([*names, "adapter"]), "description": "How it advances."},
            "provider": {
                "enum": list(provider_names()),
                "description": "Its documented facts are filled in under yours.",
            },
            "adapter": {
                "type": "string",
                "description": "Dotted path of a scan_pipeline.adapters.Adapter of one's own.",
            },
        },
        "anyOf": [{"required": [each]} for each in ("protocol", "provider", "adapter")],
        "allOf": [
            *plain,
            *(_when("provider", each, f"provider_{each}") for each in provider_names()),
        ],
    }


def _when(field: str, word: str, then: str) -> dict[str, Any]:
    return {
        "if": {"properties": {field: {"const": word}}, "required": [field]},
        "then": {"$ref": f"{_DEFINITIONS}{then}"},
    }


def _of_provider(
    provider: str, names: Mapping[str, str], definitions: Mapping[str, Any]
) -> dict[str, Any]:
    """Return a protocol's facts with those that a provider documents no longer to be given."""
    documented = provider_facts(provider).source
    name = names[str(documented["protocol"])]
    facts = definitions[name]
    properties = {
        field: {"$ref": f"{_DEFINITIONS}{name}/properties/{field}"} for field in facts["properties"]
    }
    for field, value in documented.items():
        if isinstance(value, Mapping):
            properties[field] = {"type": "object"}  # one's own members lie over the provider's
    return {
        "type": "object",
        "description": f"The documented facts of {provider}, under yours.",
        "properties": properties,
        "required": [each for each in facts.get("required", ()) if each not in documented],
        "additionalProperties": False,
    }


def _scan(blocks: Mapping[str, Any]) -> dict[str, Any]:
    properties = dict(blocks["properties"])
    properties["source"] = {"$ref": f"{_DEFINITIONS}Source"}
    properties["name"]["pattern"] = SCAN_NAME
    order = ("name", "description", "source", "contract", "operation", "record_schema", "schedule")
    return {
        "type": "object",
        "description": "One scan: which population, what it is held to, how the work is done.",
        "properties": {name: properties[name] for name in order},
        "required": ["name", "source", "contract"],
        "additionalProperties": False,
    }


def _component() -> dict[str, Any]:
    others = dict.fromkeys(sorted(COMPONENT_FIELDS - {"type", "attributes"}), True)
    return {
        "type": "object",
        "properties": {
            "type": {"type": "string", "description": "scan_pipeline.components.Scan"},
            "attributes": {"$ref": f"{_DEFINITIONS}ScanOfAComponent"},
            **others,
        },
        "required": ["type", "attributes"],
        "additionalProperties": False,
    }
