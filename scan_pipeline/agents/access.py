"""What one principal sees of one scan: rows and columns, decided by the policy alone.

Arguments of a call narrow it and never widen it: they are conditions on top of these.
"""

from datetime import timedelta

import polars as pl

from scan_pipeline.agents.failures import ReaderError
from scan_pipeline.agents.members import Names, left_of, readings
from scan_pipeline.agents.policy import Policy, View
from scan_pipeline.core.canonical import digest_of
from scan_pipeline.core.value import record
from scan_pipeline.stages.readers.conditions import Condition, ConditionError, all_of, as_json

OUR_PREFIX = "_"
"""Columns of ours begin with it; they are never shown: `_raw` holds every field that is hidden."""

GENERATION = "scan_generation"
"""The column that says of which generation a row is; the answer says it once."""


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
        columns: columns shown; None for all but the hidden.
        hide: columns left out, and members of objects, by their paths.
        needs_one_of: fields of which a query must bound one.
        max_age: how long ago the scan may have been read from its source; None for any age.
    """

    principal: str
    tenant: str | None
    scan: str
    view: str
    noun: str
    rows: tuple[Condition, ...]
    columns: tuple[str, ...] | None
    hide: tuple[str, ...]
    needs_one_of: tuple[str, ...]
    max_age: timedelta | None = None

    @property
    def digest(self) -> str:
        """Return the digest of what is seen and of what must be bounded, `sha256:` and hex."""
        facts = {
            "scan": self.scan,
            "tenant": self.tenant,
            "view": self.view,
            "rows": [as_json(each) for each in self.rows],
            "columns": None if self.columns is None else list(self.columns),
            "hide": list(self.hide),
            "needs_one_of": list(self.needs_one_of),
        }
        return f"sha256:{digest_of(facts).hex()}"

    @property
    def sees_all_rows(self) -> bool:
        """Whether no row is kept from this principal."""
        return not self.rows

    @property
    def sees_everything(self) -> bool:
        """Whether no row and no column is kept from this principal."""
        return not self.rows and not self.hide and self.columns is None

    def seen(self, frame: pl.LazyFrame, schema: pl.Schema) -> pl.LazyFrame:
        """Return the rows and columns that are seen; our own columns stay for ordering.

        Raises:
            ReaderError: the view's conditions do not fit the table. Why not names columns and
                values that a reader may not know of, and is told to the log alone; or the view
                hides or names what the table does not have, which could be a slip of the pen
                that shows what was meant to be hidden.
        """
        ours = [name for name in schema if name.startswith(OUR_PREFIX)]
        try:
            met = all_of(self.rows, schema)
        except ConditionError as error:
            raise self._misfit(f"rows or tenant_field: {error.code}") from error
        return frame.filter(met).select([*self._shown(schema), *ours])

    def _shown(self, schema: pl.Schema) -> list[pl.Expr]:
        """Return the columns that are seen, in the table's order, without what is hidden in them.

        Raises:
            ReaderError: as above.
        """
        theirs = {
            name: dtype
            for name, dtype in schema.items()
            if not name.startswith(OUR_PREFIX) and name != GENERATION
        }
        unknown = [each for each in self.columns or () if each not in theirs]
        hidden = set[Names]()
        for path in self.hide:
            found = {*readings(path, theirs)}
            hidden |= found
            if not found:
                unknown.append(path)
        if unknown:
            raise self._misfit(f"neither columns nor members: {', '.join(unknown)}")
        shown = list[pl.Expr]()
        for name, dtype in theirs.items():
            if self.columns is not None and name not in self.columns:
                continue
            inside = frozenset(names[1:] for names in hidden if names[0] == name)
            left = left_of(pl.col(name), dtype, inside)
            if left is not None:
                shown.append(left.alias(name))
        return shown

    def _misfit(self, detail: str) -> ReaderError:
        return ReaderError(
            "ask_for_access",
            "policy_misfit",
            f"view {self.view} of {self.scan} does not fit the records; whoever keeps the policy "
            "finds why in the log of calls",
            detail=detail,
        )


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
        max_age=None if held.max_age_seconds is None else timedelta(seconds=held.max_age_seconds),
    )
