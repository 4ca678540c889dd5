"""The reference pages, from the schema of a scan file and from the commands themselves."""

import inspect
import json
from collections.abc import Iterator, Mapping
from typing import Any

import click

from scan_pipeline.cli.main import COMMANDS, cli
from scan_pipeline.sources.protocols import MODULES, protocol
from scan_pipeline.stages.beginning.file_schema import scan_file_schema

MADE = (
    "<!-- Made by `python -m scan_pipeline_tests.docs.generated` from the code; not edited. -->\n"
)


def scan_file_reference() -> str:
    """Return every field of a scan file, record by record."""
    schema = scan_file_schema()
    definitions: Mapping[str, Any] = schema["definitions"]
    sources = sorted(name for name in definitions if name.endswith("Source") and name != "Source")
    blocks = ["Scan", "Source", "Contract", "Operation"]
    others = [
        name
        for name in definitions
        if name not in (*sources, *blocks, "ScanOfAComponent", "JsonValue")
        and not name.startswith("provider_")
    ]
    lines = [
        "# Reference of the scan file",
        "",
        MADE,
        "What the fields mean together is told in [scan-file.md](../scan-file.md).",
        "",
    ]
    for name in blocks:
        lines += _record(name, definitions[name])
    for name in sources:
        about, word = definitions[name], _protocol_of(name)
        lines += [f"## `protocol: {word}`", "", *about["description"].split("\n"), ""]
        lines += [*_table(about["properties"], about.get("required", ())), ""]
    for name in sorted(others, key=str.lower):
        lines += _record(name, definitions[name])
    return "\n".join(lines).rstrip("\n") + "\n"


def command_reference() -> str:
    """Return every command with its usage and its options, as the help has them."""
    lines = ["# Reference of the command line", "", MADE]
    lines += ["What the commands do is told in [cli.md](../cli.md).", ""]
    context = click.Context(cli, info_name="scan-pipeline")
    lines += ["## Global options", "", *_options(cli, context), ""]
    for name in COMMANDS:
        command = cli.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            inner = click.Context(command, parent=context, info_name=name)
            for each, found in command.commands.items():
                lines += _command(found, click.Context(found, parent=inner, info_name=each))
        else:
            lines += _command(command, click.Context(command, parent=context, info_name=name))
    return "\n".join(lines).rstrip("\n") + "\n"


def _command(command: click.Command, context: click.Context) -> Iterator[str]:
    path = context.command_path.removeprefix("scan-pipeline ")
    usage = " ".join(command.collect_usage_pieces(context)[1:])  # the first says [OPTIONS]
    yield from (f"## {path}", "", f"`{context.command_path} {usage}`", "")
    yield from (inspect.cleandoc(command.help or ""), "")
    options = [*_options(command, context)]
    if options:
        yield from (*options, "")


def _options(command: click.Command, context: click.Context) -> Iterator[str]:
    told = [
        option.get_help_record(context)
        for option in command.get_params(context)
        if isinstance(option, click.Option) and "--help" not in option.opts
    ]
    if told:
        yield from ("| option | meaning |", "|---|---|")
    for each in told:
        if each is not None:
            yield f"| `{_cell(each[0])}` | {_cell(each[1])} |"


def _record(name: str, definition: Mapping[str, Any]) -> list[str]:
    if "properties" not in definition:
        return []
    lines = [f"## {name}", "", *definition["description"].split("\n"), ""]
    return [*lines, *_table(definition["properties"], definition.get("required", ())), ""]


def _table(fields: Mapping[str, Any], required: Any = ()) -> Iterator[str]:
    yield from ("| field | kind | default | meaning |", "|---|---|---|---|")
    for name, about in fields.items():
        if about is True:
            continue
        default = "required" if name in required else _default(about)
        meaning = about.get("description", "")
        yield f"| `{name}` | {_kind(about)} | {default} | {_cell(meaning)} |"


def _default(about: Mapping[str, Any]) -> str:
    return f"`{_cell(json.dumps(about['default']))}`" if "default" in about else ""


def _kind(about: Mapping[str, Any]) -> str:
    """Return what a value is, in a few words; records by their names."""
    if "$ref" in about:
        name = about["$ref"].rpartition("/")[2]
        return "any JSON" if name == "JsonValue" else f"[{name}](#{name.lower()})"
    if "enum" in about:
        return ", ".join(f"`{each}`" for each in about["enum"])
    if "const" in about:
        return f"`{about['const']}`"
    if "anyOf" in about:
        kinds = [_kind(each) for each in about["anyOf"] if each.get("type") != "null"]
        return " or ".join(dict.fromkeys(kinds))
    match about.get("type"):
        case "array":
            items = about.get("items")
            return f"list of {_kind(items)}" if isinstance(items, dict) else "list"
        case "object":
            inner = about.get("additionalProperties")
            return f"mapping to {_kind(inner)}" if isinstance(inner, dict) else "mapping"
        case "string":
            return "text"
        case kind:
            return {"boolean": "true or false", None: "any"}.get(kind, str(kind))


def _protocol_of(name: str) -> str:
    return next(word for word in MODULES if protocol(word).facts.__name__ == name)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
