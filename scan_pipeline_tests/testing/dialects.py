"""Scan files over HTTP in every shape that facts can describe, for the kit to play."""

from collections.abc import Mapping
from typing import Any

from scan_pipeline.core.scan import Scan
from scan_pipeline.sources.catalogue import parse_scan

URL = "https://api.test/things"
LIVE = {"key": ["id"], "consistency": "live"}
PINNED = {"key": ["id"], "consistency": "snapshot"}
COUNT = {"at": "total", "means": "total", "exactness": "exact"}
TOKEN = {"at": "next", "send_as": "cursor", "ends_when": [{"is": "null"}]}


def scan(source: Mapping[str, Any], contract: Mapping[str, Any] = LIVE) -> Scan:
    """Read a scan file of things."""
    url = {} if "url" in source or source.get("provider") == "github_graphql" else {"url": URL}
    return parse_scan({"name": "things", "source": {**url, **source}, "contract": dict(contract)})


PAGE_TOKEN = {"protocol": "page_token", "records_at": "items", "next": TOKEN}

PAGE_TOKEN_PINNED = scan(
    {**PAGE_TOKEN, "count": COUNT, "snapshot": {"at": "as.of", "send_as": "as_of"}}, PINNED
)

DIALECTS: Mapping[str, Scan] = {
    "token_pinned": PAGE_TOKEN_PINNED,
    "token_up_to_a_mark": scan(
        {
            **PAGE_TOKEN,
            "identity": {"url": f"{URL}/me", "at": "user.name", "tenant_at": "user.tenant"},
            "high_water_mark": {
                "url": f"{URL}/newest",
                "at": "newest.id",
                "send_as": "up_to",
                "field": "number",
            },
            "count": {**COUNT, "means": "remaining"},
        },
        {"key": ["id"], "consistency": "high_water_mark"},
    ),
    "token_under_a_change_token": scan(
        {
            **PAGE_TOKEN,
            "change_token": {"url": f"{URL}/state", "header": "etag"},
            "count": COUNT,
        },
        {"key": ["id"], "consistency": "change_token"},
    ),
    "token_and_flag": scan(
        {
            **PAGE_TOKEN,
            "params": {"state": "open"},
            "headers": {"x-api-version": "3"},
            "next": {
                **TOKEN,
                "ends_when": [
                    {"is": "empty_string"},
                    {"is": "absent"},
                    {"at": "more", "is": "false"},
                ],
            },
        }
    ),
    "token_in_bodies": scan(
        {
            **PAGE_TOKEN,
            "method": "POST",
            "send_in": "body",
            "body": {"query": "things", "variables": {"state": "open"}},
            "page_size": {"send_as": "variables.first", "value": 100},
            "next": {**TOKEN, "send_as": "variables.after"},
            "snapshot": {"at": "version", "send_as": "variables.version"},
            "count": COUNT,
        },
        PINNED,
    ),
    "token_in_headers_over_lines": scan(
        {
            "protocol": "page_token",
            "records_at": "$",
            "records_format": "json_lines",
            "next": {
                "header": "x-next",
                "send_as": "x-cursor",
                "send_in": "header",
                "ends_when": [{"is": "absent"}],
            },
            "count": {"header": "x-total", "means": "total", "exactness": "exact"},
        }
    ),
    "token_over_csv": scan(
        {
            "protocol": "page_token",
            "records_at": "$",
            "records_format": "csv",
            "next": {"header": "x-next", "send_as": "cursor", "ends_when": [{"is": "absent"}]},
        }
    ),
    "token_until_an_empty_page": scan(
        {**PAGE_TOKEN, "next": {**TOKEN, "ends_when": [{"is": "empty_page"}]}}
    ),
    "link_pinned": scan(
        {
            "protocol": "next_link",
            "params": {"filter": "state eq open"},
            "records_at": "value",
            "next": {"at": ["@odata.nextLink"], "ends_when": [{"is": "absent"}]},
            "snapshot": {"at": "version", "send_as": "version"},
            "count": {"at": ["@odata.count"], "means": "total", "exactness": "exact"},
        },
        PINNED,
    ),
    "offset_until_the_total": scan(
        {
            "protocol": "offset",
            "records_at": "data.items",
            "page_size": {"send_as": "limit", "value": 100},
            "count": COUNT,
            "next": {
                "send_as": "offset",
                "counts": "rows",
                "first": 0,
                "ends_when": [{"is": "total_reached"}, {"at": "more", "is": "false"}],
            },
        }
    ),
    "page_numbers": scan(
        {
            "protocol": "offset",
            "records_at": "items",
            "page_size": {"send_as": "per_page", "value": 100},
            "next": {
                "send_as": "page",
                "counts": "pages",
                "first": 1,
                "ends_when": [{"at": "pages", "is": "total_pages"}],
            },
        }
    ),
    "offset_until_an_empty_page": scan(
        {
            "protocol": "offset",
            "records_at": "items",
            "page_size": {"send_as": "limit", "value": 100},
            "next": {
                "send_as": "offset",
                "counts": "rows",
                "first": 0,
                "ends_when": [{"is": "empty_page"}],
            },
        }
    ),
    "last_key_of_two_fields": scan(
        {
            "protocol": "last_key",
            "records_at": "items",
            "next": {
                "after": [
                    {"field": "made.at", "send_as": "after_made"},
                    {"field": "id", "send_as": "after_id"},
                ],
                "ends_when": [{"at": "more", "is": "false"}],
            },
        }
    ),
}

GRAPHQL_ENDS = [{"is": "null"}, {"at": "data.x.pageInfo.hasNextPage", "is": "false"}]

PROVIDERS: Mapping[str, Scan] = {
    "aip_158": scan({"provider": "aip_158", "records_at": "items"}),
    "datasette": scan({"provider": "datasette"}),
    "docker_registry": scan(
        {"provider": "docker_registry"}, {"key": ["name"], "consistency": "live"}
    ),
    "github_graphql": scan(
        {
            "provider": "github_graphql",
            "records_at": "data.x.nodes",
            "body": {"query": "query($first: Int, $after: String) { x { nodes { id } } }"},
            "next": {"at": "data.x.pageInfo.endCursor", "ends_when": GRAPHQL_ENDS},
        }
    ),
    "github_rest": scan({"provider": "github_rest", "records_at": "$"}),
    "graph": scan({"provider": "graph"}),
    "odata": scan({"provider": "odata"}),
    "okta": scan({"provider": "okta"}),
    "slack": scan({"provider": "slack", "records_at": "channels"}),
    "stripe": scan({"provider": "stripe"}),
}
"""What a scan must add beside its address, by provider over HTTP."""

ELSEWHERE: Mapping[str, str] = {
    "aws_dynamodb": "test_aws_bench.py: a fake service behind botocore",
    "aws_iam": "test_aws_bench.py: a fake service behind botocore",
    "aws_s3": "test_aws_bench.py: a fake service behind botocore",
    "elasticsearch": "test_search_bench.py: the simulated engine",
    "opensearch": "test_search_bench.py: the simulated engine",
    "kubernetes": "test_kubernetes_bench.py: the simulated cluster",
    "graph_delta": "stages/syncing: rounds of the registry; the kit plays no feed of changes",
    "etcd": "test_benches.py: its protocol is played by a scripted etcd",
}
"""Providers from whose facts no server can be made, and where the kit exercises them."""
