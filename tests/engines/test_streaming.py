"""Shards that are read again in each pass: the same bytes as with all of them in memory."""

import os
import signal

import numpy as np
import pytest

import crfit
from crfit import demo, make_objective
from crfit.data import indexing
from crfit.data.indexing import index_files
from crfit.data.shards import shard_path
from crfit.engines.sharded import TermOptions, sharded_objective
from crfit.engines.streaming import StreamingRunner, fits_as_one, kept_shards, term_bytes
from crfit.errors import ConvergenceWarning, DataError, OptionError
from crfit.training.callbacks import Checkpoint, load_checkpoint


@pytest.fixture(scope="module")
def shards(tmp_path_factory):
    folder = tmp_path_factory.mktemp("streaming")
    demo.write_columns(folder / "train.txt", demo.recipe_lines(150))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(indexing, "BLOCK_BYTES", 300)
        found = index_files(folder / "train.txt", folder / "shards", shard_bytes=12_000)
    assert found.n_shards == 7
    return found


def some(shards):
    """Memory for a few of the shards."""
    n_weights = make_objective(shards, max_memory=0).n_weights
    sizes = term_bytes(shards)
    memory = 30 * 8 * n_weights + 2 * max(sizes) + sum(sizes[:3]) + 1
    assert kept_shards(shards, n_weights, memory) == 3
    return memory


def everything(objective):
    """What a batch trainer asks for, as bytes."""
    w, v, d = np.random.default_rng(0).normal(size=(3, objective.n_weights)) / 3.0
    value, gradient = objective.value_and_grad(w)
    line = objective.along(d)
    found = [value, gradient, objective.value(v), objective.hvp(v), objective.hessian_diagonal()]
    found += [
        line(0.5),
        line(0.0),
        objective.observed(),
        objective.expectations(v),
        objective.feature_totals(),
    ]
    found += [objective.value(w, [0, 149, 3]), objective.value_and_grad(v, subset=[5])[1]]
    return [np.asarray(one).tobytes() for one in found]


@pytest.mark.parametrize("options", [{}, {"weights": "all", "boundary": True}, {"order": 2, "n_free": 4}])
def test_the_same_bytes_with_any_number_of_shards_in_memory(shards, options):
    in_memory = sharded_objective(shards, None, TermOptions(), l1=0.0, l2=1.0, **options)
    expected = everything(in_memory)
    n_kept = []
    for memory in (0, some(shards), 1e12):
        objective = make_objective(shards.folder, max_memory=memory, **options)
        assert isinstance(objective.runner, StreamingRunner)
        n_kept.append(objective.runner.n_kept)
        assert everything(objective) == expected
        assert everything(objective) == expected  # shards that were read before
        objective.close()
    assert (n_kept[0], n_kept[2]) == (0, 7)
    assert options or n_kept[1] == 3


def test_close_to_the_objective_of_all_data(shards):
    whole, parts = make_objective(shards.whole()), make_objective(shards, max_memory=0)
    w = np.random.default_rng(0).normal(size=whole.n_weights) / 3.0
    value, gradient = whole.value_and_grad(w)
    own_value, own_gradient = parts.value_and_grad(w)
    assert own_value == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(own_gradient, gradient, rtol=1e-12, atol=1e-12 * value)


@pytest.mark.parametrize("trainer", ["lbfgs", "newton_cg", "auto"])
def test_trainers_and_threads(shards, trainer):
    stop = crfit.Stop(max_iter=8)
    runs = [(0, 1), (0, 3), (some(shards), 2), (1e12, 1)]
    weights = {
        crfit.train(make_objective(shards, max_memory=m, n_threads=n), trainer, stop=stop).weights.tobytes()
        for m, n in runs
    }
    assert len(weights) == 1


def test_no_more_than_two_terms_besides_the_kept_ones_are_in_memory(shards, monkeypatch):
    import gc
    import weakref

    made = []
    make = StreamingRunner._make

    def noted(self, i):
        live = make(self, i)
        made.append(weakref.ref(live.term))
        return live

    monkeypatch.setattr(StreamingRunner, "_make", noted)
    objective = make_objective(shards, max_memory=0)
    most = []
    compute = objective.runner._compute

    def counted(*arguments):
        gc.collect()
        most.append(sum(one() is not None for one in made))
        return compute(*arguments)

    monkeypatch.setattr(objective.runner, "_compute", counted)
    objective.value(np.zeros(objective.n_weights))
    assert len(most) == 7
    assert max(most) <= 2


