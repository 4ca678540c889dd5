"""Alerts: once per change of a scan's condition, to webhooks and mailboxes."""
