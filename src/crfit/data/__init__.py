"""Sequences as flat arrays with locked alphabets: built, checked, selected, recoded, saved."""

from crfit.data.dataset import Dataset

__all__ = ["Dataset"]
