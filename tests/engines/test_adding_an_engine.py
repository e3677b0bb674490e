"""The engine that docs/architecture.md adds; test_engines.py compares its numbers with the others'."""

import numpy as np
import pytest

import crfit
from crfit import engines
from crfit.errors import CapabilityError
from page_examples import run_example


@pytest.fixture
def page(monkeypatch):
    """Names that the page defines; its engine is gone afterwards."""
    monkeypatch.setattr(engines, "ENGINES", dict(engines.ENGINES))
    return run_example("Add an engine")


def test_it_is_registered_and_trains_as_its_lender_does(page):
    objective, result = page["objective"], page["result"]
    assert type(objective) is page["BorrowedObjective"]
    assert list(engines.ENGINES)[-1] == objective.device == "borrowed"
    lender = crfit.make_objective(objective.dataset, device="reference")
    expected = crfit.train(lender, "lbfgs", stop=crfit.Stop(max_iter=3))
    np.testing.assert_allclose(result.weights, expected.weights, rtol=1e-10, atol=1e-12)


def test_it_tags(page):
    objective, result = page["objective"], page["result"]
    paths = [
        crfit.make_inference(objective.dataset, objective.layout, result.weights, device=device).viterbi()[0]
        for device in ("borrowed", "cpu")
    ]
    np.testing.assert_array_equal(*paths)


def test_what_it_does_not_offer_is_refused_before_any_work(page):
    objective = page["objective"]
    passes = objective.counts.sequences
    with pytest.raises(CapabilityError, match="online"):
        crfit.train(objective, "sgd")
    with pytest.raises(CapabilityError, match="cannot do 'subset'; it can do hvp, l1, value, value_and_grad"):
        objective.value(np.zeros(objective.n_weights), subset=[0])
    assert objective.counts.sequences == passes
