"""The readers' face: queries, pages and conclusions over opened collections, for agents."""
