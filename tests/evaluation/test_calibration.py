"""Calibration, against its definition, scikit-learn, and probabilities that are exact."""

import json

import numpy as np
import pytest
from sklearn.calibration import calibration_curve
from sklearn.metrics import brier_score_loss

import crfit
from crfit import pictures
from crfit.demo import recipe_data
from crfit.errors import DataError, OptionError
from crfit.evaluation import calibration as module
from crfit.evaluation.calibration import plot_reliability, reliability, span_confidence, token_confidence
from figure_rules import faults

STRATEGIES = "uniform", "quantile"


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def predictions(rng, n=5000, wrong_by=0.0):
    """Confidences and whether they are correct, with a probability that differs from them."""
    p = rng.beta(3, 1, n)
    return p, rng.random(n) < np.clip(p + wrong_by, 0, 1)


def test_bins_by_hand():
    found = reliability([0.05, 0.5, 0.55, 0.6, 1.0], [0, 1, 0, 1, 1], n_bins=2)
    assert found.edges.tolist() == [0.0, 0.5, 1.0]
    assert found.counts.tolist() == [2, 3], "an edge belongs to the bin below"
    np.testing.assert_allclose(found.confidence, [0.275, 2.15 / 3])
    np.testing.assert_allclose(found.correct, [0.5, 2 / 3])
    assert found.ece == pytest.approx((2 * 0.225 + 3 * 0.05) / 5)
    assert found.mce == pytest.approx(0.225)
    assert found.brier == pytest.approx((0.05**2 + 0.5**2 + 0.55**2 + 0.4**2) / 5)
    assert (found.n, found.accuracy, found.mean_confidence) == (5, 0.6, pytest.approx(0.54))


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("n_bins", [1, 5, 10, 33])
def test_same_bins_as_scikit_learn(rng, strategy, n_bins):
    p, correct = predictions(rng)
    p[:1000] = np.round(p[:1000], 1)  # on edges, and equal
    shares, means = calibration_curve(correct, p, n_bins=n_bins, strategy=strategy)
    found = reliability(p, correct, n_bins=n_bins, strategy=strategy)
    used = found.counts > 0
    np.testing.assert_allclose(found.confidence[used], means)
    np.testing.assert_allclose(found.correct[used], shares)
    assert found.brier == pytest.approx(brier_score_loss(correct, p))
    assert found.counts.sum() == len(p)


def test_quantile_bins_have_equal_mass(rng):
    p, correct = predictions(rng, 1000)
    assert reliability(p, correct, strategy="quantile").counts.tolist() == [100] * 10
    all_sure = reliability([1.0] * 7, [True] * 7, strategy="quantile")
    assert (all_sure.counts.tolist(), all_sure.ece, all_sure.mce) == ([7] + [0] * 9, 0.0, 0.0)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_errors_are_those_of_the_probabilities(rng, strategy):
    exact = reliability(*predictions(rng, 100_000), strategy=strategy)
    assert exact.ece < 0.01
    wrong = reliability(*predictions(rng, 100_000, wrong_by=-0.2), strategy=strategy)
    assert 0.17 < wrong.ece < 0.21
    assert exact.ece <= exact.mce
    assert wrong.brier > exact.brier


def test_text_and_dict(rng):
    found = reliability(*predictions(rng, 200))
    record = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert sum(each["count"] for each in record["bins"]) == record["n"] == 200
    used = sum(each["count"] * abs(each["correct"] - each["confidence"]) for each in record["bins"])
    assert used / 200 == pytest.approx(record["ece"])
    lines = found.to_text("spans").splitlines()
    assert lines[0].startswith(f"calibration of 200 spans: expected error {found.ece:.4f}; ")
    assert len(lines) == 4 + len(record["bins"]), "bins that are empty are left out"
    first = lines[4].split()
    each = record["bins"][0]
    assert first[3:] == [
        str(each["count"]), f"{each['confidence']:.4f}", f"{each['correct']:.4f}",
        f"{each['correct'] - each['confidence']:+.4f}",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("confidence", "correct", "message"),
    [
        ([], [], "no predictions"),
        ([0.5], [1, 0], "shape"),
        ([[0.5]], [[1]], "shape"),
        ([1.5], [1], "not between 0 and 1"),
        ([float("nan")], [1], "not between 0 and 1"),
        ([0.5], [2], "must be True or False"),
    ],
)
def test_bad_predictions_are_refused(confidence, correct, message):
    with pytest.raises(DataError, match=message):
        reliability(confidence, correct)


