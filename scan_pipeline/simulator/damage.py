"""Damage to bytes: of single records, of bodies, and of the connection under them."""

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from scan_pipeline.simulator.answer_faults import (
    BodyTruncated,
    ConnectionCut,
    ContentTypeWrong,
    Delayed,
    ErrorEnvelope,
    InvalidUtf8,
    LoginPage,
    ResponseLost,
)
from scan_pipeline.simulator.answers import Answer, envelope
from scan_pipeline.simulator.faults import Fault, RecordDamaged

LOGIN_PAGE: Final = (
    b"<!doctype html><html><head><title>Sign in</title></head><body>"
    b'<form method="post" action="/login"><input name="user"><input name="password" '
    b'type="password"><button>Sign in</button></form></body></html>'
)

_STATUS: Final = re.compile(rb'"status":"([^"]*)"')
_KEY: Final = re.compile(rb'"(?:customer|case)_id":"[^"]*",')


def damaged_record(raw: bytes, *, number: int, faults: Iterable[Fault]) -> bytes:
    """Return a record after the damage that is meant for its number."""
    for fault in faults:
        if isinstance(fault, RecordDamaged) and fault.number == number:
            raw = _damaged(raw, fault)
    return raw


def damaged_answer(answer: Answer, *, faults: Iterable[Fault]) -> Answer:
    """Return an answer after what happens to its body and its connection, in scripted order."""
    for fault in faults:
        match fault:
            case BodyTruncated(keep_bytes=keep):
                half = len(answer.body) // 2
                answer = replace(answer, body=answer.body[: half if keep is None else keep])
            case ErrorEnvelope():
                body = envelope("internal", "the page could not be read")
                answer = replace(answer, body=body)
            case LoginPage():
                answer = replace(answer, body=LOGIN_PAGE, content_type="text/html; charset=utf-8")
            case InvalidUtf8():
                answer = replace(answer, body=answer.body.replace(b'":"', b'":"\xff', 1))
            case ContentTypeWrong(content_type=content_type):
                answer = replace(answer, content_type=content_type)
            case Delayed(seconds=seconds):
                answer = replace(answer, delay_s=seconds)
            case ConnectionCut(after_bytes=sent):
                half = len(answer.body) // 2
                answer = replace(answer, wire="cut", sent_bytes=half if sent is None else sent)
            case ResponseLost():
                answer = replace(answer, wire="lost")
            case _:
                pass
    return answer


def _damaged(raw: bytes, fault: RecordDamaged) -> bytes:
    found = _STATUS.search(raw)
    status = found[1] if found else b""
    other = b'"status":"%s"' % (b"active" if status == b"closed" else b"closed")
    match fault.damage:
        case "field_missing":
            return re.sub(rb'"status":"[^"]*",', b"", raw, count=1)
        case "type_changed":
            return _STATUS.sub(b'"status":7', raw, count=1)
        case "null_field":
            return _STATUS.sub(b'"status":null', raw, count=1)
        case "field_unknown":
            return _STATUS.sub(rb'"unannounced":1,\g<0>', raw, count=1)
        case "member_doubled":
            return _STATUS.sub(rb"\g<0>," + other, raw, count=1)
        case "value_changed":
            return _STATUS.sub(other, raw, count=1)
        case "key_missing":
            return _KEY.sub(b"", raw, count=1)
