"""The NumPy engine: plain, complete, never optimised; what the others are tested against."""
