"""The account of one generation for a reviewer: data first, then a page or a packet of it."""
