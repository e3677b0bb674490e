"""Trained models: weights and alphabets, tagging, and the model file."""

from crfit.model.distribution import Confidence, Span
from crfit.model.model import Model, load

__all__ = ["Confidence", "Model", "Span", "load"]
