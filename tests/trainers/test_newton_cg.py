"""Newton-CG against L-BFGS: every combination of options, drawn and tiny problems, rates, resume, endings.

What goes before the steps is in test_newton_start, their metric and Wolfe search in test_conjugate_gradient.
"""

import itertools
import math
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import crfit
from convex import CurvedLogistic, CurvedQuadratic, Logistic
from crfit import trainers
from crfit.engines import make_objective
from crfit.engines.objective import Curvature
from crfit.errors import CapabilityError, OptionError
from crfit.trainers import NewtonCG
from crfit.training.loop import train
from crfit.training.stopping import Stop, StopReason
from fit_helpers import without_time
from oracle import problems, random_dataset

GLOBALISATIONS = ["trust_region", "line_search", "wolfe"]
FORCINGS = ["const", "superlinear", "quadratic"]
NINE = Stop(grad_inf=0, max_iter=9)
EVERY = list(itertools.product(GLOBALISATIONS, FORCINGS, ["none", "diag"]))


def cold(globalisation="trust_region", forcing="const", preconditioner="none", **options):
    """From the weights given; without arguments the method of the papers."""
    return NewtonCG("none", globalisation, forcing, preconditioner=preconditioner, **options)


def crf(l2=0.3, **options):
    dataset = random_dataset(3, [3, 1, 4, 2, 5, 3, 6], n_labels=3, n_attributes=6)
    return make_objective(dataset, l2=l2, device="reference", **options)


def crf_on_cpu(arithmetic):
    dataset = random_dataset(3, [3, 1, 4, 2, 5, 3, 6], n_labels=3, n_attributes=6)
    return make_objective(dataset, l2=0.3, arithmetic=arithmetic)


@pytest.fixture(scope="module")
def optimum():
    return train(crf(), "lbfgs", stop=Stop(grad_inf=1e-9)).weights


class Steep(CurvedQuadratic):
    """sqrt(1 + (w - c)' A (w - c)): nearly a cone away from its minimum, where Newton steps are too long."""

    def __init__(self, n_weights=6, scale=3.0):
        super().__init__(n_weights, condition=20.0)
        self.c *= scale

    def smooth(self, w):
        r = w - self.c
        root = math.sqrt(1.0 + r @ self.a @ r)
        return root, self.a @ r / root

    def hessian(self, w):
        r = w - self.c
        root = math.sqrt(1.0 + r @ self.a @ r)
        return self.a / root - np.outer(self.a @ r, self.a @ r) / root**3


@pytest.mark.parametrize(("globalisation", "forcing", "preconditioner"), EVERY)
def test_all_ways_lead_to_the_optimum_of_lbfgs(optimum, globalisation, forcing, preconditioner):
    trainer = cold(globalisation, forcing, preconditioner)
    result = train(crf(), trainer, stop=Stop(grad_inf=1e-7, max_iter=200))
    assert result.reason is StopReason.CONVERGED
    np.testing.assert_allclose(result.weights, optimum, atol=1e-6)


@pytest.mark.parametrize(
    "options", [{"boundary": True, "weights": "all"}, {"order": 2}], ids=["all", "order"]
)
@pytest.mark.parametrize("mix", [0.01, 1.0])
def test_other_models_and_mixtures(options, mix):
    best = train(crf(**options), "lbfgs", stop=Stop(grad_inf=1e-8)).weights
    trainer = cold("line_search", preconditioner="diag", mix=mix, xi=0.1)
    result = train(crf(**options), trainer, stop=Stop(grad_inf=1e-7, max_iter=200))
    np.testing.assert_allclose(result.weights, best, atol=1e-6)


