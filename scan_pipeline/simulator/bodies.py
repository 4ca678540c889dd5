"""The body of a page: records spliced in as they are, around them what the page says of itself."""

from scan_pipeline.simulator.answer_faults import MemberDoubled
from scan_pipeline.simulator.answers import compact
from scan_pipeline.simulator.pages import PageContent


def page_body(content: PageContent, *, doubled: MemberDoubled | None = None) -> bytes:
    """Write a page as JSON.

    Args:
        content: what it says; the bytes of its records are not touched.
        doubled: writes one member a second time, empty.
    """
    items = b'"items":[' + b",".join(content.items) + b"]"
    if doubled is not None and doubled.member == "items":
        items += b',"items":[]'
    page = b'"returned_count":%d' % content.returned_count
    if content.cursor_told:
        page += b',"next_cursor":' + compact(content.next_cursor)
    if doubled is not None and doubled.member == "next_cursor":
        page += b',"next_cursor":null'
    page += b',"is_complete":' + compact(content.is_complete)
    collection: dict[str, object] = {"snapshot_id": content.snapshot_id}
    if content.expected_count is not None:
        collection["expected_count"] = content.expected_count
    collection["high_water_mark"] = content.high_water_mark
    return b'{%s,"page":{%s},"collection":%s}' % (items, page, compact(collection))
