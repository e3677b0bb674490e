"""Callbacks of a run: progress, logs, held-out scores, early stopping, checkpoints."""

from crfit.training.callbacks.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from crfit.training.callbacks.held_out import DevScore, EarlyStopping
from crfit.training.callbacks.json_lines import JsonLines
from crfit.training.callbacks.progress_bar import ProgressBar
from crfit.training.records import Callback

__all__ = [
    "Callback",
    "Checkpoint",
    "DevScore",
    "EarlyStopping",
    "JsonLines",
    "ProgressBar",
    "load_checkpoint",
    "save_checkpoint",
]
