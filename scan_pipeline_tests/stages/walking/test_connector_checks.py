"""A changed connector or provider file is unknown until somebody looked; then it is not."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from scan_pipeline.core.receipt import AdapterRevision, ProviderRevision
from scan_pipeline.core.scan import Scan
from scan_pipeline.sources import page_token
from scan_pipeline.stages.audit import Audit
from scan_pipeline.stages.restage import restage
from scan_pipeline.stages.run import run_scan
from scan_pipeline.stages.walking.connector_checks import record_check
from scan_pipeline.stages.workspace import Workspace
from scan_pipeline.store.checks import CheckStore
from scan_pipeline.store.trust import sign
from scan_pipeline_tests.conftest import Bench, Walked, laid_down
from scan_pipeline_tests.stages.breaking import break_off

PAGES = [[b'{"id":"a","n":1}', b'{"id":"b","n":2}'], [b'{"id":"c","n":3}']]
OLD = {"name": "shop", "revision": "sha256:old"}
NEW = {"name": "shop", "revision": "sha256:new"}


@pytest.fixture
def revised(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Gives the connector another revision."""
    return lambda revision: monkeypatch.setattr(page_token, "REVISION", revision)


@pytest.fixture
def first(bench: Bench) -> Walked:
    """A first night, which needs no check."""
    walked = bench.walk_records(PAGES)
    assert walked.receipt.coverage_status == "verified"
    return walked


def told(walked: Walked) -> tuple[str, bool]:
    receipt = walked.receipt
    codes = [each.code for each in receipt.findings.first]
    return receipt.coverage_status, "contract_unchecked" in codes


def test_unchanged_connector_needs_no_check(first: Walked) -> None:
    assert told(first.again()) == ("verified", False)


def test_changed_connector_is_unknown_night_after_night(
    first: Walked, revised: Callable[[str], None]
) -> None:
    """One unchecked night must not make the changed connector the usual one."""
    revised("page_token/2")

    nights = [first.again(), first.again()]

    assert [told(night) for night in nights] == [("unknown", True)] * 2
    assert not nights[-1].receipt.accepted
    (finding,) = [f for f in nights[-1].receipt.findings.first if f.code == "contract_unchecked"]
    assert finding.expected == (
        f"page_token page_token/1, as in generation {first.receipt.scan_generation}"
    )
    assert finding.found == "page_token page_token/2"
    again = Audit(first.scan.name, nights[-1].generation, workspace=first.workspace).run()
    assert again.agrees


def test_recorded_check_lifts_it_for_this_revision_alone(
    first: Walked, revised: Callable[[str], None]
) -> None:
    revised("page_token/2")
    assert told(first.again()) == ("unknown", True)

    check = record_check(first.scan, workspace=first.workspace)

    assert check.adapter == AdapterRevision(name="page_token", revision="page_token/2")
    assert told(first.again()) == ("verified", False)
    revised("page_token/3")
    assert told(first.again()) == ("unknown", True)
    revised("page_token/2")
    assert told(first.again()) == ("verified", False)


def test_changed_provider_file_is_unknown(first: Walked, things: Callable[..., Scan]) -> None:
    shop, changed = (things({"source.provider": each}) for each in (OLD, NEW))

    assert told(first.again(shop)) == ("unknown", True)
    record_check(shop, workspace=first.workspace)
    night = first.again(shop)
    assert told(night) == ("verified", False)
    assert night.receipt.provider == ProviderRevision(**OLD)
    assert told(first.again(changed)) == ("unknown", True)
    assert told(first.again(shop)) == ("verified", False)


def checks(workspace: Workspace, scan: Scan) -> Path:
    return Path(workspace.lake.checks_folder(scan.name))


