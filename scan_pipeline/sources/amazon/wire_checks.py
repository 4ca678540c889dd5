"""What an answer must be before botocore parses it, where botocore would misread it in silence.

A JSON body that is no JSON it takes for an empty answer, of a member that stands twice it keeps the
last, a text or object where a list goes it takes apart into letters or names; an XML element that
stands twice makes a flag false. Each would be an end, or a record, that nobody sent
(botocore/parsers.py, 1.44.8, read 2026-11-30).
"""

import xml.etree.ElementTree as ET  # the parser that botocore uses itself
from collections import Counter
from typing import Any, Final

from scan_pipeline.core.errors import ProtocolError
from scan_pipeline.sources.http.envelope import parse_body

JSON_PROTOCOLS: Final = frozenset({"json", "rest-json"})
XML_PROTOCOLS: Final = frozenset({"rest-xml", "query", "ec2"})


def check_body(body: bytes, *, answer: Any, protocol: str) -> None:
    """Refuse the body of a successful answer that is not one of its type.

    Args:
        body: as it came.
        answer: type of the operation's answers; None where they are empty.
        protocol: the service's wire protocol.

    Raises:
        ProtocolError: `body_unparsable` or `member_doubled`.
    """
    payload = None if answer is None else answer.serialization.get("payload")
    if answer is None or (payload and answer.members[payload].type_name != "structure"):
        return
    inner = answer.members[payload] if payload else answer
    if protocol in JSON_PROTOCOLS:
        around = parse_body(body)
        if not isinstance(around, dict):
            raise ProtocolError("body_unparsable", "the answer is no JSON object; expected one")
        check_containers(around, inner, at="the answer")
    elif protocol in XML_PROTOCOLS:
        _check_elements(body, inner)


def check_containers(value: Any, shape: Any, *, at: str) -> None:
    """Refuse a list, map or structure that is something else.

    Args:
        value: parsed JSON.
        shape: its type.
        at: where it stands, for messages.

    Raises:
        ProtocolError: `body_unparsable`.
    """
    if value is None or getattr(shape, "is_document_type", False):
        return
    expected = {"structure": dict, "map": dict, "list": list}.get(shape.type_name)
    if expected is None:
        return
    if not isinstance(value, expected):
        raise ProtocolError("body_unparsable", f"{at} is no {shape.type_name}; expected one")
    if shape.type_name == "structure":
        for name, member in shape.members.items():
            told = member.serialization.get("name", name)
            if told in value:
                check_containers(value[told], member, at=name)
    elif shape.type_name == "map":
        for each in value.values():
            check_containers(each, shape.value, at=f"what stands in {at}")
    else:
        for each in value:
            check_containers(each, shape.member, at=f"what stands in {at}")


def _check_elements(body: bytes, shape: Any) -> None:
    """Refuse an element beside the records that stands twice and is no list."""
    try:
        root = ET.fromstring(body)  # noqa: S314  # botocore parses the same bytes the same way
    except ET.ParseError:
        return  # botocore tells a cut answer from one to be asked for again
    wrapper = shape.serialization.get("resultWrapper")
    inner = next((each for each in root if _name(each) == wrapper), root) if wrapper else root
    once = {
        member.serialization.get("name", name)
        for name, member in shape.members.items()
        if not member.serialization.get("flattened")
    }
    for name, times in Counter(map(_name, inner)).items():
        if times > 1 and name in once:
            raise ProtocolError("member_doubled", f"{name} stands {times} times in the answer")


def _name(element: ET.Element) -> str:
    return element.tag.rpartition("}")[2]
