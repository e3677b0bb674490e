"""newton_cg as it comes, against L-BFGS: on drawn problems, on tiny ones, from the command line."""

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import crfit
from crfit import trainers
from crfit.engines import make_objective
from crfit.errors import CapabilityError
from crfit.trainers import NewtonCG
from crfit.training.loop import train
from crfit.training.stopping import Stop, StopReason
from oracle import problems, random_dataset

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


def test_auto_is_newton_without_l1():
    dataset = random_dataset(3, [3, 1, 4, 2, 5, 3], n_labels=3)
    auto = train(make_objective(dataset, l2=0.5))
    assert auto.trainer == "newton_cg"
    assert auto.weights.tobytes() == train(make_objective(dataset, l2=0.5), "newton_cg").weights.tobytes()
    assert train(make_objective(dataset, l2=0.5, l1=0.1)).trainer == "lbfgs"


@pytest.fixture
def trained(call, recipes, tmp_path):
    """Objective that a command line comes to."""

    def run(*options):
        ran = call("train", recipes / "train.columns", "-m", tmp_path / "m", "-q", "--json", *options)
        assert ran.code == 0, ran.err
        assert crfit.load(tmp_path / "m").labels
        return ran.json["objective"]

    return run


@pytest.mark.parametrize(
    "settings",
    [
        [],
        ["start=none"],
        ["start=sgd"],
        ["curvature=ad"],
        ["cache=4000"],
        ["cache=none"],
        ["storage=pairs"],
        ["globalisation=line_search", "preconditioner=diag"],
    ],
    ids=str,
)
def test_every_setting_trains_to_the_same_objective(trained, settings):
    options = [part for setting in settings for part in ("-o", setting)]
    ours = trained("--trainer", "newton_cg", *options, "--stop-grad-inf", 1e-3)
    assert ours == pytest.approx(trained("--trainer", "lbfgs", "--stop-grad-inf", 1e-3), rel=1e-6)


def test_rivals_train_to_the_same_objective(trained):
    best = trained("--trainer", "lbfgs", "--stop-grad-inf", 1e-3)
    assert trained("--trainer", "eg", "--stop-gap", 1e-4) == pytest.approx(best, abs=1e-3)
    near = trained("--trainer", "sgd", "-o", "schedule=exponential", "-o", "epochs=20")
    assert best <= near < 1.05 * best


def test_the_page_names_every_option():
    page = (Path(__file__).parents[2] / "docs" / "newton_cg.md").read_text(encoding="utf-8")
    named = re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)
    assert named == [entry.name for entry in trainers.describe("newton_cg").options]


def test_the_command_line_lists_every_option_with_its_default(call):
    described = call("trainers", "newton_cg")
    assert described.code == 0
    lines = described.out.splitlines()
    for entry in trainers.describe("newton_cg").options:
        (line,) = [line for line in lines if line.split()[:1] == [entry.name]]
        assert str(entry.default) in line
