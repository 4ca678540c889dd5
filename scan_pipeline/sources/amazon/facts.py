"""What a scan file declares of a paginated AWS operation."""

import json
from collections.abc import Mapping
from dataclasses import field
from typing import Annotated, ClassVar, Final, Literal

import httpx2
from pydantic import Field, JsonValue

from scan_pipeline.core.canonical import canonical_json
from scan_pipeline.core.errors import ConfigurationError, ContractError
from scan_pipeline.core.source_facts import SourceFacts
from scan_pipeline.core.value import PositiveInt, record
from scan_pipeline.core.vocabulary import LeafEncoding
from scan_pipeline.sources.http.addresses import origin_of
from scan_pipeline.sources.http.counters import counts_rows
from scan_pipeline.sources.secrets import SecretRef

SESSION_NAME: Final = "scan-pipeline"
"""Name of the sessions we assume roles in; fixed, so that two processes of a walk are one."""


_RECORDS: Final = r"^[A-Za-z_]\w*(\[\])?(\.[A-Za-z_]\w*(\[\])?)*$"
"""JMESPath that says where records lie and leaves none of them out: names, and lists opened."""

_PLACE: Final = r"^[A-Za-z_]\w*(\[\d+\])?(\.[A-Za-z_]\w*(\[\d+\])?)*$"


@record
class AwsKeys:
    """Keys of a user, or of a session with its token; named, never held.

    Attributes:
        access_key_id: which key.
        secret_access_key: its secret.
        session_token: of a session that ends.
    """

    access_key_id: SecretRef
    secret_access_key: SecretRef
    session_token: SecretRef | None = None


@record
class AwsRole:
    """A role to assume with whatever credentials there are.

    Attributes:
        arn: its name.
        external_id: what the role asks of others, where it does.
    """

    arn: Annotated[str, Field(pattern=r"^arn:[a-z-]+:iam::\d{12}:role/\S+$")]
    external_id: SecretRef | None = None


@record
class AwsAuth:
    """Who asks; without any of it, botocore's own chain of providers says.

    Attributes:
        profile: a profile of the shared configuration files.
        keys: keys by reference.
        role: a role that is assumed with what the other two, or the chain, give.
        anonymous: requests are not signed (public buckets).
    """

    profile: str | None = None
    keys: AwsKeys | None = None
    role: AwsRole | None = None
    anonymous: bool = False

    def __post_init__(self) -> None:
        named = (self.profile is not None) + (self.keys is not None) + self.anonymous
        if named > 1 or (self.anonymous and self.role is not None):
            raise ContractError(
                "found several ways to sign; expected one of auth.profile, auth.keys and "
                "auth.anonymous, and a role beside the first two only"
            )

    @property
    def scheme(self) -> str:
        """Return the name of the way, without any secret."""
        way = "profile" if self.profile else "keys" if self.keys else "chain"
        return "anonymous" if self.anonymous else f"{way}+role" if self.role else way

    def principal_bytes(self, environ: Mapping[str, str]) -> bytes | None:
        """Return what stays the same for as long as the principal does, None where none is sent.

        The id of a session's keys is of the hour, as its token is: there the profile, the role or
        STS tells who asks.

        Raises:
            ConfigurationError: a secret is missing or empty.
        """
        if self.anonymous:
            return None
        named = [self.scheme, self.profile, self.role and self.role.arn]
        if self.keys is not None and self.keys.session_token is None:
            named.append(self.keys.access_key_id.resolve(environ))
        return canonical_json(named)


@record
class AwsIdentity:
    """Asks STS who we are, before and after.

    Attributes:
        expect: the only principal this scan may be walked as: an ARN, a role without its session.
        endpoint_url: where STS answers; None for where the source does.
    """

    expect: str | None = None
    endpoint_url: str | None = None


@record
class AwsRefusal:
    """What an error code means at this operation, looked up before our own table.

    Attributes:
        code: the service's word, e.g. `Throttling`.
        means: what is done about it.
    """

    code: str
    means: Literal["wait", "retry", "refused", "expired", "consumed", "window", "rejected"]


@record
class DeclaredPaginator:
    """How an operation advances that botocore has no paginator for; names as in its models.

    Attributes:
        input_token: parameters that carry the continuation.
        output_token: members of the answer that hold it.
        result_key: members that hold the records.
        more_results: the member that says whether more follows.
        limit_key: the parameter that carries the page size.
    """

    input_token: tuple[str, ...] | str
    output_token: tuple[str, ...] | str
    result_key: tuple[str, ...] | str
    more_results: str | None = None
    limit_key: str | None = None


