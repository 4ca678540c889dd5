"""OpenTelemetry of nights and readers; off unless a variable says so, and then never imported."""
