"""Dataset and options to model and result."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pytest

from crfit import engines, load, trainers
from crfit.data import Dataset
from crfit.data.dataset import recode
from crfit.demo import recipe_data
from crfit.engines import make_inference, make_objective
from crfit.errors import CrfitWarning, DataError, OptionError
from crfit.evaluation import evaluate
from crfit.fit import HeldOutScorer
from crfit.layout.constraints import make_constraints
from crfit.trainers import LBFGS, Step, option
from crfit.training.callbacks import Callback, Checkpoint, EarlyStopping, load_checkpoint
from crfit.training.loop import train
from crfit.training.stopping import Stop, StopReason
from fit_helpers import fit_dataset


@pytest.fixture(scope="module")
def data() -> Dataset:
    return Dataset.from_sequences(*recipe_data(60, seed=1))


@pytest.fixture(scope="module")
def dev_lists() -> tuple[list, list]:
    return recipe_data(30, seed=2)


def test_same_as_the_parts_put_together(data):
    options = {"l2": 0.5, "l1": 0.1, "weights": "all", "transitions": "observed", "boundary": True}
    stop = Stop(max_iter=8)
    model, result, *_ = fit_dataset(data, **options, stop=stop, trainer="lbfgs")
    by_hand = train(make_objective(data, **options), "lbfgs", stop=stop)
    np.testing.assert_array_equal(result.weights, by_hand.weights)
    assert result.objective == by_hand.objective
    assert model.labels == data.label_alphabet.strings()


def test_options_and_summary_are_in_the_model_as_plain_json(data, dev_lists):
    dev = Dataset.from_sequences(*dev_lists)
    trainer = LBFGS(memory=3)
    stop = Stop(max_iter=5)
    model, result, *_ = fit_dataset(data, trainer=trainer, l2=2.0, min_count=2, stop=stop, dev=dev)
    options, summary = json.loads(json.dumps([model.options, model.summary]))
    assert options["trainer"] == "lbfgs"
    assert options["trainer_options"]["memory"] == 3
    assert (options["l2"], options["min_count"], options["order"]) == (2.0, 2, 1)
    assert (summary["iterations"], summary["reason"]) == (5, "max_iter")
    assert summary["n_sequences"] == 60
    assert summary["n_weights"] == len(result.weights)
    assert summary["n_attributes"] == data.prune(2).n_attributes
    final = model.evaluate(dev)
    names = "accuracy", "precision", "recall", "f1", "sequence_accuracy"
    assert summary["dev"] == pytest.approx({name: getattr(final, name) for name in names})
    assert "dev" not in fit_dataset(data, stop=Stop(max_iter=1))[0].summary


def test_rare_attributes_are_gone_from_model_and_held_out_data(data, dev_lists):
    model, _, *_ = fit_dataset(data, min_count=3, stop=Stop(max_iter=3))
    assert set(model.attribute_alphabet) <= set(data.prune(3).attribute_alphabet)
    assert model.layout.n_attributes < data.n_attributes


@pytest.mark.parametrize("min_count", [0, 4])
@pytest.mark.parametrize("own_alphabets", [True, False])
def test_dev_scores_are_those_of_the_weights_of_each_iteration(data, dev_lists, min_count, own_alphabets):
    X, y = dev_lists
    dev = Dataset.from_sequences(X, y, alphabets_of=None if own_alphabets else data)
    weights = []

    class Keep(Callback):
        def on_step(self, run, progress):
            assert progress.iteration == 0 or "dev_f1" in progress.extra  # there before other callbacks
            weights.append(run.weights.copy())

    _, result, *_ = fit_dataset(data, min_count=min_count, dev=dev, callbacks=[Keep()], stop=Stop(max_iter=4))
    objective = make_objective(data, min_count=min_count)
    read = Dataset.from_sequences(X, y, alphabets_of=objective.dataset)
    bio = make_constraints(data.label_alphabet.strings(), scheme="BIO")  # as the model will tag
    for progress, w in zip(result.history[1:], weights[1:], strict=True):
        labels, _ = make_inference(read, objective.layout, w, constraints=bio).viterbi()
        expected = evaluate(y, read.sequence_labels(labels))
        assert progress.extra["dev_f1"] == pytest.approx(expected.f1)
        assert progress.extra["dev_accuracy"] == pytest.approx(expected.accuracy)
    assert result.scores["dev_f1"] == result.history[-1].extra["dev_f1"]


def test_dev_every_leaves_iterations_out(data, dev_lists):
    dev = Dataset.from_sequences(*dev_lists)
    _, result, *_ = fit_dataset(data, dev=dev, dev_every=3, stop=Stop(max_iter=7))
    assert [p.iteration for p in result.history if "dev_f1" in p.extra] == [3, 6]
    assert "dev_f1" in result.scores


def test_early_stopping_returns_the_model_with_the_best_score(data, dev_lists):
    dev = Dataset.from_sequences(*dev_lists)
    stop = Stop(max_iter=60, grad_inf=0.0)
    model, result, *_ = fit_dataset(data, l2=0.01, dev=dev, callbacks=[EarlyStopping(patience=3)], stop=stop)
    assert result.reason is StopReason.HELD_OUT
    best = max(p.extra["dev_f1"] for p in result.history[1:])
    assert model.evaluate(dev).f1 == pytest.approx(best)
    assert result.weights_iteration < result.iterations


def test_labels_only_in_held_out_data_count_as_errors(data):
    dev = Dataset.from_sequences([[["w=salt"], ["w=salt"]]], [["NEVER", "NEVER"]])
    _, result, *_ = fit_dataset(data, dev=dev, stop=Stop(max_iter=2))
    assert result.scores == {"dev_f1": 0.0, "dev_accuracy": 0.0, "dev_sequence_accuracy": 0.0}


def test_final_scores_are_those_of_the_model_and_computed_once(data, dev_lists, monkeypatch):
    dev = Dataset.from_sequences(*dev_lists)
    calls = []
    plain = HeldOutScorer.__call__

    def counting(self, weights):
        calls.append(weights)
        return plain(self, weights)

    monkeypatch.setattr(HeldOutScorer, "__call__", counting)
    model, _, scores, *_ = fit_dataset(data, dev=dev, stop=Stop(max_iter=4))
    assert scores.to_dict() == model.evaluate(dev).to_dict()
    assert len(calls) == 4
    model, _, scores, *_ = fit_dataset(data, dev=dev, dev_every=3, stop=Stop(max_iter=4))
    assert scores.to_dict() == model.evaluate(dev).to_dict()
    assert len(calls) == 4 + 2
    best = [EarlyStopping(patience=3)]
    model, result, scores, *_ = fit_dataset(data, l2=0.01, dev=dev, callbacks=best, stop=Stop(grad_inf=0.0))
    assert result.weights_iteration < result.iterations
    assert scores.to_dict() == model.evaluate(dev).to_dict()
    assert fit_dataset(data, stop=Stop(max_iter=1)).dev_scores is None


def test_model_and_result_share_the_weights_and_nobody_writes_to_them(data):
    model, result, *_ = fit_dataset(data, stop=Stop(max_iter=2))
    assert np.shares_memory(model.weights, result.weights)
    with pytest.raises(ValueError, match="read-only"):
        result.weights[0] = 1.0


def test_second_order_learns_what_first_order_cannot(tmp_path):
    # The label is 1 where the last two differ: pairs of labels say nothing about it.
    rng = np.random.default_rng(0)
    y = []
    for _ in range(60):
        labels = rng.integers(0, 2, 2).tolist()
        while len(labels) < 12:
            labels.append(labels[-1] ^ labels[-2])
        y.append([str(label) for label in labels])
    X = [[["start" + label] if t < 2 else ["go on"] for t, label in enumerate(labels)] for labels in y]
    data = Dataset.from_sequences(X, y)
    accuracy = {}
    for order in (1, 2):
        model, _, scores, *_ = fit_dataset(data, order=order, l2=0.1, dev=data)
        accuracy[order] = scores.accuracy
        model.save(tmp_path / "m")
        again = load(tmp_path / "m")
        assert again.tag_many(X) == model.tag_many(X)
    assert accuracy[1] < 90.0
    assert accuracy[2] == 100.0


def test_an_engine_without_the_order_warns_once_and_scores_on_the_same_engine(data, dev_lists, monkeypatch):
    engine = replace(engines.ENGINES["cpu"], max_order=1)
    monkeypatch.setitem(engines.ENGINES, "small", engine)
    dev = Dataset.from_sequences(*dev_lists).subset(range(3))
    small = data.subset(range(5))
    with pytest.warns(CrfitWarning, match="order=2") as caught:
        _, slow, *_ = fit_dataset(small, order=2, device="small", dev=dev, stop=Stop(max_iter=2))
    assert len(caught) == 1
    _, named, *_ = fit_dataset(small, order=2, device="reference", dev=dev, stop=Stop(max_iter=2))
    assert slow.scores == named.scores


def test_checkpointed_run_goes_on_with_its_trainer(data, dev_lists, tmp_path):
    dev = Dataset.from_sequences(*dev_lists)
    path = tmp_path / "run.ckpt"
    trainer = LBFGS(memory=4)
    fit_dataset(data, trainer=trainer, dev=dev, stop=Stop(max_iter=4), callbacks=[Checkpoint(path)])
    model, resumed, *_ = fit_dataset(data, dev=dev, stop=Stop(max_iter=9), state=load_checkpoint(path))
    _, straight, *_ = fit_dataset(data, trainer=trainer, dev=dev, stop=Stop(max_iter=9))
    np.testing.assert_array_equal(resumed.weights, straight.weights)
    assert [p.extra for p in resumed.history] == [p.extra for p in straight.history]
    assert model.options["trainer_options"]["memory"] == 4


@dataclass(frozen=True)
class Seedy:
    """Writes down its seed."""

    seed: int = option(0, help="start of the random sequence", at_least=0)
    rate: float = option(1.0, help="nothing")

    def steps(self, objective, w, state=None) -> Iterator[Step]:
        while True:
            yield Step(w, 0.0, 0.0, 0.0, extra={"seed": float(self.seed)})


@pytest.fixture
def seedy(monkeypatch):
    monkeypatch.setattr("crfit.trainers.registry._registry", dict(trainers.registry._registry))
    return trainers.register("seedy", handles={"l2"})(Seedy)


def test_seed_reaches_the_trainer_unless_it_has_its_own(data, seedy):
    def seed_of(trainer, **options):
        _, result, *_ = fit_dataset(data, trainer=trainer, stop=Stop(max_iter=1, grad_inf=0.0), **options)
        return result.history[-1].extra["seed"]

    assert seed_of("seedy") == 0
    assert seed_of("seedy", seed=7) == 7
    assert seed_of(Seedy(rate=2.0), seed=7) == 7
    assert seed_of(Seedy(seed=3), seed=7) == 3
    assert trainers.seeded(Seedy(rate=2.0), 7) == Seedy(seed=7, rate=2.0)


def test_trainers_without_a_seed_stay_as_they_are():
    trainer = LBFGS(memory=4)
    assert trainers.seeded(trainer, 7) is trainer


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"min_count": -1}, "min_count=-1"), ({"min_count": 1.5}, "min_count=1.5"),
        ({"min_count": True}, "min_count=True"), ({"stop": 100}, "stop=100: give crfit.Stop"),
        ({"callbacks": EarlyStopping()}, "give a list of callbacks"),
        ({"callbacks": [print]}, "instances of crfit.callbacks.Callback"),
        ({"trainer": "lbgfs"}, "did you mean lbfgs"), ({"trainer": LBFGS}, "must be a name or an instance"),
        ({"trainer": 3}, "must be a name or an instance"), ({"l2": -1.0}, "l2=-1.0"), ({"l2": "1"}, "l2='1'"),
        ({"l1": True}, "l1=True"), ({"boundary": "no"}, "boundary='no'"),
        ({"weights": "some"}, "weights='some'"), ({"transitions": "some"}, "transitions='some'"),
        ({"order": 0}, "order=0"), ({"device": "abacus"}, "device='abacus'"), ({"dev_every": 0}, "every=0"),
        ({"n_threads": 0}, "n_threads=0"),
    ],
)  # fmt: skip
def test_bad_options_are_named_with_a_remedy(data, options, message):
    for dev in (None, data.subset([0])):
        if dev is None and "dev_every" in options:
            continue
        with pytest.raises(OptionError, match=message):
            fit_dataset(data, dev=dev, **options)


def test_data_that_cannot_be_used_is_refused(data):
    unlabelled = replace(data, labels=None)
    with pytest.raises(DataError, match="no labels"):
        fit_dataset(unlabelled)
    with pytest.raises(DataError, match="held-out data has no labels"):
        fit_dataset(data, dev=unlabelled)
    with pytest.raises(DataError, match="held-out data has no sequences"):
        fit_dataset(data, dev=data.subset([]))
    with pytest.raises(DataError, match="the training data is empty"):
        fit_dataset(data.subset([]))
    with pytest.raises(DataError, match="no labels"):
        HeldOutScorer(unlabelled, make_objective(data).layout)(np.zeros(make_objective(data).n_weights))


def test_scorer_gives_all_scores(data, dev_lists):
    model, result, *_ = fit_dataset(data, stop=Stop(max_iter=5))
    dev = Dataset.from_sequences(*dev_lists)
    scores = HeldOutScorer(recode(dev, data), make_objective(data).layout)(result.weights)
    assert scores.to_dict() == model.evaluate(dev).to_dict()


def test_two_runs_give_the_same_file(tmp_path):
    X, y = recipe_data(60, seed=3)
    for name in ("a", "b"):
        data = Dataset.from_sequences(X, y)
        fit_dataset(data, stop=Stop(max_iter=5), dev=data).model.save(tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
