"""Datasets: sequences as flat arrays with locked alphabets, and everything that creates them."""

from crfit.data.dataset import Dataset

__all__ = ["Dataset"]
