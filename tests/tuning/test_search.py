"""Searches: scores equal to separate trainings, halving, resume, intervals, folds."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crfit import Dataset, Stop
from crfit.demo import recipe_data
from crfit.errors import DataError, OptionError
from crfit.evaluation import evaluate
from crfit.evaluation.scores import evaluate_ids
from crfit.fit import FitOptions, fit_dataset
from crfit.tuning import search as searching
from crfit.tuning.scoring import bootstrap, count, score
from crfit.tuning.search import Candidate, candidates_of, make_folds, tour, tune

OPTIONS = FitOptions(n_threads=1)
GRID = candidates_of({"l2": [3.0, 1.0, 0.3, 0.1], "l1": [0.0, 0.3]})


@pytest.fixture(scope="module")
def dataset() -> Dataset:
    return Dataset.from_sequences(*recipe_data(120, seed=5))


@pytest.fixture(scope="module")
def folds(dataset):
    return make_folds(dataset, 3, 0)


def test_scores_are_those_of_separate_trainings(dataset, folds):
    found = tune(dataset, GRID, OPTIONS, folds=folds, tol=1e-7, halving=False)
    for trial in found.trials[:3]:
        for fold, (train, test) in enumerate(folds):
            options = FitOptions(
                n_threads=1, l2=trial.candidate.l2, l1=trial.candidate.l1, stop=Stop(tol=1e-7)
            )
            model = fit_dataset(dataset.subset(train), options).model
            assert trial.scores[fold] == pytest.approx(model.evaluate(dataset.subset(test)).f1, abs=1e-9)
    assert found.best == int(np.argmax(found.means))


def test_options_are_candidates_too(dataset, folds):
    grid = candidates_of({"l2": [1.0], "weights": ["observed", "all"], "min_count": [0, 2], "order": [1, 2]})
    found = tune(dataset, grid, OPTIONS, folds=folds[:1], tol=1e-7, halving=False)
    train, test = folds[0]
    for trial in found.trials:
        options = FitOptions(n_threads=1, l2=1.0, stop=Stop(tol=1e-7), **dict(trial.candidate.options))
        model = fit_dataset(dataset.subset(train), options).model
        assert trial.scores[0] == pytest.approx(model.evaluate(dataset.subset(test)).f1, abs=1e-9)


def test_halving_drops_the_worst_and_keeps_the_best(dataset, folds):
    whole = tune(dataset, GRID, OPTIONS, folds=folds, halving=False)
    halved = tune(dataset, GRID, OPTIONS, folds=folds)
    assert len(whole.finished) == len(GRID)
    assert len(halved.finished) == 3
    assert halved.best in np.argsort(-whole.means)[:3]
    for i in halved.finished:  # trained to the tolerance on all folds in the end
        assert halved.means[i] == pytest.approx(whole.means[i], abs=1.0)
    dropped = [i for i, trial in enumerate(halved.trials) if trial.dropped]
    assert sorted(dropped + halved.finished) == list(range(len(GRID)))
    first = [trial.scores[0] for i, trial in enumerate(halved.trials) if i in dropped]
    assert max(first) <= max(halved.trials[i].scores[0] for i in halved.finished) + 1.0


def test_held_out_file(dataset):
    dev = Dataset.from_sequences(*recipe_data(40, seed=6), alphabets_of=dataset)
    found = tune(dataset, GRID[:2], OPTIONS, dev=dev, tol=1e-7)
    model = fit_dataset(dataset, FitOptions(n_threads=1, l2=3.0, stop=Stop(tol=1e-7))).model
    assert found.trials[0].scores[0] == pytest.approx(model.evaluate(dev).f1, abs=1e-9)


def test_the_choice_is_not_one_that_was_dropped(dataset):
    dev = Dataset.from_sequences(*recipe_data(40, seed=6), alphabets_of=dataset)
    found = tune(dataset, GRID, OPTIONS, dev=dev)
    assert len(found.finished) == 3
    assert not any(found.trials[i].dropped for i in (*found.finished, found.best, found.one_standard_error))


@pytest.mark.parametrize("stop_after", [1, 4, 9, 12, 15, 17])
def test_resumed_at_any_candidate_with_identical_results(dataset, folds, tmp_path, stop_after, monkeypatch):
    monkeypatch.setattr(searching, "SAVE_EVERY", 0.0)
    whole = tune(dataset, GRID, OPTIONS, folds=folds, refine=1)

    class CrashError(Exception):
        pass

    def crash(step):
        if step.done == stop_after:
            raise CrashError

    with pytest.raises(CrashError):
        tune(dataset, GRID, OPTIONS, folds=folds, refine=1, state=tmp_path / "s.npz", callback=crash)
    done = []
    resumed = tune(
        dataset,
        GRID,
        OPTIONS,
        folds=folds,
        refine=1,
        state=tmp_path / "s.npz",
        resume=True,
        callback=lambda step: done.append(step.done),
    )
    assert done[0] == stop_after + 1
    assert [t.candidate for t in resumed.trials] == [t.candidate for t in whole.trials]
    for one, other in zip(resumed.trials, whole.trials, strict=True):
        assert (one.scores, one.n_nonzero, one.passes) == (other.scores, other.n_nonzero, other.passes)
        assert all(np.array_equal(one.counts[fold], other.counts[fold]) for fold in other.counts)
    assert np.array_equal(resumed.intervals(), whole.intervals(), equal_nan=True)


def test_interrupted_search_keeps_what_it_has(dataset, folds, tmp_path):
    import os
    import signal

    def interrupt(step):
        if step.done == 5:
            os.kill(os.getpid(), signal.SIGINT)

    found = tune(dataset, GRID, OPTIONS, folds=folds, state=tmp_path / "s.npz", callback=interrupt)
    assert found.interrupted
    assert sum(len(trial.scores) for trial in found.trials) == 5
    resumed = tune(dataset, GRID, OPTIONS, folds=folds, state=tmp_path / "s.npz", resume=True)
    whole = tune(dataset, GRID, OPTIONS, folds=folds)
    assert [t.scores for t in resumed.trials] == [t.scores for t in whole.trials]


def test_a_state_of_another_search_is_refused(dataset, folds, tmp_path):
    path = tmp_path / "s.npz"
    tune(dataset, GRID[:2], OPTIONS, folds=folds, state=path)
    with pytest.raises(OptionError, match="other data, candidates or options"):
        tune(dataset, GRID[:3], OPTIONS, folds=folds, state=path, resume=True)
    devs = [Dataset.from_sequences(*recipe_data(9, seed=k), alphabets_of=dataset) for k in (6, 7)]
    other = tmp_path / "dev.npz"
    tune(dataset, GRID[:1], OPTIONS, dev=devs[0], state=other)
    tune(dataset, GRID[:1], OPTIONS, dev=devs[0], state=other, resume=True)
    with pytest.raises(OptionError, match="other data, candidates or options"):
        tune(dataset, GRID[:1], OPTIONS, dev=devs[1], state=other, resume=True)
    weighted = replace(dataset, sequence_weights=np.linspace(0.5, 1.0, dataset.n_sequences))
    with pytest.raises(OptionError, match="other data, candidates or options"):
        tune(weighted, GRID[:2], OPTIONS, folds=folds, state=path, resume=True)
    path.write_bytes(b"no state")
    with pytest.raises(DataError, match="not the state of a search"):
        tune(dataset, GRID[:2], OPTIONS, folds=folds, state=path, resume=True)


def test_same_results_for_any_number_of_threads(dataset, folds):
    one, other = (tune(dataset, GRID, FitOptions(n_threads=n), folds=folds) for n in (1, 3))
    for a, b in zip(one.trials, other.trials, strict=True):
        assert (a.scores, a.passes, a.n_nonzero) == (b.scores, b.passes, b.n_nonzero)


def test_refinement_looks_around_the_best(dataset, folds):
    found = tune(dataset, GRID[::2], OPTIONS, folds=folds, refine=2)
    new = [trial.candidate.l2 for trial in found.trials[len(GRID[::2]) :]]
    assert len(new) >= 3
    assert len(set(new)) == len(new)
    assert found.means[found.best] >= max(found.means[i] for i in found.finished) - 1e-12


def test_trainers_without_objective_are_trained_alone(dataset, folds):
    from crfit import trainers

    grid = [Candidate(0.0, 0.0, (("trainer", trainers.resolve("perceptron")),)), Candidate(1.0)]
    found = tune(dataset, grid, OPTIONS, folds=folds)
    assert len(found.finished) == 2
    assert found.trials[0].candidate.name == "l2=0 trainer=perceptron"


def test_one_standard_error_prefers_strong_penalties(dataset, folds):
    found = tune(dataset, GRID, OPTIONS, folds=folds, halving=False)
    best, other = found.best, found.one_standard_error
    error = found.errors()[best]
    assert found.means[other] >= found.means[best] - error
    near = [t.candidate for i, t in enumerate(found.trials) if found.means[i] >= found.means[best] - error]
    chosen = found.trials[other].candidate
    assert (chosen.l1, chosen.l2) == max((c.l1, c.l2) for c in near)


def test_tour_starts_strong_and_goes_to_neighbours():
    candidates = candidates_of({"l2": [0.1, 10.0, 1.0], "l1": [0.1, 1.0]})
    order = tour(candidates)
    assert sorted(order) == list(range(6))
    first = candidates[order[0]]
    assert (first.l2, first.l1) == (10.0, 1.0)
    steps = [
        abs(np.log10(candidates[a].l2 / candidates[b].l2))
        + abs(np.log10(candidates[a].l1 / candidates[b].l1))
        for a, b in pairwise(order)
    ]
    assert max(steps) == pytest.approx(1.0)


def test_tour_starts_near_known_weights():
    candidates = [Candidate(l2, l1) for l2 in (0.1, 1.0, 10.0) for l1 in (0.5, 0.05)]
    assert candidates[tour(candidates, (1.2, 0.04))[0]] == Candidate(1.0, 0.05)


def test_survivors_start_from_their_fold_and_are_exact_on_all(dataset, folds, monkeypatch):
    begun = []
    prepare = searching.Fits._prepare

    def note(self, stage, kept):
        begun.append((stage.fold, stage.tol, kept is not None))
        prepare(self, stage, kept)

    monkeypatch.setattr(searching.Fits, "_prepare", note)
    tune(dataset, GRID, OPTIONS, folds=folds, tol=1e-4)
    loose = [fold for fold, tol, _ in begun if tol == searching.LOOSE]
    assert loose == list(range(len(loose)))
    assert sorted(fold for fold, tol, _ in begun if tol == 1e-4) == list(range(len(folds)))
    assert all(warm == (tol == 1e-4 and fold in loose) for fold, tol, warm in begun)


def test_folds_are_a_partition(dataset):
    folds = make_folds(dataset, 4, 1)
    assert sorted(np.concatenate([test for _, test in folds])) == list(range(dataset.n_sequences))
    for train, test in folds:
        assert not set(train) & set(test)
        assert len(train) + len(test) == dataset.n_sequences
    with pytest.raises(OptionError):
        make_folds(dataset, dataset.n_sequences + 1, 0)


LABELS = ["O", "B-X", "I-X", "B-Y", "I-Y"]


@given(
    st.lists(st.lists(st.tuples(*[st.integers(0, 4)] * 2), min_size=1, max_size=7), min_size=1, max_size=5)
)
@settings(max_examples=60, deadline=None)
def test_counts_sum_to_the_scores(sequences):
    gold = [[LABELS[a] for a, _ in sequence] for sequence in sequences]
    X = [[["a"]] * len(sequence) for sequence in sequences]
    data = Dataset.from_sequences([*X, [["a"]] * 5], [*gold, LABELS])
    names = data.label_alphabet.strings()
    known = [names.index(LABELS[b]) for sequence in sequences for _, b in sequence]
    predicted = np.array([*known, *data.labels[-5:]], dtype=np.int32)
    expected = evaluate_ids(data.labels, predicted, data.seq_ptr, names)
    for metric in ("f1", "accuracy", "sequence_accuracy"):
        table = count(metric, data, predicted)
        assert len(table) == data.n_sequences
        assert score(metric, table.sum(axis=0)) == pytest.approx(getattr(expected, metric))


def test_bootstrap_intervals_cover_the_spread_of_fresh_samples():
    rng = np.random.default_rng(0)
    right = rng.random((300, 1)) < 0.8
    table = np.concatenate([np.ones_like(right), right], axis=1).astype(np.int32)
    draws = bootstrap("accuracy", [[table]], seed=0)
    assert draws.std() == pytest.approx(100 * np.sqrt(0.8 * 0.2 / 300), rel=0.15)
    assert np.array_equal(draws, bootstrap("accuracy", [[table]], seed=0))


def test_unknown_labels_are_not_scored():
    data = Dataset.from_sequences([[["a"], ["b"]], [["b"]]], [["A", None], ["B"]])
    table = count("accuracy", data, np.array([0, 1, 1], dtype=np.int32))
    assert table.tolist() == [[1, 1], [1, 1]]
    assert evaluate([["A"], ["B"]], [["A"], ["B"]]).accuracy == 100.0


@pytest.mark.parametrize(
    ("changes", "option"),
    [({"candidates": []}, "candidates"), ({"refine": -1}, "refine"), ({"folds": []}, "cv")],
)
def test_bad_options_are_refused(dataset, folds, changes, option):
    arguments = {"candidates": GRID[:1], "folds": folds, **changes}
    with pytest.raises(OptionError) as refused:
        tune(dataset, arguments.pop("candidates"), OPTIONS, **arguments)
    assert refused.value.option == option


def test_unknown_options_of_candidates_are_refused():
    with pytest.raises(OptionError, match="no such option"):
        candidates_of({"l2": [1.0], "colour": ["red"]})
