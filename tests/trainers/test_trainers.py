"""Every registered trainer against the same optima, taken from the registry; L-BFGS and its orthant form."""

import functools
from collections.abc import Iterator
from dataclasses import FrozenInstanceError, dataclass
from itertools import pairwise
from typing import Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from convex import CurvedLogistic, Logistic, Quadratic
from crfit import trainers
from crfit.engines import make_objective
from crfit.errors import CapabilityError, OptionError
from crfit.layout import classifier_layout
from crfit.trainers import LBFGS, Step
from crfit.trainers.descriptions import CAPABILITIES, minimises, needs, ordered, stops
from crfit.trainers.options import option
from crfit.trainers.registry import _registry, register
from crfit.training.loop import train
from crfit.training.stopping import Stop, StopReason
from oracle import online_objective, random_dataset

EVERY = trainers.names()
# On-line trainers come near the optimum, see NEAR, and no nearer, or to another point.
EXACT = [name for name in EVERY if not {"online", "margin"} & trainers.describe(name).needs]
WITH_L1 = [name for name in EVERY if "l1" in trainers.describe(name).handles]


def fits(name, objective):
    try:
        trainers.check_capabilities(trainers.get(name), objective)
    except CapabilityError:
        return False
    return True


def items(**options):
    data = random_dataset(4, [1] * 20, n_labels=3, n_attributes=6)
    return make_objective(data, classifier_layout(data), l2=0.0, **options)


def newton_optimum(objective, w, steps=50):
    """Minimiser by damped Newton steps on differences of the gradient: no code in common with trainers."""
    n = objective.n_weights
    for _ in range(steps):
        f, g = objective.smooth(w)
        h = 1e-5
        hessian = np.array(
            [(objective.smooth(w + h * e)[1] - objective.smooth(w - h * e)[1]) / (2 * h) for e in np.eye(n)]
        )
        direction, step = np.linalg.solve(hessian, -g), 1.0
        while step > 1e-8 and objective.smooth(w + step * direction)[0] > f:
            step /= 2
        w = w + step * direction
    return w


def proximal_optimum(objective, steps=40_000):
    """Minimiser with l1 by accelerated soft thresholding."""
    lipschitz = 0.25 * np.linalg.norm(objective.x, 2) ** 2 + objective.l2
    w = z = np.zeros(objective.n_weights)
    t = 1.0
    for _ in range(steps):
        u = z - objective.smooth(z)[1] / lipschitz
        new = np.sign(u) * np.maximum(np.abs(u) - objective.l1 / lipschitz, 0.0)
        t_new = (1 + np.sqrt(1 + 4 * t * t)) / 2
        if (z - new) @ (new - w) > 0:
            t_new, z = 1.0, new
        else:
            z = new + (t - 1) / t_new * (new - w)
        w, t = new, t_new
    return w


@functools.cache
def l1_optimum(l1, l2):
    """Of `Logistic`, once for all trainers."""
    best = proximal_optimum(Logistic(l1=l1, l2=l2))
    best.flags.writeable = False
    return best


@pytest.mark.parametrize("name", EXACT)
def test_reaches_the_optimum_of_logistic_regression(name):
    objective = Logistic()
    if not fits(name, objective):
        pytest.skip("needs an objective made of sequences")
    best = newton_optimum(objective, np.zeros(objective.n_weights))
    result = train(objective, name, stop=Stop(grad_inf=1e-6, max_iter=5000))
    assert result.reason is StopReason.CONVERGED
    np.testing.assert_allclose(result.weights, best, atol=1e-5)
    assert result.objective == pytest.approx(objective.full(best), rel=1e-10)


@pytest.mark.parametrize("name", EXACT)
@pytest.mark.parametrize("options", [{}, {"boundary": True, "weights": "all"}], ids=["plain", "boundary"])
def test_reaches_the_optimum_of_a_crf(name, options):
    dataset = random_dataset(3, [3, 1, 4, 2, 5, 3], n_labels=3, n_attributes=6)
    objective = make_objective(dataset, l2=0.5, device="reference", **options)
    if not fits(name, objective):
        pytest.skip("does not minimise this objective")
    objective.smooth = objective.value_and_grad
    best = newton_optimum(objective, np.zeros(objective.n_weights), steps=8)
    result = train(objective, name, stop=Stop(grad_inf=1e-6, max_iter=5000))
    assert result.reason is StopReason.CONVERGED
    np.testing.assert_allclose(result.weights, best, atol=1e-5)


