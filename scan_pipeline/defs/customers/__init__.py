"""The sample scan: the registry's customers, and the audit of their migration."""
