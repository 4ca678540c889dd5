"""A scan of free text: the registry's support cases, and two analyses by models."""