@pytest.mark.parametrize(
    "options",
    [{"cache": "none"}, {"cache": 3}, {"cache": "1kB"}, {"storage": "pairs"}, {"curvature": "ad"}],
    ids=str,
)
@pytest.mark.parametrize("arithmetic", ["scaled", "log"])
def test_what_is_kept_changes_no_step(options, arithmetic):
    # Wide enough for rounding, far too narrow for another number of products or another radius.
    def history(trainer):
        objective = crf_on_cpu(arithmetic)
        run = train(objective, trainer, stop=Stop(grad_inf=1e-3, max_iter=50))
        assert run.reason is StopReason.CONVERGED
        return [(p.objective, p.grad_norm, *p.extra.values()) for p in run.history]

    for ours, plain in zip(history(cold(**options)), history(cold()), strict=True):
        np.testing.assert_allclose(ours, plain, rtol=1e-6)


@given(seed=st.integers(0, 2**31), combination=st.sampled_from(EVERY), xi=st.sampled_from([0.1, 0.5, 0.9]))
@settings(deadline=None, max_examples=30)
def test_descends_and_reports_what_it_has(seed, combination, xi):
    globalisation, forcing, preconditioner = combination
    objective = CurvedLogistic(n_rows=30, n_weights=6, l2=0.1, seed=seed)
    trainer = cold(globalisation, forcing, preconditioner, xi=xi)
    before = math.inf
    for k, step in enumerate(trainer.steps(objective, np.zeros(6))):
        value, g = objective.smooth(step.w)
        assert step.objective == value
        assert step.grad_inf == pytest.approx(np.abs(g).max(), rel=1e-12)
        assert step.grad_norm == pytest.approx(np.linalg.norm(g), rel=1e-12)
        assert value <= before + 1e-13 * abs(value)
        assert step.initial == (k == 0)
        before = value
        if step.stop is not None or k == 25:
            break


@pytest.mark.parametrize("globalisation", GLOBALISATIONS)
@pytest.mark.parametrize("along", [True, False])
def test_too_long_steps_are_shortened(globalisation, along):
    objective = Steep()
    if not along:
        objective.capabilities = objective.capabilities - {"along"}
    result = train(objective, cold(globalisation, xi=0.1), stop=Stop(grad_inf=1e-8, max_iter=300))
    assert result.reason is StopReason.CONVERGED
    np.testing.assert_allclose(result.weights, objective.c, atol=1e-6)
    values = [p.objective for p in result.history]
    assert all(b < a for a, b in itertools.pairwise(values[:-3]))
    assert sum(p.extra["rejected"] for p in result.history[1:]) > 0, "the problem must force short steps"
    if globalisation == "line_search":
        assert min(p.step_size for p in result.history[1:]) < 1.0
        assert objective.counts.values > 0


def test_superlinear_forcing_has_falling_ratios_of_gaps():
    objective = CurvedLogistic(n_rows=200, n_weights=40, l2=0.05)
    best = train(objective, cold(xi=1e-6), stop=Stop(grad_inf=1e-12, max_iter=60)).objective
    ratios = {}
    for forcing in ("const", "superlinear"):
        run = train(objective, cold(forcing=forcing), stop=Stop(grad_inf=1e-6, max_iter=100))
        gaps = [p.objective - best for p in run.history]
        gaps = [gap for gap in gaps if gap > 1e-9]
        ratios[forcing] = [b / a for a, b in itertools.pairwise(gaps)]
        xis = [p.extra["xi"] for p in run.history[1:]]
        assert max(xis) == 0.5
        assert xis == sorted(xis, reverse=True)
        assert (xis[-1] < 0.05) == (forcing == "superlinear")
    last = ratios["superlinear"][-3:]
    assert last == sorted(last, reverse=True)
    assert last[-1] < 0.02 < np.mean(ratios["const"][-3:])


@pytest.mark.parametrize("combination", EVERY)
@pytest.mark.parametrize("cut", [0, 1, 4])
def test_resumed_run_is_the_uninterrupted_one(combination, cut):
    globalisation, forcing, preconditioner = combination
    trainer = cold(globalisation, forcing, preconditioner)
    whole = train(Steep(), trainer, stop=NINE)
    first = train(Steep(), trainer, stop=Stop(grad_inf=0, max_iter=cut), keep_state=True)
    second = train(Steep(), state=first.state, stop=NINE)
    assert second.weights.tobytes() == whole.weights.tobytes()
    assert without_time(second.history) == without_time(whole.history)
    assert second.passes == whole.passes, "what is computed again does not count"
    again = train(Steep(), state=first.state, stop=NINE)
    assert again.weights.tobytes() == whole.weights.tobytes(), "a state may be used twice"


