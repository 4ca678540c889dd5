"""The private keys: when they are begun, and when a missing one is an error."""

import base64
import itertools
import json
import multiprocessing
import pickle
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from scan_pipeline.core.errors import ConfigurationError, ContractError
from scan_pipeline.store.keys import DataKey, data_key, keyed_digest, signing_signer
from scan_pipeline.store.project import Project
from scan_pipeline.store.trust import Trust, TrustedKey, add_key, sign

AT = datetime(2026, 11, 30, 2, tzinfo=UTC)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(
        lake=str(tmp_path / "lake"),
        keys=tmp_path / "keys",
        trust=tmp_path / "trust.json",
        dagster_home=tmp_path / "home",
        root=None,
    )


@pytest.fixture
def remote(project: Project) -> Project:
    return replace(project, lake="s3://bucket/lake")


def put_file(project: Project, name: str) -> None:
    file = Path(project.lake) / name
    file.parent.mkdir(parents=True)
    file.write_bytes(b"{}")


def mode_of(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_first_local_run_begins_key_and_trust(project: Project) -> None:
    signer = signing_signer(project, now=AT)

    trust = Trust.load(project.trust, lake=project.lake)
    assert trust.verify(sign(b"{}", signer=signer)).payload == b"{}"
    assert trust.keys[0].added_at == AT
    assert mode_of(project.keys) == 0o700
    assert mode_of(project.keys / "signing_key.pem") == 0o600
    assert mode_of(project.trust) == 0o644


def test_the_key_is_kept(project: Project) -> None:
    first = signing_signer(project, now=AT)
    put_file(project, "receipts/customers/receipt.json")

    assert signing_signer(project, now=AT).public_key == first.public_key
    assert signing_signer(project, now=AT, create="never").public_key == first.public_key


def test_a_folder_of_keys_is_kept_out_of_commits(project: Project) -> None:
    signing_signer(project, now=AT)

    assert (project.keys / ".gitignore").read_text(encoding="utf-8") == "*\n"


def test_no_key_is_begun_over_receipts(project: Project) -> None:
    put_file(project, "receipts/customers/receipt.json")

    with pytest.raises(ConfigurationError, match=r"no signing key at .*signing_key\.pem.*receipts"):
        signing_signer(project, now=AT)
    assert not project.keys.exists()
    assert not project.trust.exists()


def test_no_key_is_begun_beside_a_trust_file_that_lists_one(project: Project) -> None:
    signing_signer(project, now=AT)
    (project.keys / "signing_key.pem").unlink()

    with pytest.raises(ConfigurationError, match=r"lists 1 key\(s\) already"):
        signing_signer(project, now=AT)
    assert not (project.keys / "signing_key.pem").exists()


def test_a_trust_file_without_keys_is_begun(project: Project) -> None:
    project.trust.write_text('{"version": 1, "keys": []}', encoding="utf-8")

    signer = signing_signer(project, now=AT)
    assert Trust.load(project.trust, lake=project.lake).holds(signer.public_key.keyid)


def test_no_key_is_begun_for_a_remote_lake_but_by_init(remote: Project) -> None:
    for create in ("first_run", "never"):
        with pytest.raises(ConfigurationError, match="no signing key"):
            signing_signer(remote, now=AT, create=create)
        with pytest.raises(ConfigurationError, match="no data key"):
            data_key(remote, scan="customers", now=AT, create=create)
    assert not remote.keys.exists()

    signer = signing_signer(remote, now=AT, create="init")
    sealing = data_key(remote, scan="customers", now=AT, create="init")
    assert signing_signer(remote, now=AT).public_key == signer.public_key
    assert data_key(remote, scan="customers", now=AT) == sealing


def test_init_does_not_begin_a_second_key(project: Project) -> None:
    signing_signer(project, now=AT)
    (project.keys / "signing_key.pem").unlink()

    with pytest.raises(ConfigurationError, match="no signing key"):
        signing_signer(project, now=AT, create="init")


def test_a_run_killed_between_key_and_trust_is_finished_by_the_next(project: Project) -> None:
    signer = signing_signer(project, now=AT)
    project.trust.unlink()

    assert signing_signer(project, now=AT).public_key == signer.public_key
    assert Trust.load(project.trust, lake=project.lake).holds(signer.public_key.keyid)


def test_a_lost_trust_file_is_not_begun_anew_over_receipts(project: Project) -> None:
    signing_signer(project, now=AT)
    put_file(project, "receipts/customers/receipt.json")
    project.trust.unlink()

    with pytest.raises(ConfigurationError, match="no trust file"):
        signing_signer(project, now=AT)


def test_a_key_that_the_trust_file_does_not_list_is_refused(project: Project) -> None:
    listed = signing_signer(project, now=AT)
    (project.keys / "signing_key.pem").unlink()
    project.trust.unlink()
    signing_signer(project, now=AT)
    project.trust.unlink()
    key = TrustedKey.of(listed.public_key, added_at=AT, note="")
    add_key(project.trust, key=key, lake=project.lake)

    with pytest.raises(ConfigurationError, match="does not list it"):
        signing_signer(project, now=AT)


@pytest.mark.parametrize("text", ["", "no key", "-----BEGIN PRIVATE KEY-----\nAAAA\n"])
def test_a_damaged_signing_key_is_refused_without_showing_it(project: Project, text: str) -> None:
    signing_signer(project, now=AT)
    (project.keys / "signing_key.pem").write_text(text, encoding="utf-8")

    with pytest.raises(ConfigurationError, match="expected an unencrypted Ed25519 key") as refused:
        signing_signer(project, now=AT)
    assert "AAAA" not in str(refused.value)
    assert refused.value.__context__ is None


@pytest.mark.parametrize("mode", [0o644, 0o620, 0o604, 0o602])
def test_a_key_open_to_others_is_refused(project: Project, mode: int) -> None:
    signing_signer(project, now=AT)
    data_key(project, scan="customers", now=AT)
    for file in ("signing_key.pem", "customers.data_key.json"):
        (project.keys / file).chmod(mode)

    with pytest.raises(ConfigurationError, match="chmod 600"):
        signing_signer(project, now=AT)
    with pytest.raises(ConfigurationError, match="chmod 600"):
        data_key(project, scan="customers", now=AT)


def test_a_mounted_key_may_be_readable_by_its_group(project: Project) -> None:
    signer = signing_signer(project, now=AT)
    (project.keys / "signing_key.pem").chmod(0o440)

    assert signing_signer(project, now=AT).public_key == signer.public_key


def test_no_key_is_put_into_a_folder_open_to_others(project: Project) -> None:
    project.keys.mkdir(mode=0o755)
    project.keys.chmod(0o755)

    with pytest.raises(ConfigurationError, match="chmod 700"):
        signing_signer(project, now=AT)
    assert list(project.keys.iterdir()) == []


def test_each_scan_has_a_data_key_of_its_own(project: Project) -> None:
    customers = data_key(project, scan="customers", now=AT)
    put_file(project, "evidence/customers/pages/part.parquet")
    cases = data_key(project, scan="support_cases", now=AT)  # a later scan of the same lake

    assert len(customers.key) == 32
    assert customers.key != cases.key
    assert customers == data_key(project, scan="customers", now=AT)
    assert mode_of(project.keys / "customers.data_key.json") == 0o600


def test_no_data_key_is_begun_over_evidence(project: Project) -> None:
    put_file(project, "evidence/customers/pages/part.parquet")

    with pytest.raises(ConfigurationError, match=r"no data key at .*customers\.data_key\.json"):
        data_key(project, scan="customers", now=AT)


def test_reading_begins_no_key(project: Project) -> None:
    for read in (
        lambda: signing_signer(project, now=AT, create="never"),
        lambda: data_key(project, scan="customers", now=AT, create="never"),
    ):
        with pytest.raises(ConfigurationError, match="reading creates no key"):
            read()
    assert not project.keys.exists()


@pytest.mark.parametrize("scan", ["", "../keys", "A", "a-b", "a/b", "1a", "a\n"])
def test_a_scan_name_cannot_lead_elsewhere(project: Project, scan: str) -> None:
    with pytest.raises(ContractError, match="scan name"):
        data_key(project, scan=scan, now=AT)


def edit_keys(project: Project, edit: Callable[[dict[str, Any]], None]) -> Path:
    path = project.keys / "customers.data_key.json"
    file = json.loads(path.read_bytes())
    edit(file)
    path.write_text(json.dumps(file), encoding="utf-8")
    return path


def test_rotation_seals_with_the_newest_and_opens_with_all(project: Project) -> None:
    keys: list[DataKey] = []
    entries: list[dict[str, Any]] = []
    for _ in range(3):
        keys.append(data_key(project, scan="customers", now=AT))
        path = edit_keys(project, lambda file: entries.extend(file["keys"]))
        path.unlink()
    data_key(project, scan="customers", now=AT)
    edit_keys(project, lambda file: file.update(keys=entries))

    ring = data_key(project, scan="customers", now=AT)
    assert ring == replace(keys[2], older=(keys[1], keys[0]))


def test_a_destroyed_key_is_off_the_ring_and_its_id_stays(project: Project) -> None:
    kept = data_key(project, scan="customers", now=AT)
    destroyed = {
        "key_id": "0" * 16,
        "algorithm": "AES-256-GCM",
        "created_at": "2026-01-01T00:00:00Z",
        "destroyed_at": "2026-06-01T00:00:00Z",
        "key": None,
    }
    edit_keys(project, lambda file: file["keys"].append(destroyed))
    assert data_key(project, scan="customers", now=AT) == replace(kept, destroyed=("0" * 16,))

    edit_keys(project, lambda file: file.update(keys=[destroyed]))
    with pytest.raises(ConfigurationError, match="every data key of customers was destroyed"):
        data_key(project, scan="customers", now=AT, create="never")


def test_a_run_begins_another_key_beside_the_destroyed_ones(project: Project) -> None:
    first = data_key(project, scan="customers", now=AT)
    at = "2026-06-01T00:00:00Z"
    edit_keys(project, lambda file: file["keys"][0].update(key=None, destroyed_at=at))
    another = data_key(project, scan="customers", now=AT)

    assert another.key_id != first.key_id
    assert (another.older, another.destroyed) == ((), (first.key_id,))
    assert data_key(project, scan="customers", now=AT, create="never") == another
    assert not list(project.keys.glob("*.next"))


def test_a_key_that_another_run_begins_is_waited_for(project: Project) -> None:
    data_key(project, scan="customers", now=AT)
    at = "2026-06-01T00:00:00Z"
    edit_keys(project, lambda file: file["keys"][0].update(key=None, destroyed_at=at))
    (project.keys / "customers.data_key.next").write_bytes(b"")

    with pytest.raises(ConfigurationError, match="run again"):
        data_key(project, scan="customers", now=AT)


@pytest.mark.parametrize(
    ("edit", "told"),
    [
        (lambda file: file.update(scan="others"), "of scan 'others'"),
        (lambda file: file.update(version=2), "version"),
        (lambda file: file.update(more=1), "more"),
        (lambda file: file.update(keys=[]), "keys"),
        (lambda file: file["keys"][0].update(key=None), "neither kept nor destroyed"),
        (lambda file: file["keys"][0].update(key="not base64"), "not the key of that id"),
        (lambda file: file["keys"][0].update(key_id="0" * 16), "not the key of that id"),
        (lambda file: file["keys"][0].update(algorithm="ROT13"), "algorithm"),
    ],
)
def test_a_malformed_data_key_file_is_refused_without_showing_the_key(
    project: Project, edit: Callable[[dict[str, Any]], None], told: str
) -> None:
    key = data_key(project, scan="customers", now=AT)
    edit_keys(project, edit)

    with pytest.raises(ConfigurationError, match=told) as refused:
        data_key(project, scan="customers", now=AT)
    assert base64.b64encode(key.key).decode()[:8] not in str(refused.value)
    assert refused.value.__context__ is None


def test_key_objects_do_not_show_the_key(project: Project) -> None:
    key = replace(data_key(project, scan="customers", now=AT), older=())
    ring = replace(key, older=(DataKey(key_id="0" * 16, key=b"\x07" * 32),))

    for shown in (
        repr(ring),
        str(ring),
        f"{ring}",
        repr([ring]),
        repr(signing_signer(project, now=AT)),
    ):
        for hidden in (key.key, b"\x07" * 32):
            assert repr(hidden)[2:-1] not in shown
            assert hidden.hex() not in shown
    assert key.key_id in repr(ring)


def test_a_signer_does_not_leave_the_process(project: Project) -> None:
    signer = signing_signer(project, now=AT)

    with pytest.raises(TypeError):
        pickle.dumps(signer)


def _begin(project: Project, results: Any) -> None:
    signer = signing_signer(project, now=AT)
    results.put((signer.public_key.keyid, data_key(project, scan="customers", now=AT).key_id))


def test_processes_that_race_end_with_one_key(project: Project) -> None:
    spawn = multiprocessing.get_context("spawn")
    results = spawn.Queue()
    racers = [spawn.Process(target=_begin, args=(project, results)) for _ in range(4)]
    for racer in racers:
        racer.start()
    seen = {results.get(timeout=60) for _ in racers}
    for racer in racers:
        racer.join()

    assert [racer.exitcode for racer in racers] == [0] * 4
    assert len(seen) == 1
    assert len(Trust.load(project.trust, lake=project.lake).keys) == 1
    assert sorted(file.name for file in project.keys.iterdir()) == [
        ".gitignore", "customers.data_key.json", "signing_key.pem",
    ]  # fmt: skip


def test_randomness_comes_from_the_argument(project: Project, tmp_path: Path) -> None:
    def fixed(size: int) -> bytes:
        return bytes(itertools.islice(itertools.count(1), size))

    twin = replace(project, keys=tmp_path / "twin", trust=tmp_path / "twin.json")

    assert data_key(project, scan="a", now=AT, random=fixed).key == fixed(32)
    assert (
        signing_signer(project, now=AT, random=fixed).public_key
        == signing_signer(twin, now=AT, random=fixed).public_key
    )


def test_keyed_digest_is_hmac_under_a_subkey() -> None:
    """Computed with hashlib's HMAC by RFC 5869 and RFC 2104, apart from this package."""
    key = DataKey(key_id="ce6cd57a73c8d0e1", key=bytes(range(32)))

    assert keyed_digest("cursor-1", key=key) == "2f03cb06ec0caffd"
    assert keyed_digest("cursor-2", key=key) != keyed_digest("cursor-1", key=key)
    assert keyed_digest("cursor-1", key=replace(key, key=bytes(32))) != "2f03cb06ec0caffd"
    assert len(keyed_digest("\ud800", key=key)) == 16  # JSON may carry a lone surrogate
