"""Values as text that loses nothing, on their way out to a file or a screen."""

from datetime import datetime
from decimal import Decimal
from typing import Any

import msgspec

# Decimals as numbers with all their digits: a text would be another type than the source's.
EXACT_JSON = msgspec.json.Encoder(decimal_format="number")


def exact_text(value: Any) -> str:
    """Return a value as text; nothing at all is the empty text."""
    match value:
        case None:
            return ""
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case int() | float() | Decimal():
            return str(value)
        case datetime():
            return value.isoformat()
        case _:
            return EXACT_JSON.encode(value).decode()
