"""The documentation holds: links lead somewhere, scan files are right, every command runs."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from scan_pipeline.cli.check import problems_of
from scan_pipeline.sources.protocols import MODULES
from scan_pipeline_tests.cli.conftest import OURS, make_project
from scan_pipeline_tests.docs.pages import PAGES, ROOT, Block, blocks

DOCS = ROOT / "docs"

KINDS = {"sh", "console", "yaml", "json", "toml", "python"}
"""Words of a fence; `sh` is run by a test, `console` needs what a test has not."""

BLOCKS = [block for page in PAGES for block in blocks(page)]

SCANS = [block for block in BLOCKS if block.kind == "yaml" and "\nsource:" in f"\n{block.text}"]
"""Blocks that are scan files, whole or in part."""

WHOLE = [
    block
    for block in SCANS
    if block.text.startswith("name: ")
    if "\n  adapter: " not in block.text  # its module is written beside it by the page's own test
]

RUN = [
    page
    for page in PAGES
    if page != ROOT / "README.md" and any(block.kind == "sh" for block in blocks(page))
]
"""Pages with commands; those of the README are run by .ci/run, from nothing."""


def test_every_block_says_what_it_is() -> None:
    assert [f"{each}: {each.kind}" for each in BLOCKS if each.kind not in KINDS] == []


def test_every_page_is_named_by_the_index() -> None:
    named = set(re.findall(r"\]\(([^)#]+\.md)", (DOCS / "README.md").read_text("utf-8")))
    pages = {str(each.relative_to(DOCS)) for each in PAGES if each.is_relative_to(DOCS)}

    assert pages - named == {"README.md"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere(page: Path) -> None:
    """To a file that is there, and where it names one, to a heading of it."""
    lost = []
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
        if "://" in target:
            continue
        path, _, heading = target.partition("#")
        file = (page.parent / path) if path else page
        if not file.exists() or (heading and heading not in headings(file)):
            lost.append(target)

    assert lost == []


def headings(page: Path) -> set[str]:
    """Return the anchors of a page as a forge makes them."""
    found = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", each.lower()).replace(" ", "-") for each in found}


@pytest.mark.parametrize("block", WHOLE, ids=str)
def test_every_scan_file_passes_check(block: Block, tmp_path: Path) -> None:
    file = tmp_path / "scan.yaml"
    file.write_text(block.text, encoding="utf-8")

    assert [f"{each.line}: {each.field}: {each.message}" for each in problems_of(file)] == []


@pytest.mark.parametrize("folder", ["protocols", "recipes"])
def test_every_page_of_a_source_has_a_scan_file(folder: str) -> None:
    pages = {each.page for each in WHOLE}

    assert [each.name for each in (DOCS / folder).glob("*.md") if each not in pages] == []


def test_every_protocol_has_a_page() -> None:
    assert {each.stem for each in (DOCS / "protocols").glob("*.md")} == {*MODULES}


def test_part_of_a_scan_file_is_yaml_too() -> None:
    for block in SCANS:
        assert isinstance(yaml.safe_load(block.text), dict), str(block)


@pytest.mark.long
@pytest.mark.parametrize("page", RUN, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_command_of_a_page_runs(page: Path, tmp_path: Path) -> None:
    """One after another, in an empty folder; in a project of the shipped scans if it makes none."""
    script = "".join(block.text for block in blocks(page) if block.kind == "sh")
    if "scan-pipeline init" not in script:
        make_project(tmp_path)
    tools = Path(sys.executable).parent
    environ = {name: value for name, value in os.environ.items() if name not in OURS}
    environ |= {"PATH": f"{tools}:{environ['PATH']}", "PYTHONPATH": str(ROOT)}

    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-xc", script],
        cwd=tmp_path,
        env=environ,
        capture_output=True,
        text=True,
        check=False,
        timeout=500,
    )

    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