@record
class AwsSource(SourceFacts):
    """The facts of one operation.

    Attributes:
        service: as in botocore, e.g. `dynamodb`.
        operation: as boto3 calls it, e.g. `list_objects_v2`.
        region: region of the endpoint and of the signature; never taken from the surroundings,
            since another region is another population.
        endpoint_url: an S3-compatible store or an emulator; None for the region's own endpoint.
        params: filter and projection, sent with every request; bytes as base64.
        page_size: records of one page, sent as the operation's own parameter; None does not ask.
        records_at: where the records lie, JMESPath of names and `[]` alone, so that no filter
            leaves records out; needed where an operation lists several kinds.
        leaves_out: other kinds that are left out on purpose.
        record_field: the field that bare texts and numbers are kept as.
        records_omitted_when_empty: whether an answer without the list is an empty page; None for
            what the wire format says.
        flag_omitted_when_false: whether an answer without its more-results flag says false.
        binding: which of flag and token says the end, where the service documents that the other
            does not; `both` must agree.
        shows: values that every answer must show, by JMESPath, e.g. the account.
        paginator: how to advance where botocore has no paginator for the operation.
        identity: asks STS who we are; `null` where there is no STS.
        auth: how requests are signed.
        errors: what error codes mean at this operation.
    """

    OPERATION: ClassVar[tuple[str, ...]] = ("page_size", "auth")
    QUERY: ClassVar[tuple[str, ...]] = ("service", "operation", "region", "endpoint_url", "params")
    leaf_encoding: ClassVar[LeafEncoding] = "canonical-json/v1"

    protocol: Literal["aws"]
    service: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]*$")]
    operation: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")]
    region: Annotated[str, Field(pattern=r"^[a-z0-9-]+$")]
    endpoint_url: str | None = None
    params: Mapping[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    page_size: PositiveInt | None = None
    records_at: Annotated[str, Field(pattern=_RECORDS)] | None = None
    leaves_out: tuple[str, ...] = ()
    record_field: str | None = None
    records_omitted_when_empty: bool | None = None
    flag_omitted_when_false: bool = False
    binding: Literal["both", "more_results", "token"] = "both"
    shows: Mapping[Annotated[str, Field(pattern=_PLACE)], str | int | bool] = field(
        default_factory=dict[str, str | int | bool]
    )
    paginator: DeclaredPaginator | None = None
    identity: AwsIdentity | None = AwsIdentity()
    auth: AwsAuth | None = None
    errors: tuple[AwsRefusal, ...] = ()

    def __post_init__(self) -> None:
        if self.snapshot is not None or self.high_water_mark is not None:
            raise ContractError(
                "found snapshot or high_water_mark; expected neither: a paginated AWS operation "
                "pins nothing"
            )
        addresses = [self.endpoint_url, self.identity.endpoint_url if self.identity else None]
        for address in filter(None, addresses):
            _check_endpoint(address)

    @property
    def tool(self) -> str:
        """Return what is called."""
        return f"{self.service}:{self.operation}"

    def counter_in(self, token: str) -> str | None:
        """Return the parameter by which a continuation counts, None for none.

        A token's form is the service's own matter, so that one of digits alone may be an offset.
        """
        asked: dict[str, object] = json.loads(token)
        told = ((name, str(value)) for name, value in asked.items())
        return next((name for name, value in told if _counts(name, value)), None)


def _counts(name: str, value: str) -> bool:
    """Say whether a parameter is an offset or page by its name, or a token that may be one."""
    return counts_rows("offset" if name.lower().endswith("token") else name, value)


def _check_endpoint(address: str) -> None:
    """Refuse an endpoint that is no bare origin.

    Raises:
        ContractError: it holds a user, path or query, or is no URL.
    """
    expected = "expected scheme://host:port, and credentials under auth"
    try:
        origin_of(address)
    except ConfigurationError as error:
        raise ContractError(f"found an endpoint_url that is no URL; {expected}") from error
    url = httpx2.URL(address)
    if url.userinfo or url.query or url.fragment or url.path not in ("", "/"):
        raise ContractError(f"found an endpoint_url with more than an origin; {expected}")
    if url.scheme not in ("http", "https"):
        raise ContractError(f"found an endpoint_url of another scheme than http(s); {expected}")
