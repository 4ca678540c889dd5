"""APIs of many shapes over the same records, in a few lines each."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import httpx2

Row = Mapping[str, Any]
Answer = tuple[Any, Mapping[str, str]]
Style = Callable[[Mapping[str, str], str, Sequence[Row]], Answer]
"""From parameters, address without query, and all records to a body and headers."""

SIZE = 10
"""Records of a page, where nobody asks for another number."""


def rows(number: int) -> list[dict[str, Any]]:
    return [
        {"name": f"thing {n % 7}", "id": f"t-{n}", "rank": n, "price": n + 0.5, "note": None}
        for n in range(1, number + 1)
    ]


class Api:
    """One API in memory; notes what it was asked."""

    def __init__(self, style: Style, records: Sequence[Row]) -> None:
        self.style, self.records = style, records
        self.asked: list[httpx2.Request] = []
        self.transport = httpx2.MockTransport(self._answer)

    def _answer(self, request: httpx2.Request) -> httpx2.Response:
        self.asked.append(request)
        url = str(request.url.copy_with(query=None))
        body, headers = self.style(dict(request.url.params), url, self.records)
        if isinstance(body, int):
            return httpx2.Response(body, json={"error": {"code": "refused"}})
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        return httpx2.Response(200, content=content, headers=dict(headers))


def cut(records: Sequence[Row], start: int, size: int = SIZE) -> tuple[list[Row], int | None]:
    """Return a page and where the next one starts, None after the last."""
    after = start + size
    return list(records[start:after]), after if after < len(records) else None


def link_header(params, url, records):
    page, after = cut(records, int(params.get("from", 0)))
    told = f'<{url}?from={after}>; rel="next", <{url}>; rel="first"'
    return page, {"link": told if after else f'<{url}>; rel="first"'}


def relative_link_header(params, url, records):
    page, after = cut(records, int(params.get("from", 0)))
    return page, {"link": f'</things?from={after}>; rel="next"'} if after else {}


def odata(params, url, records):
    page, after = cut(records, int(params.get("$skiptoken", 0)))
    body = {"@odata.context": "$metadata#Things", "@odata.count": len(records), "value": page}
    return {**body, **({"@odata.nextLink": f"{url}?$skiptoken={after}"} if after else {})}, {}


def django(params, url, records):
    number = int(params.get("page", 1))
    page, after = cut(records, (number - 1) * SIZE)
    following = f"{url}?page={number + 1}" if after else None
    return {"count": len(records), "next": following, "previous": None, "results": page}, {}


def hal(params, url, records):
    page, after = cut(records, int(params.get("from", 0)))
    links: dict[str, Any] = {"self": {"href": url}}
    links |= {"next": {"href": f"/things?from={after}"}} if after else {}
    return {"_links": links, "_embedded": {"things": page}}, {}


def json_api(params, url, records):
    page, after = cut(records, int(params.get("page[from]", 0)))
    link = f"{url}?page%5Bfrom%5D={after}" if after else None
    included = [{"type": "tag", "id": str(n)} for n in range(30)]
    return {"data": page, "included": included, "links": {"self": url, "next": link}}, {}


def aip(params, url, records):
    page, after = cut(records, int(params.get("pageToken", "at-0").partition("-")[2]))
    return {"things": page, **({"nextPageToken": f"at-{after}"} if after else {})}, {}


def snake_token(params, url, records):
    page, after = cut(records, int(params.get("page_token", "at-0").partition("-")[2]))
    return {"things": page, "next_page_token": f"at-{after}" if after else "", "total_size": 35}, {}


def slack(params, url, records):
    page, after = cut(records, int(params.get("cursor", "at-0").partition("-")[2]))
    told = {"next_cursor": f"at-{after}" if after else ""}
    return {"ok": True, "members": page, "response_metadata": told}, {}


def nested_after(params, url, records):
    page, after = cut(records, int(params.get("after", 0)))
    return {"results": page, **({"paging": {"next": {"after": str(after)}}} if after else {})}, {}


def cursor_sent_as_after(params, url, records):
    page, after = cut(records, int(params.get("after", 0)))
    body = {"items": page, "meta": {"next_cursor": str(after) if after else None}}
    return {**body, "has_more": after is not None}, {}


def opaque_next(params, url, records):
    page, after = cut(records, int(params.get("cursor", 0)))
    return {"rows": page, "next": f"{after}" if after else None, "truncated": False}, {}


def next_page_number(params, url, records):
    number = int(params.get("page", 1))
    page, after = cut(records, (number - 1) * SIZE)
    return {"items": page, "page": number, "next_page": number + 1 if after else None}, {}


def has_more(params, url, records):
    names = [each["id"] for each in records]
    start = names.index(params["starting_after"]) + 1 if "starting_after" in params else 0
    page, after = cut(records, start)
    return {"object": "list", "data": page, "has_more": after is not None}, {}


def offset_in_body(params, url, records):
    start = int(params.get("offset", 0))
    page, _ = cut(records, start)
    return {"offset": start, "limit": SIZE, "total": len(records), "items": page}, {}


def offset_in_address(params, url, records):
    return cut(records, int(params["offset"]), int(params["limit"]))[0], {}


def numbered(params, url, records):
    number = int(params.get("page", 1))
    page, _ = cut(records, (number - 1) * SIZE)
    about = {"page": number, "per_page": SIZE, "total_pages": -(-len(records) // SIZE)}
    return {"things": page, "pagination": about}, {}


def spring(params, url, records):
    number = int(params.get("page", 0))
    page, after = cut(records, number * SIZE)
    return {"content": page, "number": number, "last": after is None, "totalElements": 35}, {}


def bare_numbered(params, url, records):
    return cut(records, (int(params.get("page", 1)) - 1) * SIZE)[0], {"x-total-count": "35"}


def bare(params, url, records):
    return list(records[:SIZE]), {}


def whole_on_one_page(params, url, records):
    return {"items": list(records), "next_cursor": None}, {}


def catalog(params, url, records):
    page, after = cut(records, int(params.get("last", 0)))
    names = [each["id"] for each in page]
    return {"repositories": names}, {
        "link": f'</v2/_catalog?last={after}>; rel="next"'
    } if after else {}


def versioned(*, read: bool) -> Style:
    """Pages of one version, which the source reads as a parameter, or not."""

    def style(params, url, records):
        if read and params.get("version", "v1") != "v1":
            return 400, {}
        page, after = cut(records, int(params.get("cursor", 0)))
        return {"version": "v1", "items": page, "next_cursor": str(after) if after else None}, {}

    return style


def elsewhere(params, url, records):
    page, after = cut(records, int(params.get("from", 0)))
    return {"items": page, "next": f"https://elsewhere.test/things?from={after}"}, {}
