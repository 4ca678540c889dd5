"""A Model Context Protocol server as a source: connection, calls, content and paging."""
