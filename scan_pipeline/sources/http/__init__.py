"""What every HTTP protocol shares: the request, one transport, the envelope and what it reports."""
