"""A search over penalties and options by held-out scores, as a few tours of warm starts.

    candidates with equal options    one objective per fold, made once
    their penalties                  a tour: from the strongest on, always to the nearest in (log l2, log l1),
                                     each optimum from the previous one (`crfit.tuning.path`)
    folds                            one after the other; a fold is trained on its own sequences alone
    halving                          all candidates on the first fold, to a gap of 3 %; after every fold the
                                     best third stays, at least three; those are then trained to the
                                     tolerance on all folds, from the best weights of each

Trainers other than `auto` train each candidate from zero. The result depends on the seed, not on the number
of threads or on interruptions: a state is a position in this order with the weights there.

A score is the mean over the folds. Besides the best candidate stands the one-standard-error choice: the
strongest penalty whose score is at most one standard error (bootstrap over sequences) below the best.
"""

from __future__ import annotations

import io
import json
import math
import os
import time
import zipfile
import zlib
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from crfit import trainers
from crfit.checks import check_number, check_whole_number
from crfit.data import Dataset
from crfit.data.class_weights import weigh_classes
from crfit.data.dataset import DTYPES, recode
from crfit.data.tensor_file import unwritable
from crfit.engines import EngineObjective, make_inference
from crfit.errors import DataError, OptionError
from crfit.features.feature_set import Features
from crfit.features.terms import Feature
from crfit.files import replacing
from crfit.fit import FitOptions, check_dev, choose_scheme, fit_dataset, make_problem, prepare_items
from crfit.layout.constraints import Constraints, make_constraints
from crfit.model import Model
from crfit.racing.problems import spelled
from crfit.trainers import Auto
from crfit.training.interrupts import InterruptGuard, hurry_when
from crfit.tuning.folder import DATA
from crfit.tuning.path import Continuation, PathPoint
from crfit.tuning.scoring import HIGH, LOW, Counts, bootstrap, count, score
from crfit.vectors import Vector, to_numpy

#: A fold: ids of the sequences to train on and to score.
Fold: TypeAlias = tuple[NDArray[np.int64], NDArray[np.int64]]
#: The option that makes the attributes, and its value.
Variant: TypeAlias = tuple[str, Any]
#: Data and held-out data by variant.
Variants: TypeAlias = Mapping[Variant, tuple[Dataset, Dataset | None]]
#: Scores a model, with the weights before zeros were dropped, on held-out sequences; larger is better.
Scorer: TypeAlias = Callable[[Model, Vector, NDArray[np.int64]], float]

#: Relative gap while candidates are dropped, and of everything else.
LOOSE, TOL = 3e-2, 1e-3
#: One in so many candidates stays, at least so many.
FACTOR, FEWEST = 3, 3
#: The state is written at most every so many seconds.
SAVE_EVERY = 5.0
_VERSION = 2


@dataclass(frozen=True)
class Candidate:
    """Penalties and other options, by their names in `crfit.fit.FitOptions`."""

    l2: float
    l1: float = 0.0
    options: tuple[tuple[str, Any], ...] = ()

    @property
    def params(self) -> dict[str, Any]:
        """Everything by name."""
        return {"l2": self.l2, "l1": self.l1, **dict(self.options)}

    @property
    def data(self) -> Variant | None:
        """The variant of the data, None for the data itself."""
        return next((one for one in self.options if one[0] in DATA), None)

    @property
    def fitted(self) -> dict[str, Any]:
        """The other options of a fit."""
        return {name: value for name, value in self.options if name not in DATA}

    @property
    def name(self) -> str:
        """As a user would type it, penalties rounded."""
        params = {key: value for key, value in self.params.items() if key != "l1" or value}
        return " ".join(f"{key}={shown(value)}" for key, value in params.items())


def shown(value: Any) -> str:
    """An option's value as a user would type it."""
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, Feature | Features):
        return ", ".join(Features(value).text.splitlines())
    plain = isinstance(value, str | float | int | bool | os.PathLike | None)
    return spelled(value) if plain else trainers.name_of(value)


@dataclass
class Trial:
    """What is known of a candidate: per fold its score, counts by sequence, weights and effort."""

    candidate: Candidate
    scores: dict[int, float] = field(default_factory=dict)
    counts: dict[int, Counts] = field(default_factory=dict)
    n_nonzero: int = 0
    passes: float = 0.0
    seconds: float = 0.0
    dropped: str = ""  # after which stage


