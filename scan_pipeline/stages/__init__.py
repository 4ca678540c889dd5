"""One module a stage, in pipeline order: enumerate, stage, reconcile, certify, unlock."""
