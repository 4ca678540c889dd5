"""One look at a source against its scan file, before any walk."""
