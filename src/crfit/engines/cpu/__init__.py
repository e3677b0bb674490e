"""The native engine: the C++ core behind every ability of `crfit.engines`."""