@pytest.mark.parametrize("name", WITH_L1)
@pytest.mark.parametrize("l2", [0.0, 0.5])
def test_l1_optimum(name, l2):
    objective = Logistic(l1=2.0, l2=l2)
    if not fits(name, objective):
        pytest.skip("needs an objective made of sequences")
    best = l1_optimum(2.0, l2)
    assert 0 < np.count_nonzero(best) < objective.n_weights, (
        "the test problem must have both kinds of weights"
    )
    result = train(objective, name, stop=Stop(grad_inf=1e-7, max_iter=5000))
    w, g = result.weights, objective.smooth(result.weights)[1]
    np.testing.assert_array_equal(w != 0, best != 0)
    np.testing.assert_allclose(w, best, atol=1e-6)
    assert (np.abs(g[w == 0]) <= objective.l1 + 1e-6).all()
    np.testing.assert_allclose(g[w != 0], -objective.l1 * np.sign(w[w != 0]), atol=1e-6)
    assert result.objective == pytest.approx(objective.full(best), rel=1e-12)


@pytest.mark.parametrize("name", sorted({*EVERY} - {*WITH_L1, "auto"}))
def test_other_trainers_refuse_l1(name):
    objective = (CurvedLogistic if fits(name, CurvedLogistic()) else items)(l1=1.0)
    with pytest.raises(CapabilityError, match=r"does not handle l1 > 0; use one of: .*lbfgs"):
        train(objective, name)
    assert objective.counts.sequences == 0


@pytest.mark.parametrize("name", EVERY)
def test_two_runs_give_the_same_bytes(name):
    if not fits(name, Logistic()):
        pytest.skip("needs an objective made of sequences")
    runs = [train(Logistic(), name, stop=Stop(max_iter=7)).weights.tobytes() for _ in range(2)]
    assert runs[0] == runs[1]


@pytest.mark.parametrize("name", EVERY)
def test_registry_entry_is_complete(name):
    info = trainers.describe(name)
    assert info.name == name
    assert info.summary.endswith(".")
    assert info.formula
    assert info.choose, "docs/trainers.md says when to use each"
    assert info.keeps
    assert set(info.needs) <= CAPABILITIES.keys(), "give the capability its words"
    assert all(entry.help and entry.type for entry in info.options)
    trainer = trainers.get(name)
    assert trainers.options_of(trainer) == {entry.name: entry.default for entry in info.options}
    assert trainers.info_of(trainer) is info
    spelled = {entry.name: str(entry.default) for entry in info.options}
    assert trainers.get(name, **spelled) == trainer, "defaults must survive being written on a command line"
    if info.options:
        with pytest.raises(FrozenInstanceError):
            setattr(trainer, info.options[0].name, info.options[0].default)


@pytest.mark.parametrize("name", EVERY)
def test_the_command_line_lists_every_option_with_its_default(name, call):
    described = call("trainers", name, code=0)
    for entry in trainers.describe(name).options:
        (line,) = [line for line in described.out.splitlines() if line.split()[:1] == [entry.name]]
        assert str(entry.default) in line


ON_THE_COMMAND_LINE = {
    "sgd": "epochs=5 eta0=0.1 batch=4 schedule=exponential",
    "ngd": "epochs=12 batch=4",
    "adagrad": "epochs=12",
    "gis": "map=T bins=4",
}


@pytest.mark.parametrize(
    ("name", "options"), [*ON_THE_COMMAND_LINE.items(), ("ngd", "epochs=12 batch=all")], ids=str
)
def test_on_the_command_line(call, recipes, tmp_path, name, options):
    words = [word for pair in options.split() for word in ("-o", pair)]
    data = recipes / "train.columns"
    ran = call("train", data, "-m", tmp_path / "m", "--json", "--trainer", name, *words, "--max-iter", 12)
    assert ran.code == 0, ran.err
    assert ran.json["trainer"] == name
    assert ran.json["iterations"] == (5 if name == "sgd" else 12)
    scores = call("eval", recipes / "test.columns", "-m", tmp_path / "m", "--json").json
    assert scores["accuracy"] > (40 if name == "gis" else 70)


def test_the_words_of_a_trainer_are_those_of_its_rules():
    told = {info.name: (minimises(info), needs(info), stops(info)) for info in ordered()}
    assert told["lbfgs"] == (
        "F with l1 and l2 (also toward old weights)",
        "value and gradient",
        "when F changes by less than 1e-5 (relative) over 10 iterations, or at the limit of double precision",
    )
    assert told["newton_cg"][2].startswith("when F changes by less than 1e-5 (relative) over one iteration,")
    assert told["sgd"][2] == "when the running objective improves by less than 1e-6 (relative) over 10 epochs"
    assert told["gis"][2].startswith("when |gradient| is at most 1e-3 max(1, |w|) or F changes by less than")
    assert "(reported as stalled)" in told["gis"][2]
    assert told["pa"][::2] == (
        "mistakes of the best path, not F",
        "after 100 epochs (`epochs`), or when no mistakes are left (without averaging)",
    )
    assert told["auto"][2] == "as the trainer it picks"


