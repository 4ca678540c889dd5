"""What one principal sees of one scan: rows and columns, decided by the policy alone.

Arguments of a call narrow it and never widen it: they are conditions on top of these.
"""

import polars as pl

from scan_pipeline.agents.failures import ReaderError
from scan_pipeline.agents.policy import Policy, View
from scan_pipeline.core.canonical import digest_of
from scan_pipeline.core.value import record
from scan_pipeline.stages.conditions import Condition, all_of, as_json

OUR_PREFIX = "_"
"""Columns of ours begin with it; they are never shown: `_raw` holds every field that is hidden."""


@record
class Access:
    """One principal's view of one scan.

    Attributes:
        principal: the principal's name.
        tenant: its tenant.
        scan: the scan.
        view: the view's name.
        noun: what the scan's records are called.
        rows: what a row must meet to be seen, the tenant's line included.
        columns: columns shown; all but the hidden where empty.
        hide: columns left out.
        needs_one_of: fields of which a query must bound one.
    """

    principal: str
    tenant: str | None
    scan: str
    view: str
    noun: str
    rows: tuple[Condition, ...]
    columns: tuple[str, ...]
    hide: tuple[str, ...]
    needs_one_of: tuple[str, ...]

    @property
    def digest(self) -> str:
        """Return the digest of what is seen, `sha256:` and 64 hex digits."""
        facts = {
            "scan": self.scan,
            "tenant": self.tenant,
            "view": self.view,
            "rows": [as_json(each) for each in self.rows],
            "columns": list(self.columns),
            "hide": list(self.hide),
        }
        return f"sha256:{digest_of(facts).hex()}"

    @property
    def sees_all_rows(self) -> bool:
        """Whether no row is kept from this principal."""
        return not self.rows

    def seen(self, frame: pl.LazyFrame, schema: pl.Schema) -> pl.LazyFrame:
        """Return the rows and columns that are seen; our own columns stay for ordering."""
        shown = self.shown(schema)
        ours = [name for name in schema if name.startswith(OUR_PREFIX)]
        return frame.filter(all_of(self.rows, schema)).select([*shown, *ours])

    def shown(self, schema: pl.Schema) -> list[str]:
        """Return the names of the columns that are seen, in the table's order.

        Raises:
            ReaderError: the view hides or names a column that the table does not have, which
                could be a slip of the pen that shows what was meant to be hidden.
        """
        unknown = [each for each in (*self.columns, *self.hide) if each not in schema]
        if unknown:
            raise ReaderError(
                "ask_for_access",
                "policy_misfit",
                f"view {self.view} of {self.scan} names columns that are not there: "
                f"{', '.join(unknown)}; expected the policy to fit the records",
            )
        return [
            name
            for name in schema
            if not name.startswith(OUR_PREFIX)
            and name != "scan_generation"
            and (name in self.columns if self.columns else name not in self.hide)
        ]


def access_to(policy: Policy, principal: str, *, scan: str, view: str | None) -> Access:
    """Return what a principal sees of a scan.

    Args:
        policy: the policy as it is now.
        principal: who asks.
        scan: of what.
        view: through which view; None where one is granted and no more.

    Raises:
        ReaderError: nothing is granted. One wording for what is not granted and what is not
            there: an answer must not tell that a scan exists.
    """
    one = policy.principals.get(principal)
    if one is None or one.revoked:
        raise ReaderError("ask_for_access", "revoked", f"{principal} has no access any more")
    granted = one.views.get(scan, ())
    if view is None and len(granted) > 1:
        raise ReaderError(
            "narrow",
            "view_missing",
            f"several views of {scan}; expected one of {', '.join(granted)}",
        )
    chosen = view if view is not None else next(iter(granted), None)
    if chosen is None or chosen not in granted:
        raise ReaderError(
            "ask_for_access",
            "not_granted",
            f"{principal} is granted no such view of a scan {scan}; list_scans shows what is",
        )
    held = policy.scans[scan]
    seen: View = held.views[chosen]
    rows = seen.rows
    if one.tenant is not None and not held.shared:
        if held.tenant_field is None:
            raise ReaderError(
                "ask_for_access",
                "tenant_line_missing",
                f"the policy does not say which rows of {scan} are a tenant's; expected "
                "tenant_field or shared",
            )
        rows = (Condition(field=held.tenant_field, value=one.tenant), *rows)
    return Access(
        principal=principal,
        tenant=one.tenant,
        scan=scan,
        view=chosen,
        noun=held.noun or scan,
        rows=rows,
        columns=seen.columns,
        hide=seen.hide,
        needs_one_of=seen.needs_one_of,
    )
