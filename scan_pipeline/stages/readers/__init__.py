"""What readers are given of opened collections: conditions, files, comparisons, proofs."""
