"""What the `aws` protocol rests on: facts, paginator models, values, errors and the client."""
