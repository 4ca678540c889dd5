"""The access policy: who may read which rows and columns of which scan, and how much at once.

One file, YAML, strictly parsed. It is read again for every call, so that a change acts at the next
one. It names no secret: a bearer token stands in it by its SHA-256.

    tenants: [acme, globex]
    scans:
      customers:
        tenant_field: tenant            # rows of a tenant are those with its name in this field
        views:
          screening:
            hide: [email, contact.phone]
            rows: [{field: status, op: ne, value: closed}]
            needs_one_of: [customer_id, region]
    principals:
      ana:
        tenant: acme
        local_users: [ana]
        token_sha256: [5e88...]
        views: {customers: [screening]}
    limits: {page_size: 50, response_bytes: 65536}
"""

import json
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import Annotated, Final, Literal

import yaml
from pydantic import Field, ValidationError

from scan_pipeline.agents.actions import Action, check_actions
from scan_pipeline.agents.failures import PolicyError
from scan_pipeline.agents.oauth import OAuth
from scan_pipeline.core.canonical import digest_of
from scan_pipeline.core.errors import ConfigurationError
from scan_pipeline.core.value import NaturalInt, PositiveInt, adapter, record
from scan_pipeline.sources.yaml_facts import FactsReader
from scan_pipeline.stages.readers.conditions import Condition

_Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.@-]*$")]
_Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]

ESTIMATOR: Final = "utf8_bytes_div_4"
"""How tokens are estimated: bytes of UTF-8 over four, rounded up; no tokenizer is asked."""


@record
class View:
    """A named view of one scan.

    Attributes:
        columns: the columns it shows; all where it is silent.
        hide: columns it leaves out, and members of objects by their paths (`contact.email`, in each
            element where `contact` is a list); they can be neither shown, asked about nor ordered
            by.
        rows: what a row must meet to be in it.
        needs_one_of: fields of which a query must bound at least one (`eq`, `in`, `starts_with`, or
            a range); a query that does not is refused.
    """

    columns: tuple[str, ...] | None = None
    hide: tuple[str, ...] = ()
    rows: tuple[Condition, ...] = ()
    needs_one_of: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.columns == ():
            raise ConfigurationError("a view shows no columns; expected some, or silence for all")
        if self.columns and self.hide:
            raise ConfigurationError("a view names columns or hide, not both")


@record
class ScanPolicy:
    """What may be read of one scan.

    Attributes:
        views: its views by name.
        tenant_field: the field that names a row's tenant.
        shared: whether principals of any tenant may read it whole; otherwise a scan without
            `tenant_field` is closed to them.
        noun: what its records are called in sentences; the scan's name where it is silent.
        max_age_seconds: how long ago it may have been read from its source, at each call; any age
            where it is silent, and answers then say where it is late by the scan's schedule.
    """

    views: Mapping[_Name, View]
    tenant_field: str | None = None
    shared: bool = False
    noun: str | None = None
    max_age_seconds: PositiveInt | None = None

    def __post_init__(self) -> None:
        if self.shared and self.tenant_field is not None:
            raise ConfigurationError("a scan is shared, or split by tenant_field, not both")


@record
class Principal:
    """One reader.

    Attributes:
        views: the views granted, by scan.
        tenant: the tenant whose rows it sees; None for a reader above tenants.
        local_users: users of this machine who are this principal over stdio.
        token_sha256: SHA-256 (hex) of bearer tokens that are this principal over HTTP.
        subject: the `sub` of its access tokens over HTTP, where the policy names an issuer.
        revoked: whether it may do nothing any more.
    """

    views: Mapping[_Name, tuple[str, ...]]
    tenant: str | None = None
    local_users: tuple[str, ...] = ()
    token_sha256: tuple[_Digest, ...] = ()
    subject: Annotated[str, Field(min_length=1)] | None = None
    revoked: bool = False


