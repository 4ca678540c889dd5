"""From the bytes of a page to typed rows: keys, schema, types, exact values."""
