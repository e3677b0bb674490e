"""Trained models: weights and alphabets, tagging, and the model file."""

from crfit.model.model import Model, load

__all__ = ["Model", "load"]
