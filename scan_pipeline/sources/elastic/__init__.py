"""What the `elasticsearch` protocol is made of: facts, answers, points in time, nodes."""
