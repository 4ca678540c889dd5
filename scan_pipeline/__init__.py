"""A partial result must be impossible to mistake for a complete one."""
