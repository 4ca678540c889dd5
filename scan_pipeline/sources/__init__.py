"""How to advance: one module a documented protocol, over one transport."""