@dataclass
class Search:
    """The state and outcome of a search; see `tune`."""

    trials: list[Trial]
    metric: str
    n_folds: int
    seed: int
    interrupted: bool = False
    seconds: float = 0.0
    _draws: NDArray[np.float64] | None = None

    @property
    def finished(self) -> list[int]:
        """Candidates that were not dropped, with a score on every fold."""
        n = self.n_folds
        return [i for i, trial in enumerate(self.trials) if len(trial.scores) == n and not trial.dropped]

    @property
    def means(self) -> NDArray[np.float64]:
        """Mean score of each candidate over its folds, NaN without any."""
        return np.array([np.mean([*t.scores.values()]) if t.scores else np.nan for t in self.trials])

    def draws(self) -> NDArray[np.float64] | None:
        """Bootstrap scores of the finished candidates, [n_finished, draws]; None without counts."""
        done = [self.trials[i] for i in self.finished]
        if self._draws is None and done and done[0].counts:
            folds = [[trial.counts[fold] for trial in done] for fold in range(self.n_folds)]
            self._draws = bootstrap(self.metric, folds, self.seed)
        return self._draws

    def errors(self) -> NDArray[np.float64]:
        """Standard error of each score, NaN if unknown."""
        found, draws = np.full(len(self.trials), np.nan), self.draws()
        for k, i in enumerate(self.finished):
            if draws is not None:
                found[i] = draws[k].std(ddof=1)
            elif self.n_folds > 1:
                found[i] = np.std([*self.trials[i].scores.values()], ddof=1) / math.sqrt(self.n_folds)
        return found

    def intervals(self) -> NDArray[np.float64]:
        """95 % interval of each score, [n_candidates, 2], NaN if unknown."""
        found, draws, errors = np.full((len(self.trials), 2), np.nan), self.draws(), self.errors()
        for k, i in enumerate(self.finished):
            if draws is not None:
                found[i] = np.percentile(draws[k], [LOW, HIGH])
            else:
                found[i] = self.means[i] + 1.96 * errors[i] * np.array([-1.0, 1.0])
        return found

    @property
    def best(self) -> int:
        """The finished candidate with the highest score, the first of several."""
        done = self.finished
        if not done:
            raise DataError("no candidate was finished: resume the search")
        means = self.means
        return max(done, key=lambda i: (means[i], -i))

    @property
    def one_standard_error(self) -> int:
        """The strongest penalty within one standard error of the best, among those with its options."""
        best, means, error = self.best, self.means, self.errors()[self.best]
        if not error > 0.0:
            return best
        options = self.trials[best].candidate.options
        near = [
            i
            for i in self.finished
            if means[i] >= means[best] - error and self.trials[i].candidate.options == options
        ]
        return max(near, key=lambda i: (*_strength(self.trials[i].candidate), -i))

    def table(self) -> list[dict[str, Any]]:
        """A row per candidate: parameters, score, interval, folds, weights, effort."""
        rows, means, errors, intervals = [], self.means, self.errors(), self.intervals()
        for i, trial in enumerate(self.trials):
            params = trial.candidate.params
            row = {name: shown(value) if name == "trainer" else value for name, value in params.items()}
            row |= {"score": _known(means[i]), "error": _known(errors[i])}
            row |= {"low": _known(intervals[i][0]), "high": _known(intervals[i][1])}
            row |= {f"fold_{fold}": trial.scores.get(fold) for fold in range(self.n_folds)}
            row |= {"n_nonzero": trial.n_nonzero, "passes": trial.passes, "seconds": trial.seconds}
            rows.append(row | {"dropped": trial.dropped})
        return rows


