"""Measurements. Nothing here is imported by the package, and no test depends on a time."""
