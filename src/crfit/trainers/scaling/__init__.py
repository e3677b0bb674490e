"""Iterative scaling, plain and accelerated: GIS, IIS, FIS."""
