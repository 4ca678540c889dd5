"""Whether a receipt was judged under the judgement that the scan file states now.

Only the scope decides whether a generation answers the question. Another judgement (key, schema,
expectations, what is accepted) does not close it; whoever reads is told.
"""

from typing import Literal, TypeAlias

from scan_pipeline.core.contract_digests import contract_digests
from scan_pipeline.core.errors import ContractError
from scan_pipeline.core.receipt import Receipt
from scan_pipeline.core.scan import Scan
from scan_pipeline.core.value import record
from scan_pipeline.stages.records.schema import resolve_schema

Judgements: TypeAlias = Literal["the_present", "another", "not_known"]


@record
class JudgedUnder:
    """Which judgement a receipt rests on.

    Attributes:
        which: the scan file's present one, another, or not known where the file's record schema
            cannot be resolved.
        present: digest of the present one, None where it is not known.
        receipt: digest of the receipt's.
    """

    which: Judgements
    present: str | None
    receipt: str

    def word(self) -> str | None:
        """Return it as one sentence where there is something to say."""
        if self.which == "the_present":
            return None
        if self.present is None:
            return "judged under a judgement that cannot be compared: the schema is not resolved"
        return (
            f"judged under another judgement than the scan file states now ({self.receipt} then, "
            f"{self.present} now): restage the generation to judge it under the present one"
        )


def judged_under(receipt: Receipt, scan: Scan) -> JudgedUnder:
    """Compare the judgement of a receipt with that of a scan."""
    try:
        schema = resolve_schema(scan.record_schema)
    except ContractError:
        return JudgedUnder(which="not_known", present=None, receipt=receipt.judgement_digest)
    present = contract_digests(scan, schema_fingerprint=schema.fingerprint).judgement
    which: Judgements = "the_present" if present == receipt.judgement_digest else "another"
    return JudgedUnder(which=which, present=present, receipt=receipt.judgement_digest)
