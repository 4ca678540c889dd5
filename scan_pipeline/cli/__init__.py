"""The command line: each command is one query, JSON on request, a documented exit code."""
