"""A trained model: what it knows, what it does with sequences, and its file."""

from crfit.model.model import Model, load

__all__ = ["Model", "load"]