def test_trainers_are_shown_like_by_like():
    shown = [info.name for info in ordered()]
    assert sorted(shown) == sorted(trainers.names())
    assert shown[:3] == ["auto", "lbfgs", "newton_cg"]
    assert (
        shown.index("eg") < shown.index("sgd") < shown.index("gis") < shown.index("iis") < shown.index("pa")
    )


@pytest.fixture
def tiny():
    """A trainer registered for one test."""

    @register("tiny", needs={"hvp"}, handles={"l2"}, formula="w <- w")
    @dataclass(frozen=True)
    class Tiny:
        """Does nothing."""

        count: int = option(3, help="how often", at_least=1)
        rate: float | None = option(None, help="how fast", above=0.0)
        cache: Literal["all", "none"] = option("all", help="what is kept")
        shuffle: bool = option(True, help="whether to shuffle")

        def steps(self, objective, w, state=None) -> Iterator[Step]:
            yield Step(w)

    yield Tiny
    del _registry["tiny"]


def test_options_are_read_by_type(tiny):
    read = trainers.get("tiny", count="7", rate="0.5", cache="none", shuffle="off")
    assert read == tiny(7, 0.5, "none", False)
    assert trainers.get("tiny", rate="none", shuffle="True") == tiny()
    assert [entry.type for entry in trainers.describe("tiny").options] == [
        "int", "float | None", "'all' | 'none'", "bool",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("key", "value", "remedy"),
    [
        ("count", "x", "must be int"), ("count", "1.5", "must be int"), ("count", 1.5, "must be int"),
        ("count", True, "must be int"), ("count", "0", "at least 1"), ("rate", "0", "above 0"),
        ("rate", "nan", "above 0"), ("rate", [1], "must be float | None"),
        ("cache", "some", "'all' | 'none'"), ("shuffle", "maybe", "must be bool"),
        ("shuffle", 1, "must be bool"), ("speed", "1", "count, rate, cache, shuffle"),
    ],
)  # fmt: skip
def test_bad_options_are_refused(tiny, key, value, remedy):
    with pytest.raises(OptionError) as caught:
        trainers.get("tiny", **{key: value})
    assert key in str(caught.value)
    assert remedy in str(caught.value)


def test_unknown_trainer_names_the_near_one():
    with pytest.raises(OptionError, match="unknown, did you mean lbfgs"):
        trainers.get("l-bfgs")
    with pytest.raises(OptionError, match="unknown; choose one of lbfgs, "):
        trainers.get("foo")
    with pytest.raises(OptionError, match=r"auto has no options; name a trainer, .* lbfgs -o memory=3"):
        trainers.get("auto", memory=3)


def test_refuses_before_any_work(tiny):
    objective = Logistic()
    with pytest.raises(CapabilityError, match=r"needs hvp, which Logistic does not offer.*lbfgs"):
        train(objective, "tiny")
    objective.capabilities = objective.capabilities | {"hvp"}
    objective.l1 = 0.5
    with pytest.raises(CapabilityError, match=r"does not handle l1 > 0; use one of: .*lbfgs"):
        train(objective, tiny())
    with pytest.raises(CapabilityError, match="does not report gap"):
        train(objective, "lbfgs", stop=Stop(gap=1.0))
    assert objective.counts.grads == objective.counts.values == 0


def test_register_checks_the_class():
    with pytest.raises(TypeError, match="dataclass"):
        register("bad")(object)

    @dataclass(frozen=True)
    class Bare:
        memory: int = 3

        def steps(self, objective, w, state=None):
            yield Step(w)

    with pytest.raises(TypeError, match=r"Bare\.memory"):
        register("bad")(Bare)
    with pytest.raises(ValueError, match="taken"):

        @register("lbfgs")
        @dataclass(frozen=True)
        class Other:
            def steps(self, objective, w, state=None):
                yield Step(w)


def points(objective, trainer, n, w=None):
    """Weights, objective, step size of the first n steps."""
    steps = trainer.steps(objective, np.zeros(objective.n_weights) if w is None else w)
    taken = []
    for _ in range(n):
        step = next(steps, None)
        if step is None:
            break
        taken.append((step.w.copy(), step.objective, step.step_size, step))
    return taken