def test_check_of_another_key_vouches_for_nothing(
    first: Walked, bench: Bench, revised: Callable[[str], None]
) -> None:
    """Whoever writes the lake has a key too, but not the project's."""
    revised("page_token/2")
    stranger = bench.workspace(inner=laid_down(PAGES))
    record_check(first.scan, workspace=stranger)
    (forged,) = checks(stranger, first.scan).iterdir()
    folder = checks(first.workspace, first.scan)
    folder.mkdir()
    (folder / forged.name).write_bytes(forged.read_bytes())

    assert told(first.again()) == ("unknown", True)


def test_edited_check_and_a_receipt_in_its_place_vouch_for_nothing(
    first: Walked, revised: Callable[[str], None]
) -> None:
    record_check(first.scan, workspace=first.workspace)
    (file,) = checks(first.workspace, first.scan).iterdir()
    record_of_one = file.read_bytes()
    revised("page_token/2")
    check = record_check(first.scan, workspace=first.workspace)
    place = next(f for f in checks(first.workspace, first.scan).iterdir() if f != file)
    envelope = json.loads(place.read_bytes())
    receipt = first.workspace.receipts(first.scan.name).envelope(first.generation)
    store = CheckStore(first.workspace.lake, first.scan.name)
    trust = first.workspace.trust
    assert store.find(check.adapter, None, trust=trust) == check

    for content in (
        record_of_one,
        receipt,
        b"{}",
        json.dumps({**envelope, "payload": envelope["payload"][:-8]}).encode(),
    ):
        place.write_bytes(content)
        assert store.find(check.adapter, None, trust=trust) is None
    assert told(first.again()) == ("unknown", True)


def test_check_of_another_scan_vouches_for_nothing(
    first: Walked, things: Callable[..., Scan], revised: Callable[[str], None]
) -> None:
    revised("page_token/2")
    other = things({"name": "others"})
    record_check(other, workspace=first.workspace)
    (file,) = checks(first.workspace, other).iterdir()
    checks(first.workspace, first.scan).mkdir()
    (checks(first.workspace, first.scan) / file.name).write_bytes(file.read_bytes())

    assert told(first.again()) == ("unknown", True)


def test_walk_begun_by_one_code_and_ended_by_another_is_unknown(
    bench: Bench, things: Callable[..., Scan], revised: Callable[[str], None]
) -> None:
    scan = things({"operation": {"commit_pages": 1}})
    workspace = bench.workspace(inner=laid_down(PAGES))
    generation = break_off(scan, workspace, after=1)
    revised("page_token/2")

    night = run_scan(scan, workspace=workspace)

    receipt = night.stored.receipt
    assert receipt.scan_generation == generation
    assert receipt.coverage_status == "unknown"
    assert "contract_unchecked" in {each.code for each in receipt.findings.first}


def test_abandoned_walk_of_a_changed_connector_is_no_precedent(
    first: Walked, things: Callable[..., Scan], revised: Callable[[str], None]
) -> None:
    """It was never walked to a close of its own; what it began with is told all the same."""
    revised("page_token/2")
    other = things({"operation": {"commit_pages": 1}, "contract.limits": {"pages": 9}})
    break_off(other, first.workspace, after=1)

    night = first.again()

    (abandoned,) = night.night.closed
    assert "contract_unchecked" in {each.code for each in abandoned.receipt.findings.first}
    assert told(night) == ("unknown", True)


def test_restage_of_an_unchecked_walk_stays_unchecked(
    first: Walked, revised: Callable[[str], None]
) -> None:
    revised("page_token/2")
    night = first.again()

    again = restage(first.scan, night.generation, workspace=first.workspace).receipt

    assert again.coverage_status == "unknown"
    assert "contract_unchecked" in {each.code for each in again.findings.first}


def test_receipts_that_cannot_be_read_are_no_first_night(first: Walked) -> None:
    path = first.workspace.lake.receipt_path(first.scan.name, first.generation)
    Path(path).write_bytes(sign(b"{}", signer=_stranger()))

    assert told(first.again()) == ("unknown", True)


def _stranger():
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from securesystemslib.signer import CryptoSigner

    return CryptoSigner(Ed25519PrivateKey.generate())
