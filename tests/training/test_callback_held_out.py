"""Held-out scores during training, and stopping by them."""

import math

import numpy as np
import pytest

from callback_helpers import Scripted
from convex import Logistic
from crfit.errors import CrfitWarning, OptionError
from crfit.training.callbacks import DevScore, EarlyStopping, ProgressBar
from crfit.training.loop import train
from crfit.training.stopping import Stop, StopReason

STOP = Stop(grad_inf=0, max_iter=12)


def test_dev_score_goes_to_extra_and_result():
    score = Scripted(range(100))
    result = train(Logistic(), stop=STOP, callbacks=[DevScore(score, every=3)])
    assert {p.iteration: p.extra["dev_f1"] for p in result.history if "dev_f1" in p.extra} == {
        3: 0,
        6: 1,
        9: 2,
        12: 3,
    }
    assert result.scores == {"dev_f1": 3.0, "dev_accuracy": 50.0}
    np.testing.assert_array_equal(score.seen[-1], result.weights)


def test_dev_score_of_the_final_weights_when_the_last_step_was_not_scored():
    score = Scripted(range(100))
    result = train(Logistic(), stop=STOP, callbacks=[DevScore(score, every=5)])
    assert result.scores["dev_f1"] == 2.0
    assert len(score.seen) == 3
    np.testing.assert_array_equal(score.seen[-1], result.weights)
    for every in (0, "2", 1.5):
        with pytest.raises(OptionError, match="every="):
            DevScore(score, every=every)
    with pytest.raises(OptionError, match="give a function from weights"):
        DevScore({"f1": 3})


def test_early_stopping_returns_the_best_weights():
    score = Scripted([1, 5, 4, 4, 3, 9])
    result = train(Logistic(), stop=STOP, callbacks=[DevScore(score), EarlyStopping(3)])
    assert result.reason is StopReason.HELD_OUT
    assert result.iterations == 5
    assert result.weights_iteration == 2
    np.testing.assert_array_equal(result.weights, score.seen[1])
    assert result.objective == Logistic().smooth(result.weights)[0]
    assert result.scores["dev_f1"] == 5.0
    assert result.message == "no better dev_f1 in 3 scores; best 5.00 at iteration 2"


@pytest.mark.parametrize("name", ["dev_f1", "dev_accuracy"])
def test_early_stopping_waits_for_the_first_change(name):
    # All tokens get one label for a while: F1 is 0, accuracy the share of that label.
    start = 0.0 if name == "dev_f1" else 80.0
    values = [start] * 5 + [start + 3, start + 2, start + 1, start]
    score = Scripted(values)
    watch = DevScore(lambda w: {name.removeprefix("dev_"): score(w)["f1"]})
    result = train(Logistic(), stop=STOP, callbacks=[watch, EarlyStopping(2, metric=name)])
    assert result.reason is StopReason.HELD_OUT
    assert result.iterations == 8
    assert result.weights_iteration == 6


def test_early_stopping_at_once_from_a_good_start():
    result = train(Logistic(), stop=STOP, callbacks=[DevScore(Scripted([100])), EarlyStopping(3)])
    assert result.iterations == 4
    falling = [DevScore(Scripted([85, 84, 83])), EarlyStopping(2, metric="dev_f1")]
    assert train(Logistic(), stop=STOP, callbacks=falling).iterations == 3


def test_early_stopping_warns_of_a_score_of_0_and_keeps_the_last_weights():
    with pytest.warns(CrfitWarning, match="best dev_f1 is 0"):
        result = train(Logistic(), stop=STOP, callbacks=[DevScore(Scripted([0.0])), EarlyStopping(2)])
    assert result.reason is StopReason.MAX_ITER
    assert result.weights_iteration == result.iterations == 12


def test_early_stopping_counts_scores_not_iterations():
    score = Scripted([5, 4, 3, 2])
    result = train(Logistic(), stop=STOP, callbacks=[DevScore(score, every=2), EarlyStopping(2)])
    assert result.iterations == 6
    assert result.weights_iteration == 2


def test_early_stopping_best_weights_also_when_another_rule_ends_the_run():
    score = Scripted([1, 9, 8, 8])
    result = train(
        Logistic(), stop=Stop(grad_inf=0, max_iter=4), callbacks=[DevScore(score), EarlyStopping(50)]
    )
    assert result.reason is StopReason.MAX_ITER
    assert result.weights_iteration == 2
    np.testing.assert_array_equal(result.weights, score.seen[1])


def test_early_stopping_directions_and_thresholds():
    falling = Scripted([3, 2, 1, 1.5, 1.6, 0])
    result = train(Logistic(), stop=STOP, callbacks=[DevScore(falling), EarlyStopping(2, mode="min")])
    assert result.weights_iteration == 3
    small = Scripted([1, 1.5, 2.2, 2.3, 2.4])
    result = train(Logistic(), stop=STOP, callbacks=[DevScore(small), EarlyStopping(2, min_delta=1.0)])
    assert result.weights_iteration == 3
    assert EarlyStopping(metric="dev_loss").mode == EarlyStopping(metric="objective").mode == "min"
    result = train(Logistic(), stop=STOP, callbacks=[EarlyStopping(2, metric="objective")])
    assert result.weights_iteration == 12, "the objective falls all the way"
    for name, value in [
        *(("patience", bad) for bad in (0, "3", 1.5, None, True, math.inf)),
        *(("mode", bad) for bad in ("up", 1)),
        *(("metric", bad) for bad in (None, 3)),
        *(("min_delta", bad) for bad in ("1", -0.1, math.nan)),
    ]:
        with pytest.raises(OptionError, match=f"^{name}="):
            EarlyStopping(**{name: value})


def test_early_stopping_without_a_score_is_refused_before_the_first_step():
    class Fails(Logistic):
        def value_and_grad(self, w, out=None):
            raise AssertionError("a step was made")

    for callbacks in ([EarlyStopping()], [ProgressBar(), EarlyStopping()], [EarlyStopping(), DevScore(dict)]):
        with pytest.raises(OptionError, match=r"metric='dev_f1': .*dev=\(X, y\), or put DevScore before"):
            train(Fails(), stop=STOP, callbacks=callbacks)
    known = DevScore(Scripted([1.0]), names=["f1", "accuracy"])
    with pytest.raises(OptionError, match=r"metric='dev_F1': .* one of dev_accuracy, dev_f1"):
        train(Fails(), stop=STOP, callbacks=[known, EarlyStopping(metric="dev_F1")])


@pytest.mark.parametrize("metric", ["dev_F1", "f1"])
def test_an_unknown_metric_is_refused_at_the_first_scores(metric):
    score = Scripted([1.0])
    with pytest.raises(OptionError, match=f"metric='{metric}': .*dev_accuracy, dev_f1"):
        train(Logistic(), stop=STOP, callbacks=[DevScore(score), EarlyStopping(metric=metric)])
    assert len(score.seen) == 1
    with pytest.raises(OptionError, match="metric='speed': no such score"):
        train(Logistic(), stop=STOP, callbacks=[EarlyStopping(metric="speed")])
