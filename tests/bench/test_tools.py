"""The tools that crfit is compared with minimise the same function, and what they say is read rightly."""

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import crfit
from bench.problems import Loaded, Problem
from bench.tools import TOOLS
from bench.tools.classifiers import weights_of
from bench.tools.programs import follow
from bench.tools.tool import Limits, Recording, Tool, ToolError
from crfit.racing.result import Curve, Status

python_crfsuite, libwapiti, crfpp, scikit_learn, liblinear, glum, crfit_race = (
    TOOLS[name]
    for name in (
        *("python_crfsuite", "libwapiti_library", "crfpp_program"),
        *("scikit_learn", "liblinear_lr", "glum_glm", "crfit_race"),
    )
)
CRFSUITE, WAPITI, LINEAR = [python_crfsuite], [libwapiti], [scikit_learn, liblinear, glum]
ALL = [*CRFSUITE, *WAPITI, *LINEAR, crfpp]


def tool_name(one: Any) -> str:
    return one.NAME if isinstance(one, Tool) else str(one)


def needs(tool: Tool) -> None:
    if reason := tool.absent():
        pytest.skip(reason)


OPTIMA: dict[Problem, tuple[float, crfit.Model]] = {}


def optimum(loaded: Loaded) -> tuple[float, crfit.Model]:
    """F* and the model that has it, once for each problem."""
    if loaded.problem not in OPTIMA:
        objective = loaded.objective()
        result = crfit.train(objective, "lbfgs", stop=crfit.Stop(grad_inf=1e-4, max_iter=2000))
        model = crfit.Model.from_training(objective, result)
        OPTIMA[loaded.problem] = objective.full_value(result.weights), model
    return OPTIMA[loaded.problem]


@pytest.fixture(scope="module")
def chain() -> Loaded:
    whole = Problem("small", "recipes", n_train=80, l2=0.8).load(None)
    assert whole.test is not None
    return replace(whole, test=whole.test.subset(range(100)))


def classifier(n_labels: int, **penalty: float) -> Loaded:
    """Documents of six words, with values where there are two labels."""
    rng = np.random.default_rng(n_labels)
    words = [rng.choice(30, 6, replace=False) for _ in range(150)]
    pull = rng.normal(size=(30, n_labels))
    labels = [[f"c{np.argmax(pull[w].sum(axis=0) + rng.gumbel(size=n_labels))}"] for w in words]
    if n_labels == 2:
        items: list[Any] = [[{f"w{j}": float(rng.integers(1, 4)) for j in w}] for w in words]
    else:
        items = [[[f"w{j}" for j in w]] for w in words]
    train, test = crfit.Dataset.from_sequences(items, labels).split(0.8)
    problem = Problem("toy", "none", "classifier", binary=n_labels == 2, **penalty)  # type: ignore[arg-type]
    return Loaded(problem, train, test)


def check_curve(curve: Curve, loaded: Loaded, best: float) -> None:
    """A run to the end, told in our units."""
    assert not curve.status.bad, curve.message
    assert curve.status.finished
    assert curve.problem == loaded.problem.name
    start, last = curve.points[0], curve.points[-1]
    objective = loaded.objective()
    assert (start.iteration, start.seconds) == (0, 0.0)
    assert start.objective == objective.full_value(np.zeros(objective.n_weights))
    assert last.objective == pytest.approx(best, rel=1e-5)
    assert curve.lowest >= best * (1 - 1e-9)
    assert [p.seconds for p in curve.points] == sorted(p.seconds for p in curve.points)
    assert set(last.scores) == {"accuracy", "f1"}


@pytest.mark.parametrize("tool", [*CRFSUITE, *WAPITI], ids=tool_name)
def test_chain(tool: Tool, chain: Loaded) -> None:
    needs(tool)
    best, model = optimum(chain)
    curve = tool.run(chain, Limits())
    check_curve(curve, chain, best)
    assert chain.test is not None
    ours = crfit.evaluation.evaluate(chain.label_lists("test"), model.tag_many(chain.attribute_lists("test")))
    assert curve.points[-1].scores["accuracy"] == pytest.approx(ours.accuracy, abs=0.3)
    assert curve.points[-1].scores["f1"] == pytest.approx(ours.f1, abs=0.5)


