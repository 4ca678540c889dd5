"""A bundle held against itself and against keys that were learned another way; needs no lake."""

from collections.abc import Callable, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Final

from scan_pipeline.core.errors import TamperedError
from scan_pipeline.core.receipt import Receipt
from scan_pipeline.core.receipt_statement import parse_statement
from scan_pipeline.core.value import record
from scan_pipeline.stages.auditing.report import AuditCheck, Checks
from scan_pipeline.stages.bundle import plain_receipt
from scan_pipeline.stages.bundling import manifest as parts
from scan_pipeline.stages.bundling.archive import MANIFEST_BYTES, BundleFile, opened
from scan_pipeline.stages.bundling.gathering import Level
from scan_pipeline.stages.bundling.manifest import BundleManifest, parse_manifest
from scan_pipeline.stages.bundling.proofs import (
    Vouched,
    check_bytes,
    check_findings,
    check_ledger,
    check_partitions,
    check_records,
)
from scan_pipeline.store.named_keys import trust_named
from scan_pipeline.store.trust import Trust

LEVELS: Final[Sequence[Level]] = ("receipt", "ledger", "partitions", "leaves", "bytes")


@record
class BundleAudit:
    """What the audit of a bundle came to.

    Attributes:
        scan: the scan it is about; None where no trusted key says.
        generation: its generation.
        receipt_id: its receipt.
        statement: what the receipt says, in a sentence.
        superseded_by: the receipt that stood instead when the bundle was made.
        level: how deep it could look with all in agreement; None where not even the receipt is.
        checks: one by one.
    """

    scan: str | None
    generation: str | None
    receipt_id: str | None
    statement: str | None
    superseded_by: str | None
    level: Level | None
    checks: tuple[AuditCheck, ...]

    @property
    def agrees(self) -> bool:
        """Whether the receipt is a trusted one, and nothing disagrees."""
        return self.level is not None and not self.disagreements

    @property
    def disagreements(self) -> tuple[AuditCheck, ...]:
        """What disagrees."""
        return tuple(each for each in self.checks if each.agrees is False)


def audit_bundle(
    path: Path, *, trust: Trust | None = None, fingerprints: Sequence[str] = ()
) -> BundleAudit:
    """Check a bundle; what disagrees is a result, not an exception.

    Args:
        path: the bundle.
        trust: keys that are believed.
        fingerprints: of further keys that are believed; the keys may then be the bundle's own.

    Raises:
        EvidenceError: there is no such file.
        ContractError: a fingerprint is none.
    """
    checks = Checks()
    try:
        with opened(path) as bundle:
            return _BundleCheck(bundle, checks, trust=trust, fingerprints=fingerprints).run()
    except TamperedError as error:
        checks.disagree(error.what, error, expected="a bundle")
        return _nothing(checks)


def _nothing(checks: Checks) -> BundleAudit:
    return BundleAudit(
        scan=None,
        generation=None,
        receipt_id=None,
        statement=None,
        superseded_by=None,
        level=None,
        checks=tuple(checks.made),
    )


