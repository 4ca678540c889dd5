"""A help desk to walk: one function that answers, as a user's own fake server would be."""

import json

import httpx2

TICKETS = [[number, "open" if number % 3 else "closed"] for number in range(1, 12)]


def answer(request: httpx2.Request) -> httpx2.Response:
    """Answer a search: the rows after an id, how many are left after them, and the version."""
    asked = json.loads(request.content)
    if asked.get("as_of", "v7") != "v7":
        return httpx2.Response(410)
    after = [row for row in TICKETS if row[0] > asked["after"]]
    rows = after[: asked["limit"]]
    return httpx2.Response(
        200,
        json={
            "columns": ["id", "state"],
            "rows": rows,
            "left": len(after) - len(rows),
            "as_of": "v7",
        },
    )
