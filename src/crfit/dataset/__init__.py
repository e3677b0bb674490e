"""Sequences as flat arrays with locked alphabets: built, checked, selected, recoded, saved."""

from crfit.dataset.dataset import Dataset

__all__ = ["Dataset"]