OTHERS: list[dict[str, Any]] = [
    {"l1": 0.3},
    *({"weights": "observed", "transitions": t} for t in ("all", "observed")),
]


@pytest.mark.parametrize("tool", [*CRFSUITE, *WAPITI], ids=tool_name)
@pytest.mark.parametrize("changes", OTHERS, ids=str)
def test_chain_with_other_penalties_and_weights(tool: Tool, changes: dict[str, Any], chain: Loaded) -> None:
    needs(tool)
    loaded = replace(chain, problem=replace(chain.problem, **changes))
    if "weights" in changes and tool in WAPITI:
        assert "no way to leave some out" in tool.run(loaded, Limits()).message
    else:
        check_curve(tool.run(loaded, Limits()), loaded, optimum(loaded)[0])


@pytest.mark.parametrize("tool", [*CRFSUITE, *WAPITI], ids=tool_name)
def test_run_ends_at_an_objective(tool: Tool, chain: Loaded) -> None:
    needs(tool)
    target = 1.02 * optimum(chain)[0]
    curve = tool.run(chain, Limits(objective=target))
    assert curve.status == Status.LIMIT
    assert "objective" in curve.message
    values = [point.objective for point in curve.points if point.objective is not None]
    reached = next(n for n, value in enumerate(values) if value <= target)
    assert reached >= len(values) - 3  # Wapiti may do a little more until it sees the signal
    assert curve.points[-1].scores["f1"] > 0


def test_ours_ends_at_an_objective_too(chain: Loaded) -> None:
    target = 1.02 * optimum(chain)[0]
    for variant in crfit_race.VARIANTS:
        curve = crfit_race.run(chain, Limits(objective=target), variant)
        values = [point.objective for point in curve.points if point.objective is not None]
        reached = next(n for n, value in enumerate(values) if value <= target)
        assert reached >= len(values) - 2  # the warm-up may reach it one pass before the trainer sees it
        assert curve.status == Status.CONVERGED
        assert "objective" in curve.message
        assert curve.points[-1].scores["f1"] > 0
    assert (crfit_race.threads(2), crfit_race.threads(2, "one thread")) == (2, 1)


def test_no_second_training_when_the_time_is_over(chain: Loaded, capsys: pytest.CaptureFixture[str]) -> None:
    needs(python_crfsuite)
    curve = python_crfsuite.run(chain, Limits(seconds=0.0))
    assert (curve.status, curve.points[-1].iteration) == (Status.LIMIT, 1)
    assert not curve.points[-1].scores
    assert capsys.readouterr().out.count("oss: ") == 1, "its log, of one training"


@pytest.mark.parametrize("tool", [*CRFSUITE, *WAPITI], ids=tool_name)
def test_run_ends_after_iterations(tool: Tool, chain: Loaded) -> None:
    needs(tool)
    curve = tool.run(chain, Limits(max_iter=4, scores=False))
    assert (curve.status, curve.points[-1].iteration, len(curve.points)) == (Status.LIMIT, 4, 5)
    assert not curve.points[-1].scores


def test_stochastic_gradient_of_crfsuite(chain: Loaded) -> None:
    needs(python_crfsuite)
    best = optimum(chain)[0]
    curve = python_crfsuite.run(chain, Limits(max_iter=40, objective=1.002 * best), "l2sgd")
    assert best < curve.lowest < 1.01 * best
    assert curve.label == "CRFsuite (python-crfsuite), l2sgd"
    assert [point.passes for point in curve.points[:5]] == [0, 1, 2, 3, 5]


