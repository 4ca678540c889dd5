"""A registry with a known population, scripted mutations and faults, over real ASGI."""