def test_lbfgs_options():
    assert (LBFGS().memory, LBFGS().wolfe_decrease, LBFGS().wolfe_slope, LBFGS().max_trials) == (
        10, 1e-4, 0.9, 20,
    )  # fmt: skip
    with pytest.raises(OptionError, match="memory"):
        LBFGS(memory=0)
    with pytest.raises(OptionError, match="smaller than wolfe_slope"):
        LBFGS(wolfe_decrease=0.5, wolfe_slope=0.4)


def test_lbfgs_first_step_has_length_one_then_full_steps():
    objective = Quadratic(condition=4.0, n_weights=30)
    objective.c *= 30 / np.linalg.norm(objective.c)
    taken = points(objective, LBFGS(), 8)
    assert taken[0][3].initial
    first = taken[1][3]
    # 1/|g| along -g moves by one; the search may lengthen it.
    assert taken[1][2] * np.linalg.norm(objective.smooth(taken[0][0])[1]) == pytest.approx(
        np.linalg.norm(taken[1][0] - taken[0][0])
    )
    assert first.step_size >= 1 / np.linalg.norm(objective.smooth(taken[0][0])[1])
    assert [t[2] for t in taken[3:]] == [1.0] * 5


@given(seed=st.integers(0, 2**31), memory=st.integers(1, 12), condition=st.sampled_from([1.0, 1e2, 1e5]))
@settings(deadline=None, max_examples=30)
def test_lbfgs_descends_and_reports_what_it_has(seed, memory, condition):
    objective = Quadratic(12, condition=condition, seed=seed)
    taken = points(objective, LBFGS(memory=memory), 15)
    values = [value for _, value, _, _ in taken]
    assert all(b <= a + 1e-13 * abs(a) for a, b in pairwise(values))
    for w, value, _, step in taken:
        f, g = objective.smooth(w)
        assert value == f
        assert step.grad_inf == pytest.approx(np.abs(g).max(), rel=1e-12)
        assert step.grad_norm == pytest.approx(np.linalg.norm(g), rel=1e-12)


def test_lbfgs_uses_five_vectors_and_one_more_with_l1():
    for l1, expected in ((0.0, 4), (0.5, 5)):
        objective = Logistic(l1=l1)
        allocated = []

        class Counting:
            float64 = np.float64

            def __getattr__(self, name):
                return getattr(np, name)

            def empty_like(self, a, allocated=allocated):
                allocated.append(a.size)
                return np.empty_like(a)

        objective.xp = Counting()
        w0 = np.zeros(objective.n_weights)
        seen = set()
        for k, step in enumerate(LBFGS(memory=3).steps(objective, w0)):
            seen.add(step.w.ctypes.data)
            if k == 12:
                break
        assert len(allocated) == expected, "besides w itself"
        assert len(seen) == 2, "weights move between two buffers"
        assert w0.ctypes.data in seen


def test_lbfgs_at_the_optimum_stops_at_once():
    objective = Quadratic(5)
    (only,) = points(objective, LBFGS(), 3, objective.c.copy())
    assert only[3].stop is StopReason.CONVERGED


def test_lbfgs_goes_to_rounding_level_and_ends_there():
    # A large constant hides the last decreases of F: only a precision-aware search gets the gradient down.
    objective = Quadratic(10, condition=100.0, offset=1e8)
    with pytest.warns(UserWarning, match="double precision"):
        result = train(objective, "lbfgs", stop=Stop(grad_inf=0.0, max_iter=3000))
    assert result.reason is StopReason.LINE_SEARCH
    assert result.iterations < 1000
    assert result.grad_inf < 1e-5
    np.testing.assert_allclose(result.weights, objective.c, atol=1e-5)


def test_lbfgs_survives_infinite_trials():
    class Walled(Quadratic):
        def smooth(self, w):
            value, g = super().smooth(w)
            return (value, g) if np.abs(w).max() < 4 else (np.inf, np.full_like(w, np.nan))

    objective = Walled(6, condition=1e4, seed=2)
    result = train(objective, "lbfgs", stop=Stop(grad_inf=1e-6, max_iter=500))
    np.testing.assert_allclose(result.weights, objective.c, atol=1e-5)


def test_failed_search_clears_the_memory_once():
    class Turning(Quadratic):
        """After some evaluations values rise whatever the step; gradients stay."""

        def smooth(self, w):
            value, g = super().smooth(w)
            return value + (self.counts.grads > 8) * 1e3 * self.counts.grads, g

    objective = Turning(6)
    steps = list(LBFGS(max_trials=5).steps(objective, np.zeros(6)))
    assert steps[-1].stop is StopReason.LINE_SEARCH
    assert steps[-1].objective == steps[-2].objective, "the last good point"
    np.testing.assert_array_equal(steps[-1].w, steps[-2].w)
    assert objective.counts.grads <= 8 + 2 * 6, "one search with the memory, one without"


