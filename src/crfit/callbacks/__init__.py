"""What looks on while a model is trained: progress, logs, held-out scores, early stopping, checkpoints."""

from __future__ import annotations

from crfit.callbacks.base import Callback
from crfit.callbacks.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from crfit.callbacks.held_out import DevScore, EarlyStopping
from crfit.callbacks.progress_bar import ProgressBar
from crfit.callbacks.records import JsonLines

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
