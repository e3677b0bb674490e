"""The l2 penalty on the distance to old weights: values, derivatives, and who can minimise it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crfit import trainers
from crfit.engines import make_objective
from crfit.errors import CapabilityError, OptionError
from crfit.layout import make_layout
from crfit.training.loop import train
from crfit.training.stopping import Stop
from oracle import problems, random_dataset

every_device = pytest.mark.parametrize("device", ["cpu", "reference"])


def pulled(problem, device, centre, **options):
    return make_objective(problem.dataset, problem.layout, l2=0.7, device=device, toward=centre, **options)


@every_device
@given(problem=problems(), share=st.booleans())
@settings(max_examples=40)
def test_it_is_the_loss_and_the_distance(problem, device, share):
    centre = problem.direction(1)
    objective, w = pulled(problem, device, centre), problem.w
    loss = make_objective(problem.dataset, problem.layout, l2=0.0, device=device)
    ids = np.arange(max(1, problem.dataset.n_sequences - 1)) if share else None
    part = 1.0 if ids is None else len(ids) / problem.dataset.n_sequences
    distance = 0.35 * part * float((w - centre) @ (w - centre))
    assert objective.value(w, ids) == pytest.approx(loss.value(w, ids) + distance, rel=1e-12, abs=1e-9)
    value, g = objective.value_and_grad(w, subset=ids)
    _, own = loss.value_and_grad(w, subset=ids)
    assert value == pytest.approx(objective.value(w, ids), rel=1e-12, abs=1e-9)
    np.testing.assert_allclose(g, own + 0.7 * part * (w - centre), atol=1e-9)


@every_device
@given(problem=problems(order=2))
@settings(max_examples=25)
def test_derivatives_are_those_of_the_values(problem, device):
    objective = pulled(problem, device, problem.direction(1))
    w, v, h = problem.w, problem.direction(2), 1e-5
    _, g = objective.value_and_grad(w)
    hv, along = objective.hvp(v), objective.along(v)
    value, slope = along(0.3)
    assert value == pytest.approx(objective.value(w + 0.3 * v), rel=1e-10, abs=1e-9)
    far, near = objective.value(w + h * v), objective.value(w - h * v)
    assert float(g @ v) == pytest.approx((far - near) / (2 * h), rel=1e-5, abs=1e-4)
    _, up = objective.value_and_grad(w + h * v)
    up = up.copy()
    _, down = objective.value_and_grad(w - h * v)
    np.testing.assert_allclose(hv, (up - down) / (2 * h), rtol=1e-4, atol=1e-4)
    _, there = objective.value_and_grad(w + 0.3 * v)
    assert slope == pytest.approx(float(there @ v), rel=1e-8, abs=1e-8)


def chain(device="cpu", **options):
    data = random_dataset(3, [4] * 12, n_labels=3, n_attributes=6)
    layout = make_layout(data, boundary=True)
    centre = np.random.default_rng(0).normal(size=layout.n_weights)
    return make_objective(data, layout, l2=0.5, device=device, toward=centre, **options), centre


@pytest.mark.parametrize("name", ["lbfgs", "bfgs", "newton_cg", "auto"])
def test_trainers_find_the_optimum_of_other_variables(name):
    objective, centre = chain()
    found = train(objective, name, w0=centre, stop=Stop(grad_inf=1e-8))
    # w = centre + u: by hand, with a plain gradient method on u
    loss = make_objective(objective.dataset, objective.layout, l2=0.0)
    u = np.zeros_like(centre)
    for _ in range(20_000):
        _, g = loss.value_and_grad(centre + u)
        u -= 0.02 * (g + 0.5 * u)
    np.testing.assert_allclose(found.weights, centre + u, atol=1e-6)


def test_with_l1_it_is_the_optimum_of_both_penalties():
    objective, centre = chain(l1=0.3)
    results = [train(objective, name, w0=centre, stop=Stop(grad_inf=1e-8)) for name in ("lbfgs", "newton_cg")]
    np.testing.assert_allclose(results[0].weights, results[1].weights, atol=1e-6)
    assert (results[0].weights == 0.0).any()


@pytest.mark.parametrize(
    "name", sorted(set(trainers.names(others=True)) - {"lbfgs", "bfgs", "newton_cg", "auto"})
)
def test_others_refuse_and_say_which_can(name):
    objective, _ = chain()
    info = trainers.describe(name)
    if "toward" in info.handles:
        pytest.skip("another name of one that can")
    with pytest.raises(CapabilityError, match=r"l2 toward old weights; use one of: .*lbfgs"):
        trainers.check_capabilities(trainers.get(name), objective)


def test_wrong_weights_are_refused():
    data = random_dataset(3, [4, 2], n_labels=2)
    n = make_objective(data).n_weights
    for wrong, told in ((np.zeros(n + 1), "weights"), (np.full(n, np.nan), "finite")):
        with pytest.raises(OptionError, match=told):
            make_objective(data, toward=wrong)
    with pytest.raises(CapabilityError, match="groups cannot share"):
        make_objective(data, toward=np.zeros(n)).aggregated(np.arange(data.n_attributes))


def test_unpenalised_weights_are_not_pulled():
    data = random_dataset(3, [1] * 9, n_labels=3)
    layout = make_layout(data, weights="all", transitions="none", n_free=1)
    centre = np.ones(layout.n_weights)
    objective = make_objective(data, layout, l2=0.5, toward=centre)
    assert not objective.centre[layout.free].any()
    w = np.zeros(layout.n_weights)
    penalised = layout.n_weights - layout.n_labels
    assert objective.value(w) == pytest.approx(9 * np.log(3) + 0.25 * penalised)


def test_results_do_not_depend_on_threads():
    found = [train(chain(n_threads=n)[0], "lbfgs", w0=chain()[1]).weights.tobytes() for n in (1, 2)]
    assert found[0] == found[1]
