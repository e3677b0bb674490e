"""The CPU engine: the C++ core behind the interfaces of `crfit.engines`."""
