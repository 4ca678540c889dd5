"""Rounds of changes: where each begins, which hold together, and what they come to."""