def interrupted_in(shards, monkeypatch, n):
    """An objective that gets Ctrl-C in its computation number n on a shard, and its computations so far."""
    objective = make_objective(shards, max_memory=0)
    compute, calls = objective.runner._compute, []

    def counted(*arguments):
        calls.append(arguments)
        if len(calls) == n:
            os.kill(os.getpid(), signal.SIGINT)
        return compute(*arguments)

    monkeypatch.setattr(objective.runner, "_compute", counted)
    return objective, calls


@pytest.mark.parametrize("trainer", ["lbfgs", "newton_cg", "bfgs", "gis", "clustered_lbfgs"])
def test_ctrl_c_ends_a_pass_between_two_shards_and_resumes_to_the_same_bytes(
    shards, tmp_path, monkeypatch, trainer
):
    stop = crfit.Stop(max_iter=12)
    objective, calls = interrupted_in(shards, monkeypatch, 7 * 7 + 3)  # in the middle of a pass
    callbacks = [Checkpoint(tmp_path / "run.ckpt")]
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        result = crfit.train(objective, trainer, stop=stop, callbacks=callbacks)
    assert result.reason is crfit.StopReason.INTERRUPTED
    # A trainer that does not compute F at the end of a step needs a pass for the result.
    assert len(calls) == 52 + (7 if trainer == "clustered_lbfgs" else 0)
    monkeypatch.undo()
    plain = make_objective(shards, max_memory=0)
    assert plain.full_value(result.weights) == pytest.approx(result.objective, rel=1e-12)
    whole = crfit.train(plain, trainer, stop=stop)
    resumed = crfit.train(plain, state=load_checkpoint(tmp_path / "run.ckpt"), stop=stop)
    assert resumed.weights.tobytes() == whole.weights.tobytes()
    assert everything(objective) == everything(plain)  # the pass that was cut leaves nothing behind


def test_ctrl_c_in_the_first_pass_has_no_result(shards, monkeypatch):
    objective, calls = interrupted_in(shards, monkeypatch, 3)
    with pytest.raises(KeyboardInterrupt):
        crfit.train(objective, "lbfgs")
    assert len(calls) <= 4


def test_the_limit_of_seconds_holds_within_a_pass(shards, monkeypatch):
    from crfit.training.loop import _Loop

    objective, calls = interrupted_in(shards, monkeypatch, 10**9)
    monkeypatch.setattr(_Loop, "out_of_time", lambda self: len(calls) >= 31)
    limit = crfit.StopReason.TIME, "time"
    monkeypatch.setattr(crfit.Stop, "limit", lambda self, now: limit if len(calls) >= 31 else None)
    result = crfit.train(objective, "lbfgs", stop=crfit.Stop(seconds=1e6))
    assert result.reason is crfit.StopReason.TIME
    assert len(calls) == 31  # which was not computed any more


def test_a_shard_that_is_gone_is_an_error_that_names_it(shards, tmp_path):
    import shutil

    folder = tmp_path / "copy"
    shutil.copytree(shards.folder, folder)
    objective = make_objective(folder, max_memory=0)
    w = np.zeros(objective.n_weights)
    value = objective.value(w)
    moved = shard_path(folder, 4).rename(tmp_path / "moved")
    with pytest.raises(DataError, match="shard-00004: is missing"):
        objective.value(w)
    moved.rename(shard_path(folder, 4))
    assert objective.value(w) == value


def test_memory_is_checked(shards):
    for wrong in (-1, "much", float("nan")):
        with pytest.raises(OptionError, match="max_memory"):
            make_objective(shards, max_memory=wrong)
    with pytest.raises(OptionError, match="shards in a folder"):
        make_objective(shards.whole(), max_memory=1e9)
    assert fits_as_one(shards, all_weights=False)
    assert not fits_as_one(shards, all_weights=False, memory=sum(term_bytes(shards)))
