"""Training with one weight for equal attributes: same optimum, same path, all weights in the model."""

import json
from dataclasses import replace

import numpy as np
import pytest

import crfit
from crfit import trainers
from crfit.data import Dataset
from crfit.data.alphabet import Alphabet
from crfit.data.merging import equal_attributes
from crfit.demo import recipe_data
from crfit.engines import make_objective
from crfit.engines import merged as merged_training
from crfit.errors import ConvergenceWarning, OptionError
from crfit.fit import choose_merging
from crfit.trainers import LBFGS
from crfit.training.callbacks import Callback, Checkpoint, EarlyStopping, load_checkpoint
from crfit.training.stopping import Stop, StopReason
from fit_helpers import fit_dataset
from twins import redundant

TIGHT = Stop(grad_inf=1e-7, max_iter=2000)


@pytest.fixture
def small_ones_too(monkeypatch):
    """Let "auto" merge however few weights there are."""
    monkeypatch.setattr(merged_training, "MIN_WEIGHTS", 1)


@pytest.fixture(scope="module")
def lists():
    """Recipes in which every item has three names for its word: most attributes have equals."""
    X, y = recipe_data(40, seed=1)
    return [[[*item, *(name + copy for name in item for copy in "ab")] for item in x] for x in X], y


@pytest.fixture(scope="module")
def data(lists):
    return Dataset.from_sequences(*lists)


@pytest.fixture(scope="module")
def dev():
    """Held-out items, some with a part of the names that are always together in training."""
    X, y = recipe_data(20, seed=2)
    rng = np.random.default_rng(0)
    names = [[[*item, *(name + copy for name in item for copy in "ab")] for item in x] for x in X]
    return Dataset.from_sequences([[[n for n in item if rng.random() < 0.7] for item in x] for x in names], y)


@pytest.mark.parametrize("weights", ["all", "observed"])
@pytest.mark.parametrize("trainer", ["lbfgs", "newton_cg", "eg", "clustered_lbfgs"])
def test_the_optimum_is_the_same(trainer, weights):
    data = redundant(5, n_sequences=8, n_edge_attributes=2, values=True, weighted=True)
    stop = Stop(gap=1e-9, max_iter=2000) if trainer == "eg" else TIGHT
    fits = [
        fit_dataset(data, trainer=trainer, weights=weights, boundary=True, l2=0.5, merge=merge, stop=stop)
        for merge in (True, False)
    ]
    (model, merged, *_), (other, plain, *_) = fits
    assert "merged" in model.summary
    assert "merged" not in other.summary
    assert merged.objective == pytest.approx(plain.objective, rel=1e-8)
    np.testing.assert_allclose(merged.weights, plain.weights, atol=1e-5 if trainer != "eg" else 1e-4)


@pytest.mark.parametrize("order", [1, 2])
def test_steps_of_lbfgs_are_the_same(data, order):
    def run(merge):
        return fit_dataset(
            data, trainer="lbfgs", weights="all", order=order, merge=merge, stop=Stop(max_iter=12)
        )

    (model, merged, *_), (other, plain, *_) = run(True), run(False)
    assert model.summary["merged"]["weights"] < 0.5 * model.summary["n_weights"]
    assert merged.iterations == plain.iterations
    for here, there in zip(merged.history, plain.history, strict=True):  # pairs are kept in single precision
        assert here.objective == pytest.approx(there.objective, rel=1e-6)
        assert here.grad_norm == pytest.approx(there.grad_norm, rel=1e-5)
        assert here.passes == there.passes
    np.testing.assert_allclose(merged.weights, plain.weights, atol=1e-6)
    assert merged.grad_inf == pytest.approx(plain.grad_inf, rel=1e-5)
    assert merged.grad_norm == pytest.approx(plain.grad_norm, rel=1e-5)
    same = ("n_weights", "n_attributes", "n_labels", "n_sequences", "n_tokens", "reason")
    assert {name: model.summary[name] for name in same} == {name: other.summary[name] for name in same}


@pytest.mark.parametrize("trainer", ["sgd", "pa", "perceptron"])
def test_steps_along_sums_of_features_are_the_same(data, trainer):
    merged, plain = (
        fit_dataset(data, trainer=trainer, merge=merge, stop=Stop(max_iter=3)).result
        for merge in (True, False)
    )
    np.testing.assert_allclose(merged.weights, plain.weights, atol=1e-10)


