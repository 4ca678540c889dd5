"""Sources that answer as a case says, and note what a right client would not have asked."""

import gzip
import json
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import httpx2

Step = Mapping[str, Any]


class Script(httpx2.BaseTransport):
    """A scripted source.

    Attributes:
        asked: address of every request.
        wrong: requests that a right client does not send.
    """

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.wrong: list[str] = []

    @property
    @abstractmethod
    def left(self) -> int:
        """Return how many answers were never asked for."""

    @abstractmethod
    def step(self, request: httpx2.Request) -> Step | None:
        """Return the answer to a request, None where a right client does not send it."""

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        """Answer one request."""
        self.asked.append(str(request.url))
        step = self.step(request)
        if step is None:
            self.wrong.append(f"{request.method} {request.url}")
            return httpx2.Response(400, json={"error": "not what a right client sends"})
        if step.get("transport") == "read_timeout":
            raise httpx2.ReadTimeout("", request=request)
        return response_of(step)


class InOrder(Script):
    """Answers one after another; each says what its request must hold.

    Args:
        steps: the answers, with `request` as the parameters that must be sent.
        continuation: parameters that must be absent where a request does not name them.
    """

    def __init__(self, steps: Sequence[Step], *, continuation: Sequence[str] = ()) -> None:
        super().__init__()
        self._steps = [each for each in steps if "request" in each]
        self._continuation = continuation

    @property
    def left(self) -> int:
        """Return how many answers were never asked for."""
        return len(self._steps)

    def step(self, request: httpx2.Request) -> Step | None:
        """Return the next answer, if this is the request it belongs to."""
        if not self._steps:
            return None
        expected = dict(self._steps[0]["request"])
        auth = expected.pop("auth", None)
        if auth is not None and request.headers.get("authorization") != f"Bearer {auth}":
            return None
        sent = sent_in(request)
        wanted = {name: str(value) for name, value in expected.items()}
        missing = {name for name, value in wanted.items() if sent.get(name) != value}
        added = {name for name in self._continuation if name in sent and name not in wanted}
        return None if missing or added else self._steps.pop(0)


def sent_in(request: httpx2.Request) -> dict[str, str]:
    """Return what a request asks for: in its address, or in the body where AWS has it."""
    if "x-amz-target" not in request.headers:
        return dict(request.url.params)
    return {name: str(value) for name, value in json.loads(request.content).items()}


class Refreshable(InOrder):
    """Answers one after another, and hands out a token of its own to each who asks: t1, t2, ...

    Attributes:
        tokens: how many it has handed out.
    """

    TOKEN_URL = "https://login.test/token"

    def __init__(self, steps: Sequence[Step], *, continuation: Sequence[str] = ()) -> None:
        super().__init__(steps, continuation=continuation)
        self.tokens = 0

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        """Answer one request, or hand out a token."""
        if str(request.url) != self.TOKEN_URL:
            return super().handle_request(request)
        self.tokens += 1
        return httpx2.Response(
            200, json={"access_token": f"t{self.tokens}", "token_type": "Bearer"}
        )


class BySelector(Script):
    """Answers by what a request holds; an answer may be given a number of times only."""

    def __init__(self, pages: Sequence[Step]) -> None:
        super().__init__()
        self._pages = [dict(page) for page in pages]
        self._given = [0] * len(pages)

    @property
    def left(self) -> int:
        """Return how many answers were never asked for."""
        return self._given.count(0)

    def step(self, request: httpx2.Request) -> Step | None:
        """Return the first answer that this request selects."""
        for number, page in enumerate(self._pages):
            used_up = "times" in page and self._given[number] >= page["times"]
            if not used_up and _selects(page["when"], request):
                self._given[number] += 1
                return page
        return None


class ClusterBySelector(BySelector):
    """A cluster before Kubernetes 1.28, which cannot tell who asks."""

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        """Answer one request; the question who asks is no part of a case."""
        return _unknown_review(request) or super().handle_request(request)


class ClusterInOrder(InOrder):
    """The same, with answers in their order."""

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        """Answer one request; the question who asks is no part of a case."""
        return _unknown_review(request) or super().handle_request(request)


def as_lists(steps: Sequence[Step], *, kind: str, api_version: str) -> list[Step]:
    """Return answers with what every list carries and the cases leave out: kind and version."""
    around = {"apiVersion": api_version, "kind": kind}
    return [
        {**each, "body": {**around, **each["body"]}} if each["status"] == 200 else each
        for each in steps
    ]


def _unknown_review(request: httpx2.Request) -> httpx2.Response | None:
    if not request.url.path.endswith("/selfsubjectreviews"):
        return None
    return httpx2.Response(404, json={"kind": "Status", "reason": "NotFound", "code": 404})


def _selects(when: Mapping[str, Any], request: httpx2.Request) -> bool:
    sent = dict(request.url.params)
    for name, value in when.items():
        if name == "url":
            if str(request.url) != value:
                return False
        elif value is None:
            if name in sent:
                return False
        elif sent.get(name) != str(value):
            return False
    return True


def response_of(step: Step) -> httpx2.Response:
    """Return an answer as a case writes it down."""
    headers = dict(step["headers"])
    if "raw_gzip_members" in step:
        raw = b"".join(
            gzip.compress("".join(f"{line}\n" for line in lines).encode())
            for lines in step["raw_gzip_members"]
        )
        return httpx2.Response(step["status"], headers=headers, stream=httpx2.ByteStream(raw))
    raw = step.get("raw") or step.get("raw_body")
    if raw is None:
        body = step["body"]
        raw = body if isinstance(body, str) else json.dumps(body)
    return httpx2.Response(step["status"], headers=headers, content=raw.encode())