TWO = classifier(2, l2=0.7)
FOUR = classifier(4, l2=0.7)
BOTH = classifier(2, l2=0.6, l1=0.4)
CLASSIFIERS = {"two": TWO, "two, l1": classifier(2, l2=0.0, l1=1.1), "two, both": BOTH, "four": FOUR}


#: Settings that go to the optimum; stochastic gradients do not.
SETTINGS = [
    (tool, variant)
    for tool in [*CRFSUITE, *WAPITI, *LINEAR]
    for variant in tool.VARIANTS
    if variant != "l2sgd"
]


@pytest.mark.parametrize(("tool", "variant"), SETTINGS, ids=tool_name)
@pytest.mark.parametrize("kind", CLASSIFIERS)
def test_classifiers(tool: Tool, variant: str, kind: str) -> None:
    needs(tool)
    loaded = CLASSIFIERS[kind]
    curve = tool.run(loaded, Limits(max_iter=200, n_threads=1), variant)
    if reason := tool.refuses(loaded.problem, variant):
        assert (curve.status, curve.message) == (Status.FAILED, reason)
    elif tool in WAPITI and loaded is not FOUR:
        assert curve.status == Status.FAILED
        assert "values of attributes" in curve.message
    else:
        check_curve(curve, loaded, optimum(loaded)[0])


def test_two_vectors_for_one() -> None:
    """F at the two vectors is the tool's own function of its one vector."""
    u = np.random.default_rng(1).normal(size=TWO.train.n_attributes)
    scores = np.zeros(TWO.train.n_sequences)
    assert TWO.train.attr_values is not None
    rows = np.repeat(np.arange(TWO.train.n_tokens), np.diff(TWO.train.attr_ptr))
    np.add.at(scores, rows, TWO.train.attr_values * u[TWO.train.attr_ids])
    sign = np.where(TWO.train.labels == 1, 1.0, -1.0)
    theirs = np.log1p(np.exp(-sign * scores)).sum() + 0.7 / 4 * u @ u
    assert TWO.objective().full_value(weights_of(TWO.problem, u)) == pytest.approx(theirs, rel=1e-12)


@pytest.mark.parametrize("tool", [*ALL, crfit_race], ids=tool_name)
def test_module_says_what_it_can(tool: Tool) -> None:
    assert all(tool.threads(2, variant) in (1, 2) for variant in tool.VARIANTS)
    assert not tool.SOLVES - {"chain", "classifier", "binary"}
    assert tool.absent() is None or tool.absent().count(":") == 1
    if tool.absent() is None:
        assert tool.version()[0].isdigit()


def test_refusals(chain: Loaded) -> None:
    observed = replace(chain.problem, weights="observed")
    for tool in (libwapiti, crfpp):
        assert "no way to leave some out" in (tool.refuses(observed) or "")
    assert "L1 and L2 penalty at once" in (crfpp.refuses(replace(chain.problem, l1=1.0)) or "")
    for tool in LINEAR:
        assert "no transitions" in (tool.refuses(chain.problem) or "")
    for tool in (liblinear, glum):
        assert "more than two labels" in (tool.refuses(FOUR.problem) or "")
    assert python_crfsuite.refuses(observed) is None
    assert "one label before" in (python_crfsuite.refuses(replace(observed, order=2)) or "")


def test_another_function_is_found_out() -> None:
    recording = Recording(crfit_race, FOUR, Limits(), "default", {})
    recording.add(1, 1, 0.1, 100.0)
    recording.check(np.ones(recording.objective.n_weights))
    assert recording.curve.status == Status.FAILED
    assert "not the same function" in recording.curve.message
    exact = Recording(crfit_race, FOUR, Limits(), "default", {})
    weights = np.full(exact.objective.n_weights, 0.01)
    exact.add(1, 1, 0.1, exact.objective.full_value(weights) + 0.02)
    exact.check(weights)
    assert exact.curve.status == Status.FAILED, "more than the rounding of a log"


