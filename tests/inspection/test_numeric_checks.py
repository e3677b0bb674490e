"""Checks of objectives by other arithmetic: ok on every kind of objective, and failed if it is broken."""

import math

import numpy as np
import pytest

import crfit
from crfit import make_objective
from crfit.data import Dataset
from crfit.data.shards import Shards
from crfit.demo import recipe_data
from crfit.engines.cpu.objective import CpuObjective
from crfit.engines.reference.lattice import ScoreTables
from crfit.engines.reference.objective import ReferenceObjective
from crfit.errors import CheckError, CrfitError
from crfit.inspection import numeric_checks
from crfit.inspection.numeric_checks import (
    Check,
    by_definition,
    check_objective,
    difference,
    evaluate,
    largest_difference,
    long_double_value,
    n_different,
    require,
)
from crfit.layout import make_layout
from crfit.layout.constraints import make_constraints
from oracle import Enumeration, random_dataset

X, Y = recipe_data(60, seed=5)
LENGTHS = [4, 1, 6, 3, 2, 9] * 5
ALL = [
    *("gradient at w = 0", "gradient at random w", "Hessian product at random w"),
    *("value at random w", "gradient at random w", "value at random w, to more digits"),
    *("value at large w", "gradient at large w"),
]


def recipes(**options):
    return make_objective(Dataset.from_sequences(X, Y), **options)


def arrays(**options):
    return random_dataset(
        1, LENGTHS, n_labels=3, n_attributes=40, n_edge_attributes=5, values=True, weighted=True, **options
    )


def partial():
    return Dataset.from_sequences(X, [[None if t % 3 == 1 else y for t, y in enumerate(ys)] for ys in Y])


def scaled_by_group():
    objective = recipes()
    objective.scale_l2(np.random.default_rng(0).uniform(0.5, 2.0, objective.n_weights))
    return objective


