"""CRF and LogLinear from old models: warm_start, toward, partial_fit, from_model, save and load."""

import pickle

import numpy as np
import pytest

import crfit
from crfit import CRF, LogLinear, Stop
from crfit.demo import recipe_data
from crfit.errors import OptionError
from crfit.estimators.sklearn_api import NotFittedError

X, Y = recipe_data(120, seed=5)
TIGHT = Stop(grad_inf=1e-7)


@pytest.fixture(scope="module")
def old():
    return CRF(l2=0.5, boundary=True).fit(X[:80], Y[:80])


def test_warm_start_takes_a_model_a_file_or_the_last_fit(old, tmp_path):
    old.model_.save(tmp_path / "old.crfit")
    nothing = CRF(l2=0.5, stop=TIGHT).fit(X, Y)
    for given in (old.model_, tmp_path / "old.crfit", str(tmp_path / "old.crfit"), True):
        crf = CRF(l2=0.5, stop=TIGHT, warm_start=given)
        if given is True:
            assert "carried_over" not in crf.fit(X[:80], Y[:80]).model_.summary, "nothing to start from yet"
        crf.fit(X, Y)
        assert crf.model_.summary["carried_over"]["n_carried"] > 0
        np.testing.assert_allclose(crf.result_.weights, nothing.result_.weights, atol=1e-5)
    with pytest.raises(OptionError, match="warm_start"):
        CRF(warm_start=3).fit(X, Y)


def test_partial_fit_is_training_toward_the_old_model(old):
    crf = CRF.from_model(old.model_).partial_fit(X[80:], Y[80:])
    same = CRF.from_model(old.model_, toward=old.model_).fit(X[80:], Y[80:])
    np.testing.assert_array_equal(crf.result_.weights, same.result_.weights)
    again = pickle.loads(pickle.dumps(crf)).partial_fit(X[:3], Y[:3])
    assert set(again.classes_) == set(old.classes_) | {label for labels in Y for label in labels}
    assert CRF(l2=0.5).partial_fit(X[:80], Y[:80]).result_.objective == pytest.approx(
        CRF(l2=0.5).fit(X[:80], Y[:80]).result_.objective
    )


def test_partial_fit_scores_held_out_data_with_all_attributes(old):
    # attributes of the old model alone: were they dropped, the score would be another
    crf = CRF.from_model(old.model_, l2=1e8).partial_fit(X[100:], Y[100:], dev=(X[:80], Y[:80]))
    score = crf.model_.evaluate(crfit.Dataset.from_sequences(X[:80], Y[:80])).f1
    assert crf.result_.history[-1].extra["dev_f1"] == pytest.approx(score)
    assert score > 95


def test_labels_that_are_not_str_grow_too(tmp_path):
    numbers = [[len(label) % 4 for label in labels] for labels in Y]
    crf = CRF().fit(X[:60], numbers[:60])
    more = [[label + 4 for label in labels] for labels in numbers[60:70]]
    crf.partial_fit(X[60:70], more)
    assert set(crf.classes_) == {label for labels in numbers[:60] + more for label in labels}
    crf.save(tmp_path / "numbers.crfit")
    loaded = CRF.load(tmp_path / "numbers.crfit")
    assert loaded.classes_ == crf.classes_
    assert loaded.predict(X) == crf.predict(X)
    mixed = CRF().fit(X[:9], [[("t", label) for label in labels] for labels in numbers[:9]])
    mixed.save(tmp_path / "tuples.crfit")
    assert all(isinstance(label, str) for label in CRF.load(tmp_path / "tuples.crfit").classes_)


def test_a_saved_estimator_comes_back_with_its_parameters(old, tmp_path):
    old.save(tmp_path / "old.crfit")
    loaded = CRF.load(tmp_path / "old.crfit", n_threads=1)
    assert (loaded.l2, loaded.boundary, loaded.n_threads) == (0.5, True, 1)
    assert loaded.get_params()["trainer"] == "auto"
    assert loaded.predict(X) == old.predict(X)
    assert loaded.n_iter_ == old.n_iter_
    assert not hasattr(loaded, "result_")
    with pytest.raises(NotFittedError):
        CRF().save(tmp_path / "none.crfit")
    for wrong, message in (
        ("x", "crfit.load"),
        (LogLinear().fit([["a"], ["b"]], [0, 1]).model_, "CRF labels"),
    ):
        with pytest.raises(OptionError, match=message):
            CRF.from_model(wrong)


def test_clones_keep_the_old_model(old):
    base = pytest.importorskip("sklearn.base")
    crf = base.clone(CRF(warm_start=old.model_, toward=None))
    assert crf.warm_start.weights.tobytes() == old.model_.weights.tobytes()
    assert base.clone(CRF(warm_start=True)).warm_start is True


def test_a_classifier_starts_from_the_last_fit():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(200, 6))
    classes = (rows @ rng.normal(size=(6, 3))).argmax(axis=1)
    warm = LogLinear(warm_start=True, stop=TIGHT)
    first = warm.fit(rows[:150], classes[:150]).n_iter_
    assert "carried_over" not in warm.model_.summary
    warm.fit(rows, classes)
    assert warm.model_.summary["carried_over"]["n_carried"] == 21
    np.testing.assert_allclose(warm.coef_, LogLinear(stop=TIGHT).fit(rows, classes).coef_, atol=1e-6)
    assert warm.n_iter_ <= first
