"""Data, trainers that behave badly, and shortcuts for the tests of races."""

import math
from dataclasses import dataclass

import numpy as np
import pytest

import crfit
from crfit import pictures as picture_style
from crfit.demo import recipe_data
from crfit.racing import charts, grid, page
from crfit.trainers import Step, option, register
from crfit.trainers.registry import _registry
from crfit.training.stopping import StopReason

LIMIT = crfit.Stop(max_iter=12)


@pytest.fixture(scope="session")
def data():
    X, y = recipe_data(60, seed=3)
    return crfit.Dataset.from_sequences(X, y)


@pytest.fixture(scope="session")
def dev():
    X, y = recipe_data(25, seed=4)
    return crfit.Dataset.from_sequences(X, y)


@pytest.fixture
def by_passes(monkeypatch):
    """Looks on the grid of passes alone, so that two races see the same."""
    monkeypatch.setattr(grid, "FIRST_SECONDS", math.inf)


@pytest.fixture
def no_pictures(monkeypatch):
    """What `RaceResult.write` makes with other people's libraries takes seconds and has tests of its own."""
    monkeypatch.setattr(charts, "draw_race", lambda result: None)
    monkeypatch.setattr(picture_style, "save_picture", lambda figure, path: None)
    monkeypatch.setattr(page, "write_page", lambda result, path: None)


@pytest.fixture
def odd_trainers():
    """Trainers that report little, diverge or fail; they leave the registry afterwards.

    ``silent`` says that it knows a duality gap, so that a run with that rule alone needs no objective.
    """
    before = dict(_registry)

    @register("silent", needs={"value_and_grad", "subset"}, handles={"l2", "gap"})
    @dataclass(frozen=True)
    class Silent:
        """Gradient steps on a part of the data, without a word about the objective."""

        parts: int = option(4, help="parts of a pass", at_least=1)
        seed: int = option(0, help="order of the sequences")

        def steps(self, objective, w, state=None):
            step = 0 if state is None else int(state["step"])
            while True:
                order = np.random.default_rng([self.seed, step // self.parts]).permutation(
                    objective.n_sequences
                )
                part = np.array_split(order, self.parts)[step % self.parts]
                _, g = objective.value_and_grad(w, subset=part)
                w -= 0.05 / (1 + 0.1 * step) * g
                step += 1
                yield Step(w, state={"step": step})

    @register("exploding", handles={"l2"})
    @dataclass(frozen=True)
    class Exploding:
        """Ever larger weights, without a word about the objective."""

        def steps(self, objective, w, state=None):
            w += 1.0
            while True:
                objective.value(w)
                with np.errstate(over="ignore"):
                    w *= 1e30
                yield Step(w)

    @register("raising", handles={"l2"})
    @dataclass(frozen=True)
    class Raising:
        """Fails in its third step."""

        error: str = option("RuntimeError", help="what it raises")

        def steps(self, objective, w, state=None):
            yield Step(w, objective.value(w))
            yield Step(w, objective.value(w))
            raise {"RuntimeError": RuntimeError, "MemoryError": MemoryError}[self.error]("no more")

    @register("needy", needs={"oracle"})
    @dataclass(frozen=True)
    class Needy:
        """Needs what no objective has."""

        def steps(self, objective, w, state=None):
            yield Step(w, stop=StopReason.CONVERGED)

    yield
    _registry.clear()
    _registry.update(before)


def seen(curve):
    """Everything about the points of an entry but the seconds."""
    return [
        (point.iteration, point.passes, point.objective, point.grad_inf, tuple(sorted(point.scores.items())))
        for point in curve.points
    ]
