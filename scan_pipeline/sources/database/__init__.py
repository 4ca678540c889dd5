"""A relational database as a source: tables, checks before the first page, statements, types."""
