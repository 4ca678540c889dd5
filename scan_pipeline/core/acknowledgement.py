"""A person's word that a swing in the number of records is real: signed, beside the receipt.

A swing beyond `expect.swing` withholds a receipt that would be accepted without it: the evidence
agrees, and the change is too large to be believed unseen. Only that can be acknowledged. What else
keeps a generation from being accepted is a matter of evidence, and no word changes it.
"""

from typing import Final, Literal

from scan_pipeline.core.canonical import digest_of
from scan_pipeline.core.errors import ContractError
from scan_pipeline.core.receipt import Receipt, ReceiptAcknowledgement
from scan_pipeline.core.value import record

PREDICATE_TYPE: Final = "urn:scan-pipeline:acknowledgement:v1"


@record
class Acknowledgement:
    """A swing that somebody takes for real.

    Attributes:
        acknowledgement_version: always 1.
        scan: name of the scan.
        scan_generation: the generation whose receipt is withheld.
        receipt_id: the receipt that is withheld.
        withheld: what is acknowledged.
        expected: records of the last accepted generation.
        observed: records of this one.
        said_at: the moment, RFC 3339 in UTC.
        by: who says so.
        because: why the change is real.
    """

    acknowledgement_version: Literal[1]
    scan: str
    scan_generation: str
    receipt_id: str
    withheld: Literal["swing"]
    expected: int
    observed: int
    said_at: str
    by: str
    because: str

    @property
    def reference(self) -> ReceiptAcknowledgement:
        """What the receipt says of it that rests on it."""
        return ReceiptAcknowledgement(
            acknowledgement_id=f"sha256:{digest_of(dict(self.__dict__)).hex()}",
            generation=self.scan_generation,
            expected=self.expected,
            observed=self.observed,
            by=self.by,
            because=self.because,
            said_at=self.said_at,
        )


def acknowledgement(
    receipt: Receipt, receipt_id: str, *, by: str, because: str, said_at: str
) -> Acknowledgement:
    """Return the acknowledgement of a withheld receipt.

    Raises:
        ContractError: nothing is withheld for a swing, or who or why is not said.
    """
    if not by.strip() or not because.strip():
        raise ContractError(
            f"found by={by!r}, because={because!r}; expected who acknowledges the change and why: "
            "it is signed and kept"
        )
    swing = next((each for each in receipt.expectations if each.name == "swing"), None)
    expected, observed = (None, None) if swing is None else (swing.expected, swing.observed)
    held = "swing" in receipt.withheld
    if not held or not isinstance(expected, int) or not isinstance(observed, int):
        status = f"{receipt.coverage_status}, {'' if receipt.accepted else 'not '}accepted"
        told = "; ".join(receipt.reasons) or status
        raise ContractError(
            f"{receipt.scan} {receipt.scan_generation}: found {status}, not withheld for a swing "
            f"({told}); expected a receipt that is withheld: nothing else can be acknowledged"
        )
    return Acknowledgement(
        acknowledgement_version=1,
        scan=receipt.scan,
        scan_generation=receipt.scan_generation,
        receipt_id=receipt_id,
        withheld="swing",
        expected=expected,
        observed=observed,
        said_at=said_at,
        by=by,
        because=because,
    )
