"""What may be done about a record: facts of the policy, as strict as those that let someone read.

actions:
  close_account:
    scan: customers
    proposers: [ana]
    releasers: [eve]
    request:
      url: https://registry.example/v1/customers/{customer_id}/close
      body: {reason: dormant}
      fields: {region: region}
      auth: {bearer: {env: REGISTRY_WRITE_TOKEN}}
      idempotency_header: Idempotency-Key
    re_read:
      url: https://registry.example/v1/customers/{customer_id}
      send_etag: true
"""

import re
from collections.abc import Mapping
from dataclasses import field
from typing import Annotated, Any, Final, Literal, TypeAlias

from pydantic import Field

from scan_pipeline.agents.addressing import check_template, places
from scan_pipeline.core.canonical import digest_of
from scan_pipeline.core.errors import ConfigurationError
from scan_pipeline.core.field_path import FieldPath
from scan_pipeline.core.value import adapter, record
from scan_pipeline.sources.auth import Auth
from scan_pipeline.sources.http.addresses import origin_of
from scan_pipeline.sources.http.network import NetworkFacts
from scan_pipeline.sources.plain_secrets import is_secret_header

Method: TypeAlias = Literal["POST", "PUT", "PATCH", "DELETE"]

ReleaseBy: TypeAlias = Literal["person", "automatic"]
"""Who lets a proposal go: a person who is named, or the policy, once its conditions are met."""

_HEADER: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")  # a token, RFC 9110, section 5.6.2
_OURS: Final = frozenset({"if-match", "content-length", "content-type", "host", "authorization"})


@record
class ActionRequest:
    """The one request that an action is.

    Attributes:
        url: its address, every field of the scan's key in it as a path segment: `{customer_id}`.
        method: its method.
        headers: fixed headers, none of them a secret.
        body: fixed members of its JSON body.
        fields: members that are taken from the record as it was admitted, each by its field's
            path. Without body and fields nothing is sent but the address.
        auth: how to prove who we are; secrets are references.
        network: how the network is reached.
        idempotency_header: header in which the proposal's own name for the request goes out, so
            that a source that keeps such names does it once whatever is lost on the way.
        success: statuses that say that it was done.
    """

    url: str
    method: Method = "POST"
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    body: Mapping[str, Any] = field(default_factory=dict[str, Any])
    fields: Mapping[str, FieldPath] = field(default_factory=dict[str, FieldPath])
    auth: Auth | None = None
    network: NetworkFacts | None = None
    idempotency_header: str | None = None
    success: Annotated[tuple[Annotated[int, Field(ge=200, le=299)], ...], Field(min_length=1)] = (
        200,
        201,
        202,
        204,
    )

    def __post_init__(self) -> None:
        check_template(self.url, what="request.url")
        named = [*self.headers, *filter(None, [self.idempotency_header])]
        wrong = [each for each in named if not _HEADER.fullmatch(each) or each.lower() in _OURS]
        if wrong or len({each.lower() for each in named}) != len(named):
            raise ConfigurationError(
                f"request.headers: found {', '.join(wrong) or 'one twice'}; expected names of "
                f"headers other than {', '.join(sorted(_OURS))}, each once"
            )
        if any(is_secret_header(each) for each in self.headers):
            raise ConfigurationError(
                "request.headers holds what looks like a secret; expected it under request.auth, "
                "as a reference"
            )
        both = {*self.body} & {*self.fields}
        if both:
            raise ConfigurationError(
                f"request: {', '.join(sorted(both))} stands under body and under fields"
            )
        if self.auth is not None and self.auth.is_fetched:
            raise ConfigurationError(
                f"request.auth.{self.auth.scheme} is not for actions; expected bearer, api_key or "
                "basic"
            )


@record
class IfMatch:
    """The record itself holds its entity tag, which goes out as `If-Match`.

    The source then compares as it acts, and answers 412 where it has another version (RFC 9110,
    section 13.1.1, read 2026-11-30): nothing can come between.

    Attributes:
        field: path of the tag in the record.
        form: `tag` where it stands there quoted as HTTP wants it, `bare` where the quotes are
            ours to put around it.
    """

    field: FieldPath
    form: Literal["tag", "bare"] = "tag"


@record
class ReRead:
    """The single record is read again and compared in canonical form with what was admitted.

    Attributes:
        url: its address, as `request.url`, on the same origin.
        record_at: where the record lies in the answer; the whole answer where it is silent.
        send_etag: whether the answer's own strong `ETag` goes out as `If-Match`, so that a change
            between reading and acting is refused as well; without it that gap stays open.
    """

    url: str
    record_at: FieldPath = ()
    send_etag: bool = False

    def __post_init__(self) -> None:
        check_template(self.url, what="re_read.url")


@record
class Action:
    """One thing that may be proposed about a record of one scan.

    Attributes:
        scan: of which scan.
        proposers: principals who may propose it.
        request: what is sent.
        if_match: how the source is asked whether it still has the version that was read; exactly
            one of this and `re_read`.
        re_read: the same.
        release: by a person, or automatic.
        releasers: principals who may release it, for a person.
        accounted_by: `engine` where the conditions of the query say which records are meant,
            `reader` where only a verdict on every row that matches does.
    """

    scan: str
    proposers: Annotated[tuple[str, ...], Field(min_length=1)]
    request: ActionRequest
    if_match: IfMatch | None = None
    re_read: ReRead | None = None
    release: ReleaseBy = "person"
    releasers: tuple[str, ...] = ()
    accounted_by: Literal["engine", "reader"] = "engine"

    def __post_init__(self) -> None:
        if (self.if_match is None) == (self.re_read is None):
            raise ConfigurationError("an action needs exactly one of: if_match, re_read")
        if (self.release == "person") != bool(self.releasers):
            raise ConfigurationError(
                "an action is released by a person and names releasers, or is automatic and names "
                "none"
            )
        if self.re_read is None:
            return
        if origin_of(_bare(self.re_read.url)) != origin_of(_bare(self.request.url)):
            raise ConfigurationError("re_read.url and request.url differ in origin; expected one")
        if set(places(self.re_read.url)) != set(places(self.request.url)):
            raise ConfigurationError("re_read.url and request.url name other fields of the key")

    def digest(self) -> str:
        """Return the digest of what is sent and how it is checked, `sha256:` and 64 hex digits.

        Who may propose and release is not in it: that is asked anew each time.
        """
        facts = adapter(Action).dump_python(self, mode="json")
        for who in ("proposers", "releasers", "release"):
            del facts[who]
        return f"sha256:{digest_of(facts).hex()}"


def check_actions(
    actions: Mapping[str, Action], *, principals: Mapping[str, Any], scans: Mapping[str, Any]
) -> None:
    """Refuse actions of principals or scans that the policy does not know.

    Raises:
        ConfigurationError: one names such a principal or scan.
    """
    for name, one in actions.items():
        if one.scan not in scans:
            raise ConfigurationError(f"action {name}: found the scan {one.scan}, not listed")
        unknown = [each for each in (*one.proposers, *one.releasers) if each not in principals]
        if unknown:
            raise ConfigurationError(
                f"action {name}: found {', '.join(unknown)}; expected principals of the policy"
            )


def _bare(template: str) -> str:
    return template.replace("{", "").replace("}", "")