@record
class Limits:
    """How much may be read at once and within one run.

    A run is what one principal does within `run_seconds` of its first call; no argument makes
    another. Bytes are those of the JSON that is sent; tokens are estimated from them.

    Attributes:
        page_size: most rows of a page; a caller may ask for fewer.
        response_bytes: most bytes of one answer.
        response_tokens: most tokens of one answer.
        record_bytes: most bytes of one record that is read in full.
        run_seconds: length of a run.
        run_pages: most pages of a run.
        run_bytes: most bytes of a run.
        run_tokens: most tokens of a run.
        groups: most groups of an aggregate.
        handle_seconds: how long a handle works.
    """

    page_size: PositiveInt = 50
    response_bytes: PositiveInt = 64 * 1024
    response_tokens: PositiveInt = 16 * 1024
    record_bytes: PositiveInt = 256 * 1024
    run_seconds: PositiveInt = 3600
    run_pages: NaturalInt = 200
    run_bytes: NaturalInt = 4 * 1024 * 1024
    run_tokens: NaturalInt = 1024 * 1024
    groups: PositiveInt = 1000
    handle_seconds: PositiveInt = 24 * 3600

    @property
    def answer_bytes(self) -> int:
        """Return the most bytes of one answer that keeps both bounds."""
        return min(self.response_bytes, 4 * self.response_tokens)


@record
class Policy:
    """Everything the readers' face asks before it answers."""

    principals: Mapping[_Name, Principal]
    scans: Mapping[str, ScanPolicy] = field(default_factory=dict[str, ScanPolicy])
    tenants: tuple[_Name, ...] = ()
    limits: Limits = Limits()
    actions: Mapping[_Name, Action] = field(default_factory=dict[str, Action])
    oauth: OAuth | None = None
    version: Literal[1] = 1

    def __post_init__(self) -> None:
        tokens = [each for one in self.principals.values() for each in one.token_sha256]
        users = [each for one in self.principals.values() for each in one.local_users]
        subjects = [one.subject for one in self.principals.values() if one.subject is not None]
        for what, named in (("token", tokens), ("local user", users), ("subject", subjects)):
            if len(set(named)) != len(named):
                raise ConfigurationError(f"a {what} stands for two principals; expected one each")
        if self.oauth is not None and tokens:
            raise ConfigurationError(
                "found oauth beside token_sha256; expected one: an issuer's tokens, or the policy's"
            )
        for name, one in self.principals.items():
            self._check(name, one)
        check_actions(self.actions, principals=self.principals, scans=self.scans)

    def _check(self, name: str, one: Principal) -> None:
        if one.tenant is not None and one.tenant not in self.tenants:
            raise ConfigurationError(f"principal {name}: found the tenant {one.tenant}, not listed")
        for scan, views in one.views.items():
            if scan not in self.scans:
                raise ConfigurationError(f"principal {name}: found the scan {scan}, not listed")
            for view in views:
                if view not in self.scans[scan].views:
                    raise ConfigurationError(
                        f"principal {name}: found the view {view} of {scan}; expected one of "
                        f"{', '.join(self.scans[scan].views)}"
                    )

    def digest(self) -> str:
        """Return the policy's digest, `sha256:` and 64 hex digits."""
        return f"sha256:{digest_of(adapter(Policy).dump_python(self, mode='json')).hex()}"


def load_policy(path: Path) -> Policy:
    """Read a policy file.

    A policy that lost its end could grant more than it was written to: the list of what is hidden
    may be what was cut. So the text must end as its writer ended it, with a line break, and nothing
    in it may stand twice.

    Raises:
        PolicyError: it is not there, or not a policy; says where and what was expected.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise PolicyError(f"cannot read the policy {path}: {error}") from error
    if not text.endswith("\n"):
        raise PolicyError(f"the policy {path} does not end with a line break: is it half-written?")
    facts = FactsReader()
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        plain = None if node is None else facts.value(node, ())
    except (yaml.YAMLError, RecursionError) as error:
        raise PolicyError(f"the policy {path} is no plain YAML: {error}") from error
    if facts.problems:
        told = "; ".join(f"line {each.line}: {each.message}" for each in facts.problems)
        raise PolicyError(f"the policy {path}: {told}")
    try:
        return adapter(Policy).validate_json(json.dumps(plain))
    except ConfigurationError as error:
        raise PolicyError(f"the policy {path}: {error}") from error
    except ValidationError as error:
        told = "; ".join(
            f"{'.'.join(map(str, each['loc'])) or 'file'}: {each['msg'].lower()}"
            for each in error.errors()
        )
        raise PolicyError(f"the policy {path}: {told}") from error
