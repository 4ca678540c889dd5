"""Passed checks of a scan's contract, signed: this code and these facts were held to the source.

A check is an in-toto Statement in a DSSE envelope, as a receipt is, of a predicate of its own. It
lies in the lake beside the receipts; whoever can write the lake cannot make one, since the key that
signs it lies elsewhere. What does not verify is passed over: it vouches for nothing.
"""

import json
from datetime import UTC, datetime
from typing import Final

from pydantic import TypeAdapter, ValidationError
from securesystemslib.signer import (  # re-exported there without `__all__`
    Signer,  # pyright: ignore[reportPrivateImportUsage]
)

from scan_pipeline.core.canonical import canonical_json, digest_of
from scan_pipeline.core.errors import EvidenceError, TamperedError
from scan_pipeline.core.receipt import AdapterRevision, ProviderRevision
from scan_pipeline.core.receipt_statement import STATEMENT_TYPE
from scan_pipeline.core.value import record
from scan_pipeline.store.lake import Lake
from scan_pipeline.store.trust import Trust, sign

PREDICATE_TYPE: Final = "urn:scan-pipeline:contract-check:v1"
SUFFIX: Final = ".check.json"


@record
class ContractCheck:
    """What was checked, and when.

    Attributes:
        scan: name of the scan.
        adapter: code that asked.
        provider: whose documented facts were under the scan's.
        checked_at: the moment, RFC 3339 in UTC.
    """

    scan: str
    adapter: AdapterRevision
    provider: ProviderRevision | None
    checked_at: str


_CHECK: Final = TypeAdapter(ContractCheck)


class CheckStore:
    """The passed checks of one scan.

    Args:
        lake: where they lie.
        scan: name of the scan.
    """

    def __init__(self, lake: Lake, scan: str) -> None:
        self._lake, self._scan = lake, scan

    def write(
        self,
        adapter: AdapterRevision,
        provider: ProviderRevision | None,
        *,
        signer: Signer,
        at: datetime,
    ) -> ContractCheck:
        """Write down that a check passed.

        Args:
            adapter: code that asked.
            provider: whose documented facts it was held to.
            signer: the project's key.
            at: the moment, with a time zone.

        Raises:
            WriterConflictError: the same check was written in the same microsecond.
        """
        moment = at.astimezone(UTC)
        check = ContractCheck(
            scan=self._scan, adapter=adapter, provider=provider, checked_at=moment.isoformat()
        )
        name = f"{self._digest(adapter, provider)}.{moment:%Y%m%dT%H%M%S%fZ}{SUFFIX}"
        path = f"{self._lake.checks_folder(self._scan)}/{name}"
        self._lake.write_once(path, sign(_statement(check), signer=signer))
        return check

    def find(
        self, adapter: AdapterRevision, provider: ProviderRevision | None, *, trust: Trust
    ) -> ContractCheck | None:
        """Return the newest check of this code and these facts that verifies, None without one."""
        folder, begins = self._lake.checks_folder(self._scan), self._digest(adapter, provider)
        for name in reversed(self._lake.list_names(folder)):
            if not name.startswith(f"{begins}.") or not name.endswith(SUFFIX):
                continue
            try:
                envelope = self._lake.read_bytes(f"{folder}/{name}")
                check = _parsed(trust.verify(envelope).payload)
            except EvidenceError:
                continue
            if (check.scan, check.adapter, check.provider) == (self._scan, adapter, provider):
                return check
        return None

    def _digest(self, adapter: AdapterRevision, provider: ProviderRevision | None) -> str:
        told = None if provider is None else dict(provider.__dict__)
        return digest_of({"adapter": dict(adapter.__dict__), "provider": told}).hex()[:16]


def _statement(check: ContractCheck) -> bytes:
    predicate = _CHECK.dump_python(check, mode="json")
    return canonical_json(
        {
            "_type": STATEMENT_TYPE,
            "subject": [{"name": check.scan, "digest": {"sha256": digest_of(predicate).hex()}}],
            "predicateType": PREDICATE_TYPE,
            "predicate": predicate,
        }
    )


def _parsed(payload: bytes) -> ContractCheck:
    """Read a verified payload.

    Raises:
        TamperedError: it is no check, e.g. a receipt under another name.
    """
    try:
        statement = json.loads(payload)
        check = _CHECK.validate_json(json.dumps(statement["predicate"]))
    except (ValueError, KeyError, TypeError, ValidationError) as error:
        raise TamperedError("check", f"not a check: {type(error).__name__}") from error
    if _statement(check) != payload:
        raise TamperedError("check", "the statement is not the one its fields imply")
    return check
