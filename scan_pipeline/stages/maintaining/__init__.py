"""What `maintain` and `erase` do to sealed generations, and how they say so."""
