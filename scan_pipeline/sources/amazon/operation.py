"""An operation held against botocore's model of its service, before anything is asked."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from scan_pipeline.core.canonical import digest_of
from scan_pipeline.core.errors import ContractError
from scan_pipeline.core.value import record
from scan_pipeline.sources.amazon import advancing, pages
from scan_pipeline.sources.amazon.advancing import Paginator
from scan_pipeline.sources.amazon.facts import AwsSource
from scan_pipeline.sources.amazon.pages import Reading
from scan_pipeline.sources.amazon.values import sendable

if TYPE_CHECKING:
    from scan_pipeline.sources.amazon.client import AwsClient

SET_BY_BOTOCORE: Final = "EncodingType"
"""Parameter of S3 that botocore sets itself, and only then decodes the keys of the answer."""


@record
class Operation:
    """An operation that pages.

    Attributes:
        paginator: how it advances.
        reading: how its answers are read.
        input: type of its parameters.
        output: type of its answers.
        params: what every request carries.
        fingerprint: digest of all that must be equal on every request.
        parser: what parses its answers, with its version.
    """

    paginator: Paginator
    reading: Reading
    input: Any
    output: Any
    params: Mapping[str, Any]
    fingerprint: bytes
    parser: str


def checked(facts: AwsSource, client: "AwsClient") -> Operation:
    """Hold what a scan file declares against the models.

    Raises:
        ContractError: the operation is none, does not page, or does not take these parameters.
    """
    name = client.operations.get(facts.operation)
    if name is None:
        raise ContractError(
            f"found operation {facts.operation!r}, which {facts.service} does not have; "
            "expected its name as boto3 spells it, e.g. list_users"
        )
    model = client.model.operation_model(name)
    paginator = _paginator(facts, client.paginator_model(name))
    _check_params(facts, paginator)
    params = sendable(facts.params, model.input_shape, at="params")
    if facts.page_size is not None and paginator.limit_key is not None:
        params |= {paginator.limit_key: facts.page_size}
    reading = pages.reading(
        facts,
        paginator=paginator,
        answer=model.output_shape,
        protocol=client.model.resolved_protocol,
    )
    return Operation(
        paginator=paginator,
        reading=reading,
        input=model.input_shape,
        output=model.output_shape,
        params=params,
        fingerprint=_fingerprint(facts, client.endpoint, paginator, reading),
        parser=client.parser,
    )


def _paginator(facts: AwsSource, model: Mapping[str, Any] | None) -> Paginator:
    if model is not None and facts.paginator is not None:
        raise ContractError(
            f"found paginator, and botocore has one for {facts.tool}; expected one of the two"
        )
    if model is not None:
        return advancing.from_model(model)
    if facts.paginator is None:
        raise ContractError(
            f"botocore has no paginator for {facts.tool}; expected an operation that pages, or "
            "paginator with input_token, output_token and result_key after its documentation"
        )
    return advancing.declared(facts.paginator)


def _check_params(facts: AwsSource, paginator: Paginator) -> None:
    ours = {*paginator.inputs, paginator.limit_key, SET_BY_BOTOCORE}.intersection(facts.params)
    if ours:
        raise ContractError(
            f"found {min(map(str, ours))} in params, which is set for each page; expected filters "
            "alone, and page_size beside them"
        )
    if facts.page_size is not None and paginator.limit_key is None:
        raise ContractError(f"found page_size, which {facts.tool} does not take; expected none")


def _fingerprint(facts: AwsSource, endpoint: str, paginator: Paginator, reading: Reading) -> bytes:
    """Digest what must be equal on every request: all but token and page size."""
    return digest_of(
        {
            "call": [facts.service, facts.operation, facts.region, endpoint],
            "params": facts.params,
            "auth": None if facts.auth is None else facts.auth.scheme,
            "paginator": paginator.__dict__,
            "reading": reading.__dict__,
        }
    )
