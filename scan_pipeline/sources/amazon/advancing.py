"""How an operation advances: what its paginator model says, applied to one answer.

The models are those of botocore (`paginators-1.json`, one a service): input_token, output_token,
more_results, limit_key, result_key, the last four as JMESPath. Its own loop is not used: it stops
at an empty or missing token whatever the flag says, compares a token with the one before it alone,
and takes a flag that is not there for one that says false (botocore/paginate.py, 1.44.8).

Here the flag and the token must agree, and what is neither an end nor a way on is an error:

- with a flag: `true` needs a token, `false` must not have one, and a missing flag is neither;
- without: a token that is absent, null or the empty text is the end, and nothing else is. The key
  that a DynamoDB scan evaluated last is such a token: "the only way to know when you have reached
  the end of the result set is when LastEvaluatedKey is empty" (API reference, Scan, read
  2026-11-30), so that an empty page goes on.

A token that the model takes from the records (`NextMarker || Contents[-1].Key`) is there on the
last page too; only the part that the service itself writes can disagree with the flag.
"""

import json
from collections.abc import Mapping
from typing import Any, Final

import jmespath
from jmespath.exceptions import JMESPathError

from scan_pipeline.core.canonical import canonical_json
from scan_pipeline.core.errors import ContractError, ProtocolError
from scan_pipeline.core.page import Continuation, End, Next
from scan_pipeline.core.value import record
from scan_pipeline.sources.amazon.facts import AwsSource, DeclaredPaginator
from scan_pipeline.sources.amazon.values import plain, sendable

FROM_RECORDS: Final = "[-1]"
"""What in an output token's expression says that it is taken from the last record."""


@record
class Paginator:
    """How one operation advances.

    Attributes:
        inputs: parameters that take the tokens.
        outputs: JMESPath of the tokens, in the same order.
        results: JMESPath of what the pages are made of.
        more_results: JMESPath of the flag, None where there is none.
        limit_key: parameter that takes the size of a page, None where there is none.
    """

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    results: tuple[str, ...]
    more_results: str | None
    limit_key: str | None


def from_model(model: Mapping[str, Any]) -> Paginator:
    """Read a paginator as it stands in a model of botocore's."""
    return Paginator(
        inputs=_several(model["input_token"]),
        outputs=_several(model["output_token"]),
        results=_several(model["result_key"]),
        more_results=model.get("more_results"),
        limit_key=model.get("limit_key"),
    )


def declared(facts: DeclaredPaginator) -> Paginator:
    """Read a paginator that a scan file declares."""
    found = from_model(facts.__dict__)
    if len(found.inputs) != len(found.outputs):
        raise ContractError(
            f"found {len(found.inputs)} input tokens and {len(found.outputs)} output tokens in "
            "paginator; expected as many of one as of the other"
        )
    return found


def search(expression: str, around: Any) -> Any:
    """Look a JMESPath up.

    Raises:
        ContractError: it is none.
    """
    try:
        return jmespath.search(expression, around)
    except JMESPathError as error:
        raise ContractError(f"found {expression!r}, which is no JMESPath: {error}") from error


def continuation(
    parsed: Mapping[str, Any], *, paginator: Paginator, facts: AwsSource
) -> Continuation:
    """Say what follows an answer.

    Args:
        parsed: the answer as botocore parsed it.
        paginator: how the operation advances.
        facts: what the scan file declares.

    Raises:
        ProtocolError: `continuation_missing`, `continuation_invalid` or `end_signals_disagree`.
    """
    tokens = [search(each, parsed) for each in paginator.outputs]
    flag = None if paginator.more_results is None else _flag(parsed, paginator.more_results, facts)
    if flag is None or facts.binding == "token":
        return _next(paginator, tokens) if _is_there(tokens[0]) else _end(tokens[0])
    if not flag:
        told = [search(_own_part(each), parsed) for each in paginator.outputs if _own_part(each)]
        if facts.binding == "both" and any(map(_is_there, told)):
            raise _disagree(
                paginator, "says that nothing follows, and a token is there all the same"
            )
        return End(signal="false")
    if not _is_there(tokens[0]):
        raise _disagree(paginator, "says that more follows, and there is no token to ask with")
    return _next(paginator, tokens)


def asked_with(token: str, shape: Any) -> dict[str, Any]:
    """Return a continuation as the parameters of a request.

    Raises:
        ProtocolError: `continuation_invalid`, the operation does not take it.
    """
    try:
        return sendable(json.loads(token), shape, at="token")
    except ContractError as error:
        raise ProtocolError("continuation_invalid", str(error)) from error


def _flag(parsed: Mapping[str, Any], at: str, facts: AwsSource) -> bool:
    flag = search(at, parsed)
    if flag is None:
        if facts.flag_omitted_when_false:
            return False
        raise ProtocolError(
            "continuation_missing",
            f"the answer has no {at}; expected true or false there",
        )
    if not isinstance(flag, bool):
        raise ProtocolError("continuation_invalid", f"{at} is neither true nor false")
    return flag


def _next(paginator: Paginator, tokens: list[Any]) -> Next:
    named = {
        name: plain(token)
        for name, token in zip(paginator.inputs, tokens, strict=True)
        if _is_there(token)
    }
    return Next(token=canonical_json(named).decode())


def _end(token: Any) -> End:
    return End(signal="absent" if token is None else "empty_string")


def _is_there(token: Any) -> bool:
    """Say whether a token is one: a number may be 0, and a key has attributes.

    Raises:
        ProtocolError: `continuation_invalid`, it is neither a token nor none.
    """
    if token is None or token == "":  # a 0 or an empty key is no end
        return False
    whole = isinstance(token, int) and not isinstance(token, bool)
    if isinstance(token, str) or whole or (isinstance(token, dict) and token):
        return True
    raise ProtocolError(
        "continuation_invalid", "found a token that is no text, number or key with attributes"
    )


def _own_part(output: str) -> str:
    """Return the part of an output token that is not taken from the records; empty for none."""
    parts = [each.strip() for each in output.split("||")]
    return " || ".join(each for each in parts if FROM_RECORDS not in each)


def _disagree(paginator: Paginator, what: str) -> ProtocolError:
    return ProtocolError("end_signals_disagree", f"{paginator.more_results} {what}")


def _several(named: Any) -> tuple[str, ...]:
    return (named,) if isinstance(named, str) else tuple(named)