def test_result_and_model_have_all_weights(data, lists, tmp_path):
    model, result, *_ = fit_dataset(data, merge=True, trainer="lbfgs", stop=Stop(max_iter=5))
    objective = make_objective(data)
    assert result.weights.shape == (objective.n_weights,)
    value, gradient = objective.value_and_grad(result.weights)
    assert value == pytest.approx(result.objective, rel=1e-12)
    assert np.abs(gradient).max() == pytest.approx(result.grad_inf, rel=1e-9)
    assert model.attribute_alphabet == data.attribute_alphabet
    model.save(tmp_path / "m")
    again = crfit.load(tmp_path / "m")
    assert again.attribute_alphabet == data.attribute_alphabet
    assert again.summary["merged"] == {
        "attributes": int(equal_attributes(data).max()) + 1,
        "weights": model.summary["merged"]["weights"],
    }
    np.testing.assert_array_equal(again.weights, result.weights)
    assert json.dumps(again.summary)


def test_held_out_scores_are_those_of_all_weights(data, dev):
    def run(merge, **options):
        return fit_dataset(data, trainer="lbfgs", merge=merge, dev=dev, stop=Stop(max_iter=6), **options)

    (model, merged, scores, *_), (_, plain, plain_scores, *_) = run(True), run(False)
    assert scores.to_dict() == plain_scores.to_dict() == model.evaluate(dev).to_dict()
    assert [p.extra["dev_f1"] for p in merged.history[1:]] == [p.extra["dev_f1"] for p in plain.history[1:]]
    best = run(True, callbacks=[EarlyStopping(patience=2, metric="dev_accuracy")])
    assert best.model.evaluate(dev).to_dict() == best.dev_scores.to_dict()


def test_an_interrupted_run_gives_all_weights(data):
    class Interrupt(Callback):
        def on_step(self, run, progress):
            return StopReason.INTERRUPTED if progress.iteration == 2 else None

    with pytest.warns(ConvergenceWarning, match="interrupted"):
        model, result, *_ = fit_dataset(data, trainer="lbfgs", merge=True, callbacks=[Interrupt()])
    assert result.reason is StopReason.INTERRUPTED
    assert len(result.weights) == make_objective(data).n_weights == model.layout.n_weights


def test_a_run_goes_on_as_it_began(data, dev, tmp_path):
    path = tmp_path / "run.ckpt"
    options = {"trainer": LBFGS(memory=4), "dev": dev}
    fit_dataset(data, merge=True, stop=Stop(max_iter=4), callbacks=[Checkpoint(path)], **options)
    straight = fit_dataset(data, merge=True, stop=Stop(max_iter=9), **options)
    for merge in ("auto", True):
        resumed = fit_dataset(
            data, merge=merge, stop=Stop(max_iter=9), state=load_checkpoint(path), **options
        )
        np.testing.assert_array_equal(resumed.result.weights, straight.result.weights)
        assert resumed.model.summary == straight.model.summary
    with pytest.raises(OptionError, match=r"merge=False: the run to resume used merged attributes"):
        fit_dataset(data, merge=False, state=load_checkpoint(path), **options)
    with pytest.raises(OptionError, match=r"l1=0.1: the run to resume has 0"):
        fit_dataset(data, l1=0.1, state=load_checkpoint(path), **options)
    with pytest.raises(OptionError, match=r"state=.*: the objective has .* weights"):
        fit_dataset(data.subset(range(20)).prune(1), state=load_checkpoint(path), **options)


@pytest.mark.usefixtures("small_ones_too")
def test_a_run_that_was_not_merged_goes_on_so(data, tmp_path):
    path = tmp_path / "run.ckpt"
    fit_dataset(
        data, trainer="lbfgs", weights="all", merge=False, stop=Stop(max_iter=2), callbacks=[Checkpoint(path)]
    )
    state = load_checkpoint(path)
    resumed = fit_dataset(data, weights="all", stop=Stop(max_iter=4), state=state)  # new, auto would merge it
    assert "merged" not in resumed.model.summary
    with pytest.raises(OptionError, match=r"merge=True: the run to resume did not merge"):
        fit_dataset(data, weights="all", merge=True, state=state)
    old = replace(state, facts={name: value for name, value in state.facts.items() if name != "n_merged"})
    assert "merged" not in fit_dataset(data, weights="all", stop=Stop(max_iter=4), state=old).model.summary


@pytest.mark.usefixtures("small_ones_too")
def test_what_auto_does(data):
    def merges(trainer, data=data, **options):
        return choose_merging(make_objective(data, **options), trainers.get(trainer), "auto") is not None

    assert merges("lbfgs", weights="all")
    assert not merges("lbfgs", weights="all", l1=0.1)
    assert not merges("sgd", weights="all")
    assert not merges("perceptron", weights="all", l2=0.0)
    # Few weights for each occurrence: a pass over the data is all that takes time.
    often = data.subset(np.repeat(np.arange(data.n_sequences), 10))
    assert merges("lbfgs", often, weights="all")
    assert not merges("lbfgs", often, weights="observed")
    # Nothing is the same.
    different = Dataset.from_sequences([[["a"], ["b"]], [["c"]]], [["X", "Y"], ["Z"]])
    assert not merges("lbfgs", different, weights="all")
    # A third, a twentieth.
    for n, expected in ((2, True), (20, False)):
        items = [[str(k)] if k else ["0", "0'"] for k in range(n)]
        few = Dataset.from_sequences([items], [[str(k % 5) for k in range(n)]])
        assert merges("lbfgs", few, weights="all", transitions="none") is expected


