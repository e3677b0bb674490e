"""The training loop, its stopping rules and its records."""