def test_bad_options_are_refused():
    with pytest.raises(OptionError, match="n_bins"):
        reliability([0.5], [1], n_bins=0)
    with pytest.raises(OptionError, match="uniform or quantile"):
        reliability([0.5], [1], strategy="width")


@pytest.mark.parametrize("block", [1, 50, 1 << 16])
def test_confidence_of_tokens_is_the_marginal_of_the_predicted_label(monkeypatch, block):
    monkeypatch.setattr(module, "_BLOCK_TOKENS", block)
    X, y = recipe_data(60, seed=2)
    model = crfit.CRF(l2=0.3).fit(X[:20], y[:20]).model_
    confidence, correct = token_confidence(model, crfit.Dataset.from_sequences(X[20:], y[20:]), n_threads=1)
    expected = [
        (marginals[label], label == gold)
        for x, labels in zip(X[20:], y[20:], strict=True)
        for marginals, label, gold in zip(model.marginals(x), model.tag(x), labels, strict=True)
    ]
    assert confidence.tolist() == pytest.approx([p for p, _ in expected])
    assert correct.tolist() == [right for _, right in expected]
    assert not correct.all()


def test_confidence_of_spans_is_their_probability():
    X, y = recipe_data(60, seed=3)
    model = crfit.CRF(l2=5.0).fit(X[:20], y[:20]).model_
    data = model.encode(X[20:], y[20:])
    confidence, correct = span_confidence(model, data)
    spans = [span for found in model.spans_many(X[20:]) for span in found]
    np.testing.assert_allclose(confidence, [span.probability for span in spans])
    scores = model.evaluate(data).to_dict()
    assert (len(correct), correct.sum()) == (scores["predicted"], scores["correct"])
    assert 0 < correct.sum() < len(correct)


def test_data_without_labels_is_refused():
    model = crfit.CRF().fit([[["a"]]], [["A"]]).model_
    with pytest.raises(DataError, match="no labels"):
        token_confidence(model, crfit.Dataset.from_sequences([[["a"]]]))


@pytest.mark.parametrize("name", ["c.png", "c-dark.png"])
def test_the_picture_can_be_read(rng, tmp_path, monkeypatch, name):
    pytest.importorskip("matplotlib")
    figures = []
    monkeypatch.setattr(pictures, "save_picture", lambda figure, path: figures.append(figure))
    kinds = {"tokens": reliability(*predictions(rng)), "spans": reliability(*predictions(rng, wrong_by=-0.1))}
    plot_reliability(kinds, tmp_path / name, title="Calibration on test.txt")
    (figure,) = figures
    assert list(faults(figure)) == []
    theme = pictures.DARK if "dark" in name else pictures.LIGHT
    from matplotlib.colors import to_hex

    assert to_hex(figure.get_facecolor()) == theme.ground
    curve = figure.axes[0].lines[1]
    used = kinds["tokens"].counts > 0
    np.testing.assert_allclose(curve.get_xydata()[:, 0], kinds["tokens"].confidence[used])
    np.testing.assert_allclose(curve.get_xydata()[:, 1], kinds["tokens"].correct[used])


def test_picture_files(rng, tmp_path):
    pytest.importorskip("matplotlib")
    found = {"tokens": reliability(*predictions(rng))}
    plot_reliability(found, tmp_path / "c.png")
    plot_reliability(found, tmp_path / "c.svg")
    assert (tmp_path / "c.png").read_bytes().startswith(b"\x89PNG")
    assert "<svg" in (tmp_path / "c.svg").read_text()
    with pytest.raises(OptionError, match=r"\.png"):
        plot_reliability(found, tmp_path / "c.txt")