def test_auto_leaves_small_problems_alone(data):
    objective = make_objective(data, weights="all")
    assert objective.n_weights < merged_training.MIN_WEIGHTS
    assert choose_merging(objective, LBFGS(), "auto") is None
    assert choose_merging(objective, LBFGS(), True) is not None


@pytest.mark.usefixtures("small_ones_too")
def test_options_that_do_not_fit_are_refused(data):
    with pytest.raises(OptionError, match=r"merge=True: with l1 > 0"):
        fit_dataset(data, l1=0.1, merge=True)
    with pytest.raises(OptionError, match=r"merge='yes': give True, False or 'auto'"):
        fit_dataset(data, merge="yes")
    assert "merged" not in fit_dataset(data, l1=0.1, weights="all", stop=Stop(max_iter=1)).model.summary


def test_the_estimator_and_the_command_line(lists, call, tmp_path):
    X, y = lists
    fitted = crfit.CRF("lbfgs", merge=True, stop=Stop(max_iter=4)).fit(X, y)
    assert "merged" in fitted.model_.summary
    path, model = tmp_path / "train.jsonl", tmp_path / "m.crfit"
    path.write_text(
        "".join(json.dumps({"tokens": x, "labels": labels}) + "\n" for x, labels in zip(X, y, strict=True))
    )
    command = ["train", path, "-m", model, "--trainer", "lbfgs", "--max-iter", 4, "-q"]
    told = call(*command, "--merge")
    assert "weights after merging" in told.out
    summary = json.loads(call(*command, "--merge", "--json").out)
    assert summary["merged"] == fitted.model_.summary["merged"]
    assert "merged" not in json.loads(call(*command, "--no-merge", "--json").out)
    assert "merged" not in json.loads(call(*command, "--json").out)
    refused = call(*command, "--merge", "--l1", 1, code=2)
    assert "--merge: with l1 > 0" in refused.err
    call(*command, "--merge", "--checkpoint", tmp_path / "run.ckpt")
    refused = call(*command, "--no-merge", "--resume", tmp_path / "run.ckpt", code=2)
    assert "--no-merge: the run to resume used merged attributes" in refused.err


@pytest.mark.parametrize("classes", ["multinomial", "one_vs_rest"])
def test_classifiers_too(classes):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 3, (40, 6)).astype(np.float64)
    X = np.hstack([X, X[:, :4], np.ones((40, 1))])  # the last column is that of the intercept
    y = rng.integers(0, 3, 40)
    merged, plain = (
        crfit.LogLinear("lbfgs", classes=classes, merge=merge, stop=TIGHT).fit(X, y)
        for merge in (True, False)
    )
    assert merged.model_.summary["merged"] == {"attributes": 8, "weights": 24}
    assert merged.result_.objective == pytest.approx(plain.result_.objective, rel=1e-9)
    np.testing.assert_allclose(merged.coef_, plain.coef_, atol=1e-5)
    np.testing.assert_allclose(merged.intercept_, plain.intercept_, atol=1e-5)


def test_an_attribute_without_a_penalty_stays_alone():
    data = redundant(2, n_sequences=8)
    ids = [
        np.append(row, [data.n_attributes, data.n_attributes + 1])
        for row in np.split(data.attr_ids, data.attr_ptr[1:-1])
    ]
    data = replace(
        data,
        attr_ptr=data.attr_ptr + 2 * np.arange(data.n_tokens + 1),
        attr_ids=np.concatenate(ids).astype(np.int32),
        attribute_alphabet=Alphabet([*data.attribute_alphabet, "bias", "(intercept)"], locked=True),
    )
    merged, plain = (
        fit_dataset(data, trainer="lbfgs", weights="all", n_free=1, l2=0.3, merge=merge, stop=TIGHT)
        for merge in (True, False)
    )
    assert "merged" in merged.model.summary
    assert merged.result.objective == pytest.approx(plain.result.objective, rel=1e-10)
    np.testing.assert_allclose(merged.result.weights, plain.result.weights, atol=1e-5)
    # All that is at every position goes into the weight that costs nothing.
    bias = merged.result.weights[(data.n_attributes - 2) * data.n_labels :][: data.n_labels]
    np.testing.assert_allclose(bias, 0.0, atol=1e-6)