class _BundleCheck:
    """One look at one bundle; files are used only once the manifest has vouched for them."""

    def __init__(
        self,
        bundle: BundleFile,
        checks: Checks,
        *,
        trust: Trust | None,
        fingerprints: Sequence[str],
    ) -> None:
        self._bundle, self._checks = bundle, checks
        self._trust = trust
        if fingerprints:
            named = trust_named(bundle.read(parts.KEYS, at_most=MANIFEST_BYTES), fingerprints)
            known = () if trust is None else trust.keys
            self._trust = Trust(path=named.path, keys=(*named.keys, *known))
        self._held = Vouched({})
        self._reached: dict[Level, bool] = {}

    def run(self) -> BundleAudit:
        checks = self._checks
        manifest = checks.guard("manifest", self._manifest)
        if manifest is None:
            return _nothing(checks)
        self._files(manifest)
        receipt = checks.guard("receipt", lambda: self._receipt(manifest))
        if receipt is None:
            return _nothing(checks)
        self._reached["receipt"] = self._agrees
        held = self._held
        self._look("ledger", manifest.lacks("ledger"), lambda: check_ledger(held, receipt, checks))
        self._look(
            "partitions",
            manifest.lacks("partition_summaries"),
            lambda: check_partitions(held, receipt, checks),
        )
        self._look(
            "leaves",
            manifest.lacks("records"),
            lambda: check_records(
                held, receipt, checks, trust=self._believed(), receipt_id=manifest.receipt_id
            ),
        )
        self._look(
            "bytes", manifest.lacks("record_bytes"), lambda: check_bytes(held, receipt, checks)
        )
        checks.guard("findings", lambda: check_findings(held, receipt, checks))
        return BundleAudit(
            scan=receipt.scan,
            generation=receipt.scan_generation,
            receipt_id=manifest.receipt_id,
            statement=receipt.statement,
            superseded_by=manifest.superseded_by,
            level=self._level(),
            checks=tuple(checks.made),
        )

    @property
    def _agrees(self) -> bool:
        return all(each.agrees is not False for each in self._checks.made)

    def _look(self, level: Level, lacking: str | None, look: Callable[[], None]) -> None:
        """Look as deep as a level, unless the bundle says that it holds nothing for it."""
        if lacking is not None:
            self._checks.leave(level, lacking)
            return
        self._checks.guard(level, look)
        left = any(each.name == level and each.agrees is None for each in self._checks.made)
        self._reached[level] = self._agrees and not left

    def _believed(self) -> Trust:
        """Return whom to believe.

        Raises:
            TamperedError: nobody said.
        """
        if self._trust is None:
            raise TamperedError(
                "manifest",
                "nobody said whose signature to believe, and the key in a bundle is no trust: "
                "expected a fingerprint that its owner gave out, or a trust file",
            )
        return self._trust

    def _level(self) -> Level | None:
        """Return the deepest level up to which everything agreed."""
        reached = None
        for level in LEVELS:
            if not self._reached.get(level, True):
                break
            if level in self._reached:
                reached = level
        return reached

    def _manifest(self) -> BundleManifest:
        """Return the manifest, signed by a key that is believed.

        Raises:
            TamperedError: no such key was named, or it did not sign this.
        """
        trust = self._believed()
        envelope = self._bundle.read(parts.MANIFEST, at_most=MANIFEST_BYTES)
        verified = trust.verify(envelope, payload_type=parts.MANIFEST_TYPE)
        manifest = parse_manifest(verified.payload)
        self._checks.agree("signature of the manifest", f"by the trusted key {verified.key_id}")
        return manifest

    def _files(self, manifest: BundleManifest) -> None:
        """Hold every file against the manifest; keep those that agree."""
        named = {each.path: each for each in manifest.files}
        held: dict[str, bytes] = {}
        for path in sorted(self._bundle.names - named.keys() - {parts.MANIFEST}):
            self._checks.disagree(f"file {path}", "it is there", expected="no such file")
        for path, file in named.items():

            def look(path: str = path, file: parts.BundledFile = file) -> None:
                content = self._bundle.read(path, at_most=file.size)
                digest = sha256(content).hexdigest()
                self._checks.compare(f"file {path}", file.sha256, digest)
                if digest == file.sha256:
                    held[path] = content

            self._checks.guard(f"file {path}", look)
        self._held = Vouched(held)

    def _receipt(self, manifest: BundleManifest) -> Receipt:
        verified = self._believed().verify(self._held.read(parts.RECEIPT))
        receipt = parse_statement(verified.payload)
        self._checks.agree("signature of the receipt", f"by the trusted key {verified.key_id}")
        self._checks.compare("receipt", manifest.receipt_id, verified.receipt_id)
        self._checks.compare(
            "generation",
            (manifest.scan, manifest.scan_generation),
            (receipt.scan, receipt.scan_generation),
        )
        plain = self._held.read(parts.PLAIN_RECEIPT)
        self._checks.compare(parts.PLAIN_RECEIPT, plain_receipt(verified.payload), plain)
        return receipt