def test_owlqn_with_tiny_l1_is_lbfgs_and_without_is_exactly():
    plain = train(Logistic(l1=0.0), "lbfgs", stop=Stop(grad_inf=1e-8))
    tiny = train(Logistic(l1=1e-12), "lbfgs", stop=Stop(grad_inf=1e-7))
    np.testing.assert_allclose(tiny.weights, plain.weights, atol=1e-6)
    assert (
        train(Logistic(l1=0.0), LBFGS(), stop=Stop(grad_inf=1e-8)).weights.tobytes()
        == plain.weights.tobytes()
    )


def test_owlqn_large_l1_keeps_all_weights_at_zero():
    objective = Logistic()
    objective.l1 = 1.01 * np.abs(objective.smooth(np.zeros(objective.n_weights))[1]).max()
    result = train(objective, "lbfgs", stop=Stop(grad_inf=1e-9))
    assert result.iterations == 0
    assert not result.weights.any()
    assert result.grad_inf == 0.0


def test_owlqn_reports_the_pseudo_gradient_of_the_current_point():
    objective = Logistic(l1=2.0)
    for w, value, _, step in points(objective, LBFGS(), 12):
        g = objective.smooth(w)[1]
        shrunk = np.sign(g) * np.maximum(np.abs(g) - 2.0, 0.0)
        v = np.where(w != 0, g + 2.0 * np.sign(w), shrunk)
        assert step.grad_inf == pytest.approx(np.abs(v).max(), rel=1e-12)
        assert value == pytest.approx(objective.full(w), rel=1e-14)
        if not step.initial:
            assert step.extra["active"] == np.count_nonzero(w)


@given(seed=st.integers(0, 2**31), l1=st.sampled_from([0.3, 1.0, 4.0]), l2=st.sampled_from([0.0, 1.0]))
@settings(deadline=None, max_examples=25)
def test_owlqn_optimality_conditions(seed, l1, l2):
    objective = Logistic(n_rows=40, n_weights=8, l1=l1, l2=l2, seed=seed)
    result = train(objective, "lbfgs", stop=Stop(grad_inf=1e-5, max_iter=2000))
    assert result.reason is StopReason.CONVERGED
    w, g = result.weights, objective.smooth(result.weights)[1]
    assert (np.abs(g[w == 0]) <= l1 + 1e-5).all()
    assert (np.abs(g[w != 0] + l1 * np.sign(w[w != 0])) <= 1e-5).all()


SLOW = {"epochs": 40, "batch": 1, "eta0": 0.3, "alpha": 0.99, "beta": 0.95}
#: On-line trainers, and how far above the optimum they may end, as a share of it.
NEAR = [
    (trainers.SGD(schedule="inverse", eta0=0.3, epochs=40), 5e-3),
    (trainers.SGD(schedule="exponential", eta0=0.2, decay=0.9, epochs=40), 5e-3),
    (trainers.SGD(schedule="bottou", eta0=0.1, epochs=40), 0.02),
    (trainers.SGD(schedule="power", eta0=0.1, averaging=1, epochs=40), 5e-3),
    (trainers.SGD(schedule="constant", eta0=0.05, averaging=5, epochs=40), 5e-3),
    (trainers.SGD(schedule="constant", eta0=0.05, averaging=5, batch=3, epochs=40), 5e-3),
    (trainers.SMD(epochs=30, eta0=0.05), 0.02),
    (trainers.SMD(epochs=30, eta0=0.05, averaging=5), 5e-3),
    (trainers.AdaGrad(epochs=60, eta0=0.3), 0.01),
    (trainers.PSA(**SLOW), 0.02),
    (trainers.Aitken(**SLOW, scope="group"), 0.02),
    (trainers.Aitken(**SLOW), 0.02),
]


@pytest.mark.parametrize(("trainer", "above"), NEAR, ids=str)
def test_online_trainers_come_near_the_optimum_and_settle(trainer, above):
    def end(one):
        return train(online_objective(), one, stop=Stop(grad_inf=0))

    best = train(online_objective(), LBFGS(), stop=Stop(grad_inf=1e-6)).objective
    found = end(trainer)
    assert found.reason is StopReason.MAX_ITER
    assert found.objective == pytest.approx(online_objective().value(found.weights), rel=1e-12)
    assert best < found.objective < (1 + above) * best
    assert found.objective < end(trainers.SGD(schedule="constant", eta0=0.3, epochs=40)).objective
