"""Erasing one record across generations: where it is named, and what is put in its place."""
