"""The reference engine in NumPy: complete, simple and slow; tests compare other engines with it."""
