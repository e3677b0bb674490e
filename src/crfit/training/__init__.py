"""The training loop, when it stops, what it records."""