def _known(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def _strength(candidate: Candidate) -> tuple[float, float]:
    return candidate.l1, candidate.l2


def candidates_of(grid: Mapping[str, Sequence[Any]]) -> list[Candidate]:
    """All combinations of the values, in their order; ``l2`` is required."""
    found: list[dict[str, Any]] = [{}]
    for name, values in grid.items():
        found = [{**one, name: value} for one in found for value in values]
    return list(dict.fromkeys(make_candidate(one) for one in found))


def make_candidate(params: Mapping[str, Any]) -> Candidate:
    """A candidate from options by name, without penalties if its trainer has none."""
    others = {name: value for name, value in params.items() if name not in ("l2", "l1")}
    known = {*FitOptions.__dataclass_fields__, *DATA}
    for name, value in others.items():
        if name not in known:
            raise OptionError("candidates", name, "there is no such option; l2, l1, weights, order, ...")
        if not isinstance(value, Hashable):
            raise OptionError("candidates", name, f"values of type {type(value).__name__} cannot be tried")
    pair: list[float] = []
    if "trainer" in others:
        trainer = others["trainer"] = trainers.resolve(others["trainer"])
        if trainers.penalty_for(trainer, None) == 0.0:
            params = {"l2": 0.0, "l1": 0.0}
    for name, default in (("l2", 1.0), ("l1", 0.0)):
        value = params.get(name, default)
        check_number(name, value, at_least=0)
        if not math.isfinite(value):
            raise OptionError(name, value, "give a finite number, 0 or more")
        pair.append(float(value))
    return Candidate(pair[0], pair[1], tuple(others.items()))


def make_folds(dataset: Dataset, cv: int, seed: int) -> list[Fold]:
    """Random folds of about equal size; those of items have every class in equal shares."""
    check_whole_number("cv", cv, at_least=2)
    n = dataset.n_sequences
    if cv > n:
        raise OptionError("cv", cv, f"there are {n} sequences: give at most as many folds")
    order = np.random.default_rng(seed).permutation(n)
    if dataset.one_position and dataset.labels is not None:
        order = order[np.argsort(dataset.labels[order], kind="stable")]
        parts = [order[k::cv] for k in range(cv)]
    else:
        parts = np.array_split(order, cv)
    ids = np.arange(n)
    return [(np.delete(ids, np.sort(part)), np.sort(part).astype(np.int64)) for part in parts]


def tour(candidates: Sequence[Candidate], start: tuple[float, float] | None = None) -> list[int]:
    """Order of warm starts: from `start` (l2, l1) or the strongest penalties on, to the nearest one left."""
    if not candidates:
        return []
    places = np.array([[_level(c.l2), _level(c.l1)] for c in candidates])
    left = list(range(len(candidates)))
    at = max(left, key=lambda i: (*_strength(candidates[i]), -i))
    if start is not None:
        here = np.array([_level(penalty) for penalty in start])
        at = min(left, key=lambda i: (float(np.sum((places[i] - here) ** 2)), i))
    order = [at]
    left.remove(at)
    while left:
        at = min(left, key=lambda i: (float(np.sum((places[i] - places[order[-1]]) ** 2)), i))
        order.append(at)
        left.remove(at)
    return order


def _level(penalty: float) -> float:
    return math.log(max(penalty, 1e-4))


@dataclass(frozen=True)
class Stage:
    """One fold for the candidates that are left."""

    fold: int
    tol: float


@dataclass(frozen=True)
class Step:
    """Progress of a search."""

    search: Search
    trial: Trial
    fold: int
    done: int
    planned: int
    seconds: float  # so far
    left: float  # estimate


def tune(
    dataset: Dataset,
    candidates: Sequence[Candidate],
    options: FitOptions,
    *,
    folds: Sequence[Fold] | None = None,
    dev: Dataset | None = None,
    metric: str = "f1",
    scorer: Scorer | None = None,
    tol: float = TOL,
    halving: bool = True,
    refine: int = 0,
    state: str | os.PathLike[str] | None = None,
    resume: bool = False,
    callback: Callable[[Step], None] | None = None,
    variants: Variants | None = None,
) -> Search:
    """Score the candidates on `folds`, or on `dev` after training on everything.

    `variants` has the data, and the held-out data, by `Candidate.data`: the same sequences with attributes of
    another template or of other features.

    `scorer` replaces the metric; it gets a model, its weights and the ids of held-out sequences of `dataset`.
    `refine` rounds add penalties around the best. The search is saved to the file `state`; `resume` reads it.
    """
    if not candidates:
        raise OptionError("candidates", 0, "give at least one")
    check_whole_number("refine", refine, at_least=0)
    if not isinstance(halving, bool | np.bool_):
        raise OptionError("halving", halving, "give True or False")
    folds = whole_or(folds, dataset, dev)
    run = Run(dataset, list(candidates), options, folds, dev, metric, scorer, tol, halving, state, variants)
    if resume:
        run.load()
    with InterruptGuard() as guard:
        run.everything(refine, callback, lambda: guard.interrupted)
    return run.search


def whole_or(folds: Sequence[Fold] | None, dataset: Dataset, dev: Dataset | None) -> list[Fold]:
    """The folds, or with held-out data everything to train on and all of it to score."""
    check_dev(dev)
    if dev is not None:
        return [(np.arange(dataset.n_sequences), np.arange(dev.n_sequences))]
    if not folds:
        raise OptionError("cv", folds, "give folds, or held-out data")
    return list(folds)


def check_variants(candidates: Sequence[Candidate], dataset: Dataset, variants: Variants) -> Variants:
    """The variants; OptionError if a candidate has none, or one of other sequences."""
    for variant in dict.fromkeys(candidate.data for candidate in candidates):
        if variant is None:
            continue
        if variant not in variants:
            raise OptionError("candidates", variant[0], "there is no data made with one of its values")
        if variants[variant][0].n_sequences != dataset.n_sequences:
            raise OptionError("candidates", variant[0], "the data of one of its values has other sequences")
    return variants


class Run:
    """A search as it goes: position, continuation and state file."""

    def __init__(
        self,
        dataset: Dataset,
        candidates: list[Candidate],
        options: FitOptions,
        folds: list[Fold],
        dev: Dataset | None,
        metric: str,
        scorer: Scorer | None,
        tol: float,
        halving: bool,
        path: str | os.PathLike[str] | None,
        variants: Variants | None = None,
    ) -> None:
        self.dataset, self.options, self.folds, self.dev = dataset, options, folds, dev
        self.metric, self.scorer, self.tol, self.halving = metric, scorer, tol, halving
        self.path = None if path is None else Path(path)
        self.search = Search([Trial(c) for c in candidates], metric, len(folds), options.seed)
        self.n_given = len(candidates)
        self.done = 0  # fits so far
        self.skip = 0  # fits that the state has
        self.kept: dict[str, Any] = {}  # state of the continuation after them
        self.starts: dict[tuple[int, int], dict[str, Any]] = {}  # best weights by fold and options
        self.saved = self.begin = time.perf_counter()
        self.before = 0.0  # seconds of the runs before
        self.durations: list[float] = []
        self.survivors: list[list[int]] = []  # after each stage that halves
        self.added: list[
            list[tuple[float, float, int]]
        ] = []  # per round; the last: a candidate with its options
        self.variants = check_variants(candidates, dataset, variants or {})
        self.halves = False  # the round that is going on
        self.stage_begin = 0  # fits before the stage

    # --- the order of fits ---------------------------------------------------------------------------------

    def everything(
        self, refine: int, callback: Callable[[Step], None] | None, interrupted: Callable[[], bool]
    ) -> None:
        """Fit stage by stage. Sets: the search."""
        decisions, rounds = list(self.survivors), list(self.added)
        self.survivors, self.added = [], []
        known = iter(range(self.n_given, len(self.search.trials)))
        for round_ in range(refine + 1):
            alive = list(range(self.n_given))
            if round_ > 0:
                alive = [next(known) for _ in rounds[0]] if rounds else self._add(self._around_best())
                self.added += [rounds.pop(0)] if rounds else []
            self.halves = self.halving and round_ == 0 and len(alive) > 2 * FEWEST
            stages = self._stages()
            for k, stage in enumerate(stages):
                if not self._stage(stage, alive, stages[k:], callback, interrupted):
                    self.search.interrupted = True
                    return
                if self.halves and k + 1 < len(stages):
                    alive = decisions.pop(0) if decisions else self._best_of(alive)
                    self.survivors.append(alive)
        self.search.seconds = self._seconds()
        self._save()

    def _stages(self) -> list[Stage]:
        plan, n = [Stage(fold, self.tol) for fold in range(len(self.folds))], self.n_given
        loose: list[Stage] = []
        while self.halves and len(loose) < len(plan) and n > FEWEST:
            loose.append(replace(plan[len(loose)], tol=max(LOOSE, self.tol)))
            n = _n_kept(n)
        return [*loose, *plan[::-1]] if loose else plan

    def _best_of(self, alive: list[int]) -> list[int]:
        """The candidates that stay."""
        means = self.search.means
        kept = sorted(alive, key=lambda i: (-means[i], i))[: _n_kept(len(alive))]
        for i in set(alive) - set(kept):
            self.search.trials[i].dropped = f"after {len(self.search.trials[i].scores)} of {len(self.folds)}"
        return sorted(kept)

    def _add(self, new: list[tuple[float, float, int]]) -> list[int]:
        """Add candidates. Sets: trials."""
        trials = self.search.trials
        n = len(trials)
        self.added.append(new)
        for l2, l1, like in new:
            trials.append(Trial(replace(trials[like].candidate, l2=l2, l1=l1)))
        return list(range(n, len(trials)))

    def _around_best(self) -> list[tuple[float, float, int]]:
        """Penalties between the best candidate and its neighbours, or beyond the edge."""
        trials, found = self.search.trials, []
        k = self.search.best
        best = trials[k].candidate
        known = {trial.candidate for trial in trials}
        for name in ("l2", "l1"):
            here = getattr(best, name)
            if here <= 0.0:
                continue
            others = sorted({getattr(c, name) for c in known if c.options == best.options} - {0.0})
            at = others.index(here)
            factor = others[1] / others[0] if len(others) > 1 else 4.0
            below = others[at - 1] if at > 0 else here / factor**2
            above = others[at + 1] if at + 1 < len(others) else here * factor**2
            for other in (below, above):
                value = float(f"{math.sqrt(here * other):.6g}")
                new = replace(best, l2=value) if name == "l2" else replace(best, l1=value)
                if new not in known:
                    known.add(new)
                    found.append((new.l2, new.l1, k))
        return found

    def _stage(
        self,
        stage: Stage,
        alive: list[int],
        stages: list[Stage],
        callback: Callable[[Step], None] | None,
        interrupted: Callable[[], bool],
    ) -> bool:
        """Fit the candidates that are alive on one fold; whether it was finished."""
        trials = self.search.trials
        groups: dict[tuple[tuple[str, Any], ...], list[int]] = {}
        self.stage_begin = self.done
        for i in alive:
            groups.setdefault(trials[i].candidate.options, []).append(i)
        for options, members in groups.items():
            key = stage.fold, next(i for i, one in enumerate(trials) if one.candidate.options == options)
            start = self.starts.get(key)
            if start is not None and int(start["stage"]) == self.stage_begin:
                start = None  # of this stage, which is resumed
            near = None if start is None else (float(start["l2"]), float(start["l1"]))
            order = [members[k] for k in tour([trials[i].candidate for i in members], near)]
            if self.done + len(order) <= self.skip:
                self.done += len(order)
                continue
            first = max(0, self.skip - self.done)
            with Fits(self, stage, trials[order[0]].candidate, self.kept if first else start) as fits:
                self.done += first
                best = max((trials[i].scores[stage.fold] for i in order[:first]), default=-math.inf)
                for i in order[first:]:
                    begin = time.perf_counter()
                    with hurry_when(interrupted):
                        outcome = fits.fit(trials[i].candidate)
                    if interrupted():
                        self.search.seconds = self._seconds()
                        self._save()
                        return False
                    self._note(trials[i], stage, outcome, time.perf_counter() - begin)
                    self.kept = fits.state()
                    if outcome.score > best and self.kept and start is None:
                        best = outcome.score
                        chosen = {name: self.kept[name] for name in ("w", "l2", "l1", "age", "reach", "gap")}
                        self.starts[key] = {**chosen, "stage": self.stage_begin}
                    if time.perf_counter() - self.saved > SAVE_EVERY:
                        self._save()
                    if callback is not None:
                        callback(self._step(trials[i], stage, alive, stages))
        return True

    def _note(self, trial: Trial, stage: Stage, outcome: Outcome, seconds: float) -> None:
        trial.scores[stage.fold] = outcome.score
        if outcome.counts is not None:
            trial.counts[stage.fold] = outcome.counts
        trial.n_nonzero, trial.passes = outcome.n_nonzero, trial.passes + outcome.passes
        trial.seconds += seconds
        self.durations.append(seconds)
        self.done += 1
        self.search._draws = None

    def _step(self, trial: Trial, stage: Stage, alive: list[int], stages: list[Stage]) -> Step:
        n = len(alive)
        # A fold that was fitted loosely has scores already, so count the fits of this stage instead.
        planned = self.stage_begin + n
        for _ in stages[1:]:
            n = _n_kept(n) if self.halves else n
            planned += n
        each = float(np.mean(self.durations[-20:]))
        return Step(
            self.search,
            trial,
            stage.fold,
            self.done,
            planned,
            self._seconds(),
            each * (planned - self.done),
        )

    def _seconds(self) -> float:
        return self.before + time.perf_counter() - self.begin

    # --- the state file ------------------------------------------------------------------------------------

    def _fingerprint(self) -> dict[str, Any]:
        sums = []
        for data in ((self.dataset, self.dev), *self.variants.values()):
            for one in data:
                parts = [getattr(one, name, None) for name in DTYPES]
                sums += [
                    zlib.crc32(np.ascontiguousarray(part).tobytes()) for part in parts if part is not None
                ]
        sums += [zlib.crc32(part.tobytes()) for fold in self.folds for part in fold]
        given = [self.search.trials[i].candidate for i in range(self.n_given)]
        names = [f"{candidate.name} {candidate.l2!r} {candidate.l1!r}" for candidate in given]
        options = {k: repr(v) for k, v in asdict(self.options).items() if k not in ("n_threads", "dev_every")}
        return {
            "version": _VERSION,
            "sums": sums,
            "candidates": names,
            "metric": self.metric,
            "tol": self.tol,
            "halving": self.halving,
            "options": options,
        }

    def _save(self) -> None:
        """Write the state, if it has a file."""
        self.saved = time.perf_counter()
        if self.path is None:
            return
        arrays = {f"kept/{name}": np.asarray(value) for name, value in self.kept.items()}
        for (fold, i), start in self.starts.items():
            arrays |= {f"start/{fold}/{i}/{name}": np.asarray(value) for name, value in start.items()}
        records = []
        for i, trial in enumerate(self.search.trials):
            names = ("n_nonzero", "passes", "seconds", "dropped")
            record = {name: getattr(trial, name) for name in names}
            records.append(record | {"scores": {str(f): x for f, x in trial.scores.items()}})
            arrays |= {f"counts/{i}/{fold}": table for fold, table in trial.counts.items()}
        header = {"problem": self._fingerprint(), "done": self.done, "trials": records}
        header |= {"seconds": self._seconds(), "survivors": self.survivors, "added": self.added}
        arrays["header"] = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
        buffer = io.BytesIO()
        np.savez(buffer, **arrays)  # type: ignore[arg-type]
        try:
            with replacing(self.path) as unfinished:
                unfinished.write_bytes(buffer.getvalue())
        except OSError as error:
            raise OSError(f"{self.path}: {unwritable(error)}") from error

    def load(self) -> None:
        """Read the state, if there is one. Sets: the search and the fits to skip."""
        if self.path is None or not self.path.exists():
            return
        try:
            with np.load(self.path, allow_pickle=False) as file:
                arrays = {name: file[name] for name in file.files}
            header = json.loads(arrays.pop("header").tobytes())
            problem, done, records = header["problem"], int(header["done"]), header["trials"]
        except (ValueError, KeyError, OSError, TypeError, EOFError, zipfile.BadZipFile, zlib.error) as error:
            raise DataError(
                "is not the state of a search: delete it, or name another folder", file=str(self.path)
            ) from error
        if problem != json.loads(json.dumps(self._fingerprint())):
            remedy = "the search there has other data, candidates or options: give those, or another folder"
            raise OptionError("resume", str(self.path), remedy)
        trials = self.search.trials
        self.kept = {name[5:]: value for name, value in arrays.items() if name.startswith("kept/")}
        for path, value in arrays.items():
            if path.startswith("start/"):
                _, fold, i, name = path.split("/")
                self.starts.setdefault((int(fold), int(i)), {})[name] = value
        self.skip, self.before = done, float(header["seconds"])
        self.survivors = [list(map(int, kept)) for kept in header["survivors"]]
        for new in header["added"]:
            self._add([(float(l2), float(l1), int(like)) for l2, l1, like in new])
        for i, record in enumerate(records):
            self._restore(trials[i], record, i, arrays)

    def _restore(self, trial: Trial, record: Mapping[str, Any], i: int, arrays: Mapping[str, Any]) -> None:
        trial.scores = {int(fold): float(x) for fold, x in record["scores"].items()}
        trial.counts = {
            fold: arrays[f"counts/{i}/{fold}"] for fold in trial.scores if f"counts/{i}/{fold}" in arrays
        }
        trial.n_nonzero, trial.passes = int(record["n_nonzero"]), float(record["passes"])
        trial.seconds, trial.dropped = float(record["seconds"]), str(record["dropped"])


def _n_kept(n: int) -> int:
    return min(n, max(FEWEST, math.ceil(n / FACTOR)))


# --- the fits of one fold and one set of options -----------------------------------------------------------


@dataclass(frozen=True)
class Outcome:
    """Score and effort of a candidate on a fold."""

    score: float
    counts: Counts | None
    n_nonzero: int
    passes: float


class Fits:
    """Fits of candidates that differ only in penalties, on one fold."""

    def __init__(self, run: Run, stage: Stage, like: Candidate, kept: Mapping[str, Any] | None) -> None:
        self.run, self.metric = run, run.metric
        options = replace(run.options, **like.fitted)
        data, dev = (run.dataset, run.dev) if like.data is None else run.variants[like.data]
        self.options = replace(options, stop=options.stop, l2=like.l2, l1=like.l1)
        train, self.test = run.folds[stage.fold]
        self.train = data if dev is not None else data.subset(train)
        self.held = data.subset(self.test) if dev is None else dev
        self.optima: Continuation | None = None
        if follows(data, self.options):
            self._prepare(stage, kept)

    def _prepare(self, stage: Stage, kept: Mapping[str, Any] | None) -> None:
        """Make the objective. Sets: objective, held, constraints, optima."""
        train, options = weigh_classes(self.train, self.options.class_weight), self.options
        if options.task == "classify":
            train, held, options = prepare_items(train, self.held, options)
            self.held = held if held is not None else self.held
        scheme = choose_scheme(train, options)
        self.scheme, names = scheme, train.label_alphabet.strings()
        self.constraints: Constraints | None = None
        if scheme is not None:
            self.constraints = make_constraints(names, scheme=scheme)
        self.objective: EngineObjective = make_problem(train, options)
        self.held = recode(self.held, self.objective.dataset)
        self.optima = Continuation(self.objective, tol=stage.tol, seed=options.seed)
        if kept is not None:
            self.optima.resume(kept)

    def __enter__(self) -> Fits:
        return self

    def __exit__(self, *_: object) -> None:
        if self.optima is not None:
            self.optima.__exit__()

    def state(self) -> dict[str, Any]:
        """What a resumed search needs, copied."""
        if self.optima is None:
            return {}
        return {name: np.array(value) for name, value in self.optima.state().items()}

    def fit(self, candidate: Candidate) -> Outcome:
        """Train and score one candidate."""
        if self.optima is None:
            return self._fit_alone(candidate)
        return self.outcome(self.optima.solve(candidate.l2, candidate.l1))

    def outcome(self, point: PathPoint) -> Outcome:
        """Score the optimum of this fold."""
        if self.run.scorer is not None:
            known: dict[str, Any] = {"min_count": int(self.options.min_count)}
            if self.options.task == "classify":
                known |= {"task": "classify", "classes": "multinomial"}
            if self.scheme is not None:
                known["constraints"] = {"scheme": self.scheme}
            model = Model.from_training(self.objective, point.weights, options=known)
            return Outcome(
                self.run.scorer(model, point.weights, self.test), None, point.n_nonzero, point.passes
            )
        inference = make_inference(
            self.held,
            self.objective.layout,
            to_numpy(point.weights),
            device=self.objective.device,
            n_threads=self.options.n_threads,
            constraints=self.constraints,
        )
        table = count(self.metric, self.held, inference.viterbi()[0])
        return Outcome(float(score(self.metric, table.sum(axis=0))), table, point.n_nonzero, point.passes)

    def _fit_alone(self, candidate: Candidate) -> Outcome:
        fit = fit_dataset(self.train, replace(self.options, l2=candidate.l2, l1=candidate.l1))
        n_nonzero = int(np.count_nonzero(fit.result.weights))
        if self.run.scorer is not None:
            return Outcome(
                self.run.scorer(fit.model, fit.result.weights, self.test), None, n_nonzero, fit.result.passes
            )
        held = recode(self.held, fit.model)
        found = fit.model.tag_dataset(held, n_threads=self.options.n_threads)
        table = count(self.metric, held, found)
        return Outcome(float(score(self.metric, table.sum(axis=0))), table, n_nonzero, fit.result.passes)


def follows(dataset: Dataset, options: FitOptions) -> bool:
    """Whether optima of these options follow one another; otherwise every candidate is trained from zero."""
    several = options.task == "classify" and options.classes == "one_vs_rest" and dataset.n_labels > 2
    return isinstance(options.trainer, Auto) and dataset.label_sets is None and not several
