"""A project that runs: what `init` and the scaffolding write, and the keys they begin."""