def merged():
    objective = recipes(weights="all")
    return objective.aggregated(np.arange(objective.layout.n_attributes) // 2)


def pulled(**options):
    plain = recipes()
    return recipes(toward=np.random.default_rng(0).normal(size=plain.n_weights), **options)


def costs(data):
    return 2.0 * (1.0 - np.eye(data.n_labels))


def constrained(data):
    return {"constraints": make_constraints(data.label_alphabet.strings(), scheme="BIO")}


OBJECTIVES = {
    "plain": recipes,
    "order 2": lambda: recipes(order=2, boundary=True),
    "order 3, observed": lambda: recipes(order=3, transitions="observed"),
    "all weights, no l2": lambda: recipes(weights="all", l2=0.0),
    "l1": lambda: recipes(l1=0.5, l2=100.0),
    "log domain": lambda: recipes(arithmetic="log"),
    "edges, values and weights": lambda: make_objective(arrays(), boundary=True),
    "unpenalised": lambda: make_objective(arrays(), n_free=3),
    "large values": lambda: make_objective(
        Dataset.from_sequences([[{"a": 1e6 * len(item)} for item in x] for x in X], Y)
    ),
    "classifier": lambda: make_objective(random_dataset(2, [1] * 50, n_labels=3, n_attributes=9)),
    "one label": lambda: make_objective(random_dataset(2, [3, 2], n_labels=1)),
    "weights of 0": lambda: make_objective(
        Dataset.from_sequences(X, Y, sequence_weights=np.zeros(len(X))), l2=0.0
    ),
    "l2 by group": scaled_by_group,
    "toward": pulled,
    "merged": merged,
    "partial labels": lambda: make_objective(partial()),
    "partial labels and costs": lambda: make_objective(partial(), costs=costs(partial())),
    "constraints": lambda: recipes(**constrained(Dataset.from_sequences(X, Y))),
    "constraints, partial": lambda: make_objective(partial(), **constrained(partial())),
    "shards": lambda: make_objective(Shards.of(arrays(), 4), boundary=True),
    "shards, toward": lambda: make_objective(
        Shards.of(Dataset.from_sequences(X, Y), 3), toward=np.ones(recipes().n_weights)
    ),
}


@pytest.mark.parametrize("kind", OBJECTIVES)
def test_all_checks_are_ok(kind):
    checks = list(check_objective(OBJECTIVES[kind]()))
    assert [check.name for check in checks] == ALL
    assert [str(check) for check in checks if not check.ok] == []
    assert not any(check.skipped for check in checks)


@pytest.mark.parametrize(("make", "reason"), [
    (lambda: recipes(device="reference"), "this is the NumPy engine"),
    (lambda: make_objective(Shards.of(partial(), 2)), "needs data with partial labels in one piece"),
    (lambda: make_objective(Dataset.from_sequences([[["a"]] * 600], [["x", "y"] * 300])), "too long"),
])  # fmt: skip
def test_what_the_numpy_engine_cannot_do_is_skipped_with_a_reason(make, reason):
    *others, last = check_objective(make())
    assert len(others) == 3
    assert all(check.ok and not check.skipped for check in others)
    assert last.skipped
    assert last.ok
    assert reason in str(last)


def test_large_data_takes_one_direction_and_few_passes(monkeypatch):
    monkeypatch.setattr(numeric_checks, "MAX_POSITIONS", 10)
    objective = recipes()
    assert "along 1 direction)" in str(next(iter(check_objective(objective))))
    before = objective.counts.sequences
    list(check_objective(objective))
    assert objective.counts.sequences - before <= 12 * objective.n_sequences


def test_a_check_does_not_change_training():
    objective, checked = recipes(), recipes()
    list(check_objective(checked))
    results = [crfit.train(one).weights.tobytes() for one in (objective, checked)]
    assert results[0] == results[1]


def broken(monkeypatch, method, change, kind=CpuObjective):
    """Let a method of an engine change its result, or what it writes."""
    true = getattr(kind, method)
    monkeypatch.setattr(kind, method, lambda self, *given: change(self, true(self, *given), *given))


def failed(objective):
    return [i for i, check in enumerate(check_objective(objective)) if not check.ok]


def test_a_wrong_gradient(monkeypatch):
    def change(self, value, w, out, subset, l2):
        out[3] += 1e-2 * self.n_sequences
        return value

    broken(monkeypatch, "_loss_and_grad", change)
    assert failed(recipes()) == [0, 1, 4, 7]


def test_a_wrong_value(monkeypatch):
    broken(monkeypatch, "_loss", lambda self, value, w: value + 1e-2 * self.n_sequences * np.sin(w.sum()))
    assert failed(recipes()) == [0, 1]


def test_a_wrong_value_with_the_gradient_that_belongs_to_it(monkeypatch):
    def change(self, value, w, out, subset, l2):
        out *= 1.0 + 1e-8
        return value * (1.0 + 1e-8)

    broken(monkeypatch, "_loss_and_grad", change)
    assert failed(recipes()) == [3, 4, 5]


def test_a_wrong_product(monkeypatch):
    def change(self, nothing, w, v, out, l2):
        out[0] += 1.0

    broken(monkeypatch, "_hvp", change)
    assert failed(recipes()) == [2]


def test_numbers_that_are_wrong_for_large_weights_only(monkeypatch):
    def change(self, value, w, out, subset, l2):
        out[0] += np.abs(w).max() > 10.0
        return value

    broken(monkeypatch, "_loss_and_grad", change)
    assert failed(recipes()) == [7]


def test_the_same_wrong_value_in_both_engines(monkeypatch):
    for kind in (CpuObjective, ReferenceObjective):
        broken(monkeypatch, "_loss_and_grad", lambda self, value, *given: value + 1e-3, kind)
    assert failed(recipes()) == [5]


@pytest.mark.parametrize("wrong", [math.nan, math.inf])
def test_numbers_that_are_not_finite(monkeypatch, wrong):
    broken(monkeypatch, "_loss_and_grad", lambda self, value, *given: wrong)
    assert failed(recipes()) == [3, 5, 6]
    broken(monkeypatch, "_loss", lambda self, value, w: wrong)
    assert failed(recipes()) == [0, 1, 3, 5, 6]


def test_sums_over_label_sequences_are_those_of_the_definition():
    data = random_dataset(3, [3, 1, 4], n_labels=3, n_edge_attributes=2, values=True, weighted=True)
    for order in (1, 2):
        layout = make_layout(data, order=order, boundary=True)
        w, v = np.random.default_rng(0).normal(size=(2, layout.n_weights))
        truth = Enumeration(data, layout, w)
        expected = truth.loss(), truth.expected() - truth.observed(), truth.hessian() @ v
        assert largest_difference(by_definition(data, layout, w, v), expected) < 1e-13
        for device in ("cpu", "reference"):
            objective = make_objective(data, layout, l2=0.0, device=device)
            assert largest_difference(evaluate(objective, w, v), expected) < 1e-13


def test_long_double_has_its_digits_in_scores_too():
    if numeric_checks.digits() <= np.finfo(float).precision:
        pytest.skip("long double is float64 here")
    objective = recipes(device="reference")
    w = np.full(objective.n_weights, 0.1)
    tables = ScoreTables(objective.dataset, objective.layout, w.astype(np.longdouble))(0)
    assert all(table.dtype == np.longdouble for table in tables)
    assert (tables[0] != tables[0].astype(float)).any()
    value = long_double_value(objective, w)
    assert value.dtype == np.longdouble
    assert float(value) == pytest.approx(objective.value(w), rel=1e-14)


def test_large_weights_need_the_log_domain():
    objective = recipes()
    scale = numeric_checks.ENLARGED * numeric_checks.typical_weight(objective.dataset)
    w = scale * np.random.default_rng(0).normal(size=objective.n_weights)
    tables = ScoreTables(objective.dataset, objective.layout, w)
    spread = [np.ptp(table) for i in range(5) for table in tables(i)]
    assert max(spread) > -np.log(np.finfo(float).tiny)


def test_differences():
    assert difference([1.0, 2.0], [1.0, 4.0]) == 0.5
    assert difference(0.1, 0.0) == pytest.approx(0.1)
    assert difference(5.0, 0.0, 100.0) == 0.05
    assert difference(0.0, 0.0, 0.0) == 0.0
    assert difference([1.0, math.nan], [1.0, 2.0]) == math.inf
    assert difference([math.inf], [math.inf]) == math.inf
    assert n_different([1, 2, 3], [1, 0, 3]) == 1
    assert n_different([1, 2, 3], [1]) == 3


def test_a_failed_check_is_an_error_with_the_numbers():
    require(Check("value", 0.5, 1.0))
    require(Check("value", note="no reason", skipped=True))
    message = r"value \.\.\. FAILED: difference 0\.5, allowed 1e-09 \(why\): report"
    with pytest.raises(CheckError, match=message):
        require(Check("value", 0.5, 1e-9, "why"))
    assert issubclass(CheckError, CrfitError)