def test_rounded_objectives_are_not_below_the_last() -> None:
    recording = Recording(crfit_race, FOUR, Limits(), "default", {})
    weights = np.full(recording.objective.n_weights, 0.01)
    exact = recording.objective.full_value(weights)
    recording.add(1, 1, 0.1, exact - 1e-3)
    recording.add(2, 2, 0.2, exact - 1e-3)
    recording.check(weights)
    assert [point.objective for point in recording.curve.points[1:]] == [exact, exact]


def test_limits_of_a_recording() -> None:
    recording = Recording(crfit_race, FOUR, Limits(seconds=1.0), "default", {})
    assert not recording.add(1, 1, 0.9, 50.0)
    assert recording.add(2, 2, 1.1, 40.0)
    assert recording.curve.status == Status.LIMIT
    recording = Recording(crfit_race, FOUR, Limits(), "default", {})
    assert recording.add(1, 1, 0.9, float("nan"))
    assert recording.curve.status == Status.DIVERGED


def test_program_is_followed_and_ended() -> None:
    script = "import time\nfor i in range(100):\n print(i, flush=True)\n time.sleep(0.02)"
    seen: list[str] = []
    assert not follow([sys.executable, "-c", script], lambda time, text: seen.append(text) or len(seen) == 3)
    assert seen[:3] == ["0\n", "1\n", "2\n"]
    assert len(seen) < 50
    with pytest.raises(ToolError, match="exit code 3: what went wrong"):
        follow([sys.executable, "-c", "print('what went wrong'); exit(3)"], lambda time, text: False)


@pytest.fixture
def make_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], None]:
    """Makes a program of the command line, the only one of its name on the PATH."""

    def make(name: str, script: str) -> None:
        path = tmp_path / name
        path.write_text(f"#!{sys.executable}\n{script}")
        path.chmod(0o755)

    monkeypatch.setenv("PATH", str(tmp_path))
    return make


#: Writes the log that crf_learn writes, and how it was called; F falls by a tenth from one line to the next.
CRF_LEARN = """
import pathlib, sys, time
words = sys.argv[1:]
folder = pathlib.Path(words[-1]).parent
assert (folder / "train").read_text().endswith("\\n\\n")
assert "U" in pathlib.Path(words[-3]).read_text()
with open(pathlib.Path(sys.argv[0]).parent / "calls", "a") as calls:
    print(*words[:-3], file=calls)
print("Number of sentences: 80\\nshrinking size:      20", flush=True)
for i in range(int(next(w for w in words if w.startswith("--maxiter")).split("=")[1])):
    print(f"iter={i} terr=0.5 serr=1.0 act=10 obj={1000 * 0.9 ** i:.5f} diff=0.1", flush=True)
    time.sleep(0.005)
pathlib.Path(words[-1]).write_text("model")
"""

CRF_TEST = """
import sys
for line in open(sys.argv[-1]):
    print(line.strip() + "\\tO" if line.strip() else "")
"""


def test_log_of_crfpp(make_program: Callable[[str, str], None], tmp_path: Path, chain: Loaded) -> None:
    assert "no program crf_learn" in (crfpp.absent() or "")
    make_program("crf_learn", CRF_LEARN)
    make_program("crf_test", CRF_TEST)
    assert crfpp.absent() is None
    curve = crfpp.run(chain, Limits(objective=660.0, max_iter=30))
    assert curve.status == Status.LIMIT
    assert [p.objective for p in curve.points[1:5]] == [900.0, 810.0, 729.0, 656.1]
    assert [p.passes for p in curve.points[1:5]] == [2, 3, 4, 5]
    assert 0 < curve.points[1].seconds < curve.points[4].seconds
    assert set(curve.points[-1].scores) == {"accuracy", "f1"}
    first, second = (tmp_path / "calls").read_text().splitlines()
    assert "--algorithm=CRF-L2 --cost=1.25 --freq=1" in first
    assert first.endswith("--maxiter=31")
    assert second.endswith(f"--maxiter={curve.points[-1].iteration}")