@pytest.mark.parametrize("globalisation", ["trust_region", "line_search"])
def test_goes_to_rounding_level_and_ends_there(globalisation):
    objective = CurvedQuadratic(10, condition=100.0, offset=1e8)
    with pytest.warns(UserWarning, match="double precision"):
        result = train(objective, cold(globalisation), stop=Stop(grad_inf=0.0, max_iter=300))
    assert result.reason is StopReason.LINE_SEARCH
    assert result.iterations < 100
    assert result.grad_inf < 1e-4
    np.testing.assert_allclose(result.weights, objective.c, atol=1e-4)


def test_a_wolfe_search_ends_at_rounding_level_too():
    objective = CurvedLogistic(n_rows=200, n_weights=40, l2=0.05)
    with pytest.warns(UserWarning, match="double precision"):
        result = train(objective, cold("wolfe"), stop=Stop(grad_inf=0.0, max_iter=300))
    assert result.reason is StopReason.LINE_SEARCH
    assert result.iterations < 100
    assert result.grad_inf < 1e-10


@pytest.mark.parametrize("globalisation", GLOBALISATIONS)
def test_at_the_optimum_it_stops_at_once(globalisation):
    objective = CurvedQuadratic(5)
    (only,) = cold(globalisation).steps(objective, objective.c.copy())
    assert only.stop is StopReason.CONVERGED
    assert only.initial
    assert objective.counts.hvps == 0


@pytest.mark.parametrize("globalisation", GLOBALISATIONS)
@pytest.mark.parametrize("bad", [math.inf, math.nan])
def test_survives_points_where_the_objective_is_not_finite(globalisation, bad):
    class Walled(CurvedQuadratic):
        def smooth(self, w):
            value, g = super().smooth(w)
            return (value, g) if np.linalg.norm(w - self.c) < self.far else (bad, np.full_like(w, np.nan))

    objective = Walled(6, condition=1e4, seed=2)
    objective.far = 1.01 * np.linalg.norm(objective.c)
    result = train(objective, cold(globalisation, xi=0.01), stop=Stop(grad_inf=1e-6, max_iter=500))
    np.testing.assert_allclose(result.weights, objective.c, atol=1e-5)


@pytest.mark.parametrize("globalisation", GLOBALISATIONS)
def test_no_better_point_hands_back_the_last_good_one(globalisation):
    class Turning(CurvedQuadratic):
        """After some evaluations values rise whatever the step; gradients stay."""

        def smooth(self, w):
            value, g = super().smooth(w)
            return value + (self.counts.grads > 4) * 1e3 * (1 + self.counts.grads + self.counts.values), g

    objective = Turning(6)
    *_, before, last = cold(globalisation).steps(objective, np.zeros(6))
    assert last.stop is StopReason.LINE_SEARCH
    assert last.message
    assert last.objective == before.objective
    np.testing.assert_array_equal(last.w, before.w)


def test_a_full_step_costs_one_gradient_and_nothing_else():
    for globalisation in GLOBALISATIONS:
        objective = CurvedQuadratic(8, condition=3.0)
        result = train(objective, cold(globalisation, xi=0.1), stop=Stop(grad_inf=1e-9))
        assert objective.counts.grads == result.iterations + 1
        assert objective.counts.values == 0
        assert objective.counts.hvps == sum(p.extra["cg"] for p in result.history[1:])


def test_numbers_for_the_log():
    plain = train(CurvedLogistic(), cold(), stop=Stop(max_iter=3)).history[-1]
    assert plain.extra.keys() == {"cg", "rejected", "xi", "radius", "left"}
    assert plain.step_size <= plain.extra["radius"] * 4
    mixed = train(
        CurvedLogistic(), cold("line_search", preconditioner="diag", max_cg=2, xi=0.01), stop=Stop(max_iter=3)
    ).history[-1]
    left = mixed.extra.pop("left")
    assert 0.0 < left < math.inf
    assert mixed.extra == {"cg": 2.0, "rejected": 0.0, "xi": 0.01, "mix": 0.01}
    assert mixed.step_size == 1.0


