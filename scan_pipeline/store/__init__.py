"""The lake: what is written, how it is read back, and what guards it."""
