"""Options by name to a fit, as the command line and the estimators read them; histories to compare."""

from dataclasses import replace

from crfit import fit, trainers


def fit_dataset(data, *, trainer="auto", seed=0, state=None, **given) -> fit.Fit:
    """`crfit.fit.fit_dataset` with the options of `FitOptions` and its own, all by name."""
    how = ("dev", "callbacks", "template", "input_format")
    own = {name: given.pop(name) for name in how if name in given}
    chosen = trainers.resolve(trainer, state=state, seed=seed)
    return fit.fit_dataset(data, fit.FitOptions(trainer=chosen, seed=seed, **given), state=state, **own)


def without_time(history):
    """Steps as they were but for the seconds."""
    return [replace(progress, seconds=0.0) for progress in history]