def test_curvature_is_asked_for_and_given_back():
    objective = CurvedLogistic()
    trainer = NewtonCG(cache="2GiB", storage="pairs", curvature="ad")
    steps = trainer.steps(objective, np.zeros(objective.n_weights))
    next(steps)
    assert objective.kept == Curvature("2GiB", "pairs", ad=True)
    steps.close()
    assert objective.kept is None


def test_refusals():
    objective = CurvedLogistic()
    objective.capabilities = objective.capabilities - {"hessian_diagonal"}
    with pytest.raises(CapabilityError, match=r"diag.*needs hessian_diagonal, which CurvedLogistic"):
        train(objective, NewtonCG(preconditioner="diag"))
    for start, need in (("eg", "dual"), ("sgd", "online")):
        with pytest.raises(CapabilityError, match=rf"{start}.*needs {need}, which CurvedLogistic"):
            train(objective, NewtonCG(start))
    assert objective.counts.grads == 0
    with pytest.raises(OptionError, match="the dual needs l2"):
        train(crf(l2=0.0), NewtonCG("eg"))
    with pytest.raises(CapabilityError, match="needs hvp"):
        train(Logistic(), "newton_cg")


def test_cache_is_read_from_text():
    assert trainers.get("newton_cg", cache="4000").cache == 4000
    assert trainers.get("newton_cg", cache="500MB").cache == "500MB"
    assert trainers.get("newton_cg", cache="none").cache == "none"


