"""Callbacks and scores that tests of several callbacks use."""

from crfit.training.callbacks import Callback


class Scripted:
    """Scores from a list, with a record of the weights that were scored."""

    def __init__(self, values):
        self.values, self.seen = list(values), []

    def __call__(self, weights):
        self.seen.append(weights.copy())
        return {"f1": self.values[min(len(self.seen), len(self.values)) - 1], "accuracy": 50.0}


class Crash(Callback):
    """Ends the run by an exception after some iterations, as a power cut would."""

    def __init__(self, iteration):
        self.iteration = iteration

    def on_step(self, run, progress):
        if progress.iteration == self.iteration:
            raise RuntimeError("power cut")
