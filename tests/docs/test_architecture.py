"""The examples for contributors and researchers: a trainer, an engine, a format and a corpus."""

import re
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import crfit
from bench import corpora
from crfit import engines
from crfit.cli import cli
from crfit.demo import recipe_data
from crfit.errors import CapabilityError
from crfit.racing import Status
from crfit.trainers import registry
from page_examples import PAGE, RACING, run_example


def test_a_trainer(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)  # the example writes its race
    monkeypatch.setattr(registry, "_registry", dict(registry._registry))
    made = run_example("Write your own trainer", RACING)
    race, trainer = made["result"], made["BarzilaiBorwein"]
    assert [curve.label for curve in race.curves] == ["auto", "lbfgs", "bb", "bb first=0.1"]
    assert all(curve.status is Status.CONVERGED for curve in race.curves)
    passes = [race.first_reaching(curve, relative_gap=1e-3).passes for curve in race.curves]
    assert passes == sorted(passes)
    assert all(curve.latest_scores == race.curves[0].latest_scores for curve in race.curves)
    listed = CliRunner().invoke(cli, ["trainers"])
    assert "bb" in [line.split()[0] for line in listed.output.splitlines() if line.strip()]
    shown = CliRunner().invoke(cli, ["trainers", "bb"]).output
    for words in (
        trainer.__doc__.partition("\n")[0],
        "w <- w - (s.s / s.y) g",
        "ength of the first step",
        "as an example",
    ):
        assert words in shown
    assert "first : float, default=0.001\n    Length of the first step." in trainer.__doc__

    objective = crfit.make_objective(crfit.Dataset.from_sequences(*made["train"]))
    whole = crfit.train(objective, "bb", stop=crfit.Stop(max_iter=6))
    part = crfit.train(objective, trainer(), stop=crfit.Stop(max_iter=3), keep_state=True)
    resumed = crfit.train(objective, state=part.state, stop=crfit.Stop(max_iter=6))
    assert resumed.weights.tobytes() == whole.weights.tobytes()
    monkeypatch.undo()
    assert "bb" not in registry.names()


@pytest.fixture
def engine(monkeypatch):
    """Names that the page defines; its engine is gone afterwards. test_engines.py compares its numbers."""
    monkeypatch.setattr(engines, "ENGINES", dict(engines.ENGINES))
    return run_example("Add an engine")


def test_an_engine_is_registered_and_trains_as_its_lender_does(engine):
    objective, result = engine["objective"], engine["result"]
    assert type(objective) is engine["BorrowedObjective"]
    assert list(engines.ENGINES)[-1] == objective.device == "borrowed"
    lender = crfit.make_objective(objective.dataset, device="reference")
    expected = crfit.train(lender, "lbfgs", stop=crfit.Stop(max_iter=3))
    np.testing.assert_allclose(result.weights, expected.weights, rtol=1e-10, atol=1e-12)


def test_an_engine_tags(engine):
    objective, result = engine["objective"], engine["result"]
    paths = [
        crfit.make_inference(objective.dataset, objective.layout, result.weights, device=device).viterbi()[0]
        for device in ("borrowed", "cpu")
    ]
    np.testing.assert_array_equal(*paths)


def test_what_an_engine_does_not_offer_is_refused_before_any_work(engine):
    objective = engine["objective"]
    passes = objective.counts.sequences
    with pytest.raises(CapabilityError, match="online"):
        crfit.train(objective, "sgd")
    with pytest.raises(CapabilityError, match="lacks 'subset'; it supports hvp, l1, value, value_and_grad"):
        objective.value(np.zeros(objective.n_weights), subset=[0])
    assert objective.counts.sequences == passes


def test_a_format(tmp_path):
    names = run_example("Add a format")
    X, y = recipe_data(60, seed=0)
    model = crfit.CRF(l2=0.5, weights="all", scheme=None).fit(X, y).model_
    names["write"](model, tmp_path / "model.txt")
    read = names["read"](tmp_path / "model.txt")
    assert read.tag(X[0]) == model.tag(X[0])
    for x in X[:10]:
        assert abs(read.nbest(x, 1)[0][1] - model.nbest(x, 1)[0][1]) < 1e-12


def test_a_corpus(monkeypatch, capsys):
    monkeypatch.setattr(corpora, "CORPORA", dict(corpora.CORPORA))
    run_example("Add a corpus")
    assert "addresses" in corpora.CORPORA
    assert "addresses/train.txt.gz" in capsys.readouterr().out


def test_the_paths_on_the_page_exist():
    root = Path(__file__).parents[2]
    for folder in re.findall(r"^\| `(\w+)/`", PAGE.read_text(encoding="utf-8"), re.MULTILINE):
        assert (root / folder).is_dir() or (root / "src" / "crfit" / folder).is_dir(), folder