@pytest.mark.parametrize("arithmetic", ["scaled", "log"])
def test_the_product_does_not_depend_on_what_is_kept(arithmetic):
    dataset = random_dataset(
        7, [3, 1, 9, 4, 12, 6], n_labels=5, n_attributes=9, n_edge_attributes=2, values=True, weighted=True
    )
    objective = make_objective(dataset, l2=0.3, boundary=True, arithmetic=arithmetic)
    rng = np.random.default_rng(0)
    w, v = rng.normal(size=(2, objective.n_weights))

    def product(curvature):
        objective.keep_curvature(curvature)
        objective.value_and_grad(w)
        return objective.hvp(v)

    expected = product(None)
    for storage in ("alphabeta", "pairs"):
        for cache in ("all", "none", 0, 4, "1kB"):
            np.testing.assert_allclose(product(Curvature(cache, storage)), expected, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(product(Curvature(ad=True)), expected, rtol=1e-12, atol=1e-12)


STARTS = ["auto", "sgd"]


def check_optimum(objective, l2, trainer="newton_cg"):
    """The gradient vanishes, and so the objective is that of L-BFGS: F - F* <= |g|^2 / (2 l2)."""
    tolerance = 1e-6 * max(1.0, l2)
    best = train(objective, "lbfgs", stop=Stop(grad_inf=tolerance, max_iter=2000))
    ours = train(objective, trainer, stop=Stop(grad_inf=tolerance, max_iter=300))
    assert ours.reason is StopReason.CONVERGED
    assert ours.objective == pytest.approx(best.objective, rel=1e-6, abs=1e-6)
    return ours


@given(problem=problems(), l2=st.sampled_from([1e-3, 0.7, 1e3]), start=st.sampled_from(STARTS))
@settings(max_examples=40)
def test_every_kind_of_problem(problem, l2, start):
    # Boundary, edges, values, sequence weights, one label, one position, observed and all weights are drawn.
    objective = make_objective(problem.dataset, problem.layout, l2=l2)
    check_optimum(objective, l2, NewtonCG(start))


@given(problem=problems(), l2=st.sampled_from([1e-3, 0.7, 1e3]))
@settings(max_examples=10)
def test_every_kind_of_problem_in_numpy(problem, l2):
    check_optimum(make_objective(problem.dataset, problem.layout, l2=l2, device="reference"), l2)


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("l2", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize(
    ("lengths", "n_labels"),
    [([1], 2), ([1, 1, 1], 3), ([1] * 30, 4), ([5], 3), ([2, 3], 3), ([4, 1, 2], 2), ([3, 2], 1)],
    ids=str,
)
def test_tiny_data(lengths, n_labels, l2, start):
    dataset = random_dataset(1, lengths, n_labels=n_labels)
    ours = check_optimum(make_objective(dataset, l2=l2, weights="all"), l2, NewtonCG(start))
    assert len(ours.weights) > 0


def test_without_penalty():
    # Many sequences with few attributes: labels overlap, so that there is an optimum.
    dataset = random_dataset(2, [4] * 60, n_labels=3)
    for weights in ("observed", "all"):
        objective = make_objective(dataset, l2=0.0, weights=weights)
        best = train(objective, "lbfgs", stop=Stop(grad_inf=1e-6, max_iter=2000))
        ours = train(objective, "newton_cg", stop=Stop(grad_inf=1e-6, max_iter=300))
        assert ours.reason is StopReason.CONVERGED
        assert ours.objective == pytest.approx(best.objective, rel=1e-8)


@pytest.mark.parametrize("device", ["cpu", "reference"])
def test_second_order(device):
    dataset = random_dataset(3, [3, 1, 4, 2, 5, 3], n_labels=3)
    try:
        objective = make_objective(dataset, l2=0.5, order=2, device=device)
    except CapabilityError:
        pytest.skip(f"{device} has first order alone")
    check_optimum(objective, 0.5)


def test_auto_is_newton_with_any_penalty():
    dataset = random_dataset(3, [3, 1, 4, 2, 5, 3], n_labels=3)
    auto = train(make_objective(dataset, l2=0.5))
    assert auto.trainer == "newton_cg"
    assert auto.weights.tobytes() == train(make_objective(dataset, l2=0.5), "newton_cg").weights.tobytes()
    assert train(make_objective(dataset, l2=0.5, l1=0.1)).trainer == "newton_cg"
    assert train(make_objective(dataset, l2=0.0), stop=Stop(max_iter=2)).trainer == "lbfgs"


@pytest.fixture
def trained(call, recipes, tmp_path):
    """Objective that a command line comes to."""

    def run(*options):
        ran = call("train", recipes / "train.columns", "-m", tmp_path / "m", "-q", "--json", *options, code=0)
        assert crfit.load(tmp_path / "m").labels
        return ran.json["objective"]

    return run


@pytest.mark.parametrize(
    "settings",
    [
        [], ["start=none"], ["start=sgd"], ["curvature=ad"], ["cache=4000"], ["cache=none"],
        ["storage=pairs"], ["globalisation=line_search", "preconditioner=diag"],
    ],
    ids=str,
)  # fmt: skip
def test_every_setting_trains_to_the_same_objective(trained, settings):
    options = [part for setting in settings for part in ("-o", setting)]
    ours = trained("--trainer", "newton_cg", *options, "--stop-grad-inf", 1e-3)
    assert ours == pytest.approx(trained("--trainer", "lbfgs", "--stop-grad-inf", 1e-3), rel=1e-6)


def test_rivals_train_to_the_same_objective(trained):
    best = trained("--trainer", "lbfgs", "--stop-grad-inf", 1e-3)
    assert trained("--trainer", "eg", "--stop-gap", 1e-4) == pytest.approx(best, abs=1e-3)
    near = trained("--trainer", "sgd", "-o", "schedule=exponential", "-o", "epochs=20")
    assert best <= near < 1.05 * best


def test_the_page_names_only_options_that_exist():
    page = (Path(__file__).parents[2] / "docs" / "newton_cg.md").read_text(encoding="utf-8")
    named = set(re.findall(r"-o (\w+)=", page))
    assert {"start", "cache"} <= named <= {entry.name for entry in trainers.describe("newton_cg").options}
