"""What a bundle holds and how it is checked: archive, manifest, ledger, leaves, proofs."""
