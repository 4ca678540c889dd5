"""Every command has help, and a heading in docs/cli.md under which its options stand."""

from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from scan_pipeline.cli.main import COMMANDS, cli

DOC = Path(__file__).parents[2] / "docs" / "cli.md"


def commands() -> Iterator[tuple[str, click.Command]]:
    context = click.Context(cli)
    for name in cli.list_commands(context):
        command = cli.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from ((f"{name} {inner}", each) for inner, each in command.commands.items())
        else:
            yield name, command


ALL = dict(commands())


@pytest.mark.parametrize("name", ALL)
def test_command_is_documented(name: str) -> None:
    """Each command has a section, and the section names each of its options."""
    sections = DOC.read_text(encoding="utf-8").split("\n## ")
    section = next((each for each in sections if each.startswith(f"{name}\n")), "")

    assert section
    options = [each for each in ALL[name].params if isinstance(each, click.Option)]
    assert [each.opts[-1] for each in options if each.opts[-1] not in section] == []


@pytest.mark.parametrize("name", ALL)
def test_command_and_its_options_have_help(name: str) -> None:
    assert ALL[name].help
    options = [each for each in ALL[name].params if isinstance(each, click.Option)]
    assert [each.name for each in options if not each.help] == []


def test_no_section_is_of_a_command_that_is_gone() -> None:
    headings = [
        line.removeprefix("## ")
        for line in DOC.read_text(encoding="utf-8").splitlines()
        if line.startswith("## ")
    ]

    assert sorted(headings) == sorted(ALL)


def test_commands_of_the_issue_are_all_there() -> None:
    """The spine's command line, in full."""
    spine = "run launch check generations receipt explain page findings audit restage read"

    assert {*spine.split(), "simulator", "ui"} <= set(COMMANDS)
