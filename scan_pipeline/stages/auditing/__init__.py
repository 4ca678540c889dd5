"""What an audit computes again, and how it tells."""
