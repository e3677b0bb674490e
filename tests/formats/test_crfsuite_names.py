"""CRFsuite's algorithms and parameters: names, defaults, and that they do the same here."""

import re

import pytest

import crfit
from crfit.demo import recipe_data
from crfit.errors import OptionError
from crfit.formats.crfsuite import ALGORITHMS, FEATURES, translate
from crfit.trainers import LBFGS, SGD, describe, get, names, resolve
from crfit.training.stopping import Stop, StopReason

every_algorithm = pytest.mark.parametrize("algorithm", ALGORITHMS)


def parameters(algorithm):
    return {entry.name: entry for entry in (*FEATURES, *ALGORITHMS[algorithm])}


@every_algorithm
def test_names_and_defaults_are_crfsuites(algorithm):
    pycrfsuite = pytest.importorskip("pycrfsuite")
    theirs = pycrfsuite.Trainer(algorithm=algorithm)
    assert list(parameters(algorithm)) == theirs.params()
    for name, entry in parameters(algorithm).items():
        assert entry.default == theirs.get(name)
        assert entry.read(theirs.get(name)) == entry.default


@every_algorithm
def test_every_parameter_has_a_place_here(algorithm):
    found = translate(algorithm)
    assert set(found.options) <= {entry.name for entry in describe(algorithm).options}
    assert get(found.trainer, **found.options) == found.keywords()["trainer"]
    assert set(found.objective) == {"l1", "l2", "weights", "transitions", "min_count"}
    placed = {entry.place for entry in parameters(algorithm).values()}
    assert placed <= {"option", "trainer", "stop", "none"}
    assert found.notes == ()


def test_another_name_stands_for_options():
    assert get("l2sgd") == SGD(schedule="bottou", calibration="crfsuite", epochs=1000)
    assert get("l2sgd", epochs="3", batch=2).epochs == 3
    assert "l2sgd" not in names()
    assert describe("l2sgd") is describe("sgd")
    assert crfit.trainers.name_of(get("ap")) == "perceptron"
    with pytest.raises(OptionError, match=r"did you mean l2sgd\? Choose one of lbfgs"):
        get("l2sdg")
    data = crfit.Dataset.from_sequences(*recipe_data(20, seed=0))
    objective = crfit.make_objective(data)
    state = crfit.train(objective, "l2sgd", stop=Stop(max_iter=2), keep_state=True).state
    assert resolve("l2sgd", state=state) == resolve("sgd", state=state) == get("l2sgd")
    assert crfit.train(objective, "l2sgd", stop=Stop(max_iter=3), state=state).iterations == 3


def test_values():
    found = translate(
        "lbfgs",
        {
            "c1": 0.3, "c2": "0.5", "max_iterations": 70, "num_memories": 4, "epsilon": 1e-3, "period": 5,
            "delta": "1e-4", "max_linesearch": 9, "feature.possible_states": 1,
            "feature.possible_transitions": "1", "feature.minfreq": 1.5,
        },
    )  # fmt: skip
    assert found.keywords() == {
        "trainer": LBFGS(memory=4, max_trials=9),
        "stop": Stop(grad_rel=1e-3, rel_change=1e-4, window=5, max_iter=70), "l1": 0.3, "l2": 1.0,
        "weights": "all", "transitions": "all", "min_count": 2,
    }  # fmt: skip
    assert "more weights are kept" in found.notes[0]
    assert translate().stop == Stop(grad_rel=1e-5, rel_change=1e-5, window=10), "no limit"
    assert translate().objective["l2"] == 2.0
    assert translate("lbfgs", {"period": 0}).stop == Stop(grad_rel=1e-5), "no test of delta"
    assert "Wolfe" in translate("lbfgs", {"linesearch": "Backtracking"}).notes[0]
    sgd = translate(
        "l2sgd", {"calibration.eta": 0.2, "calibration.samples": 50.0, "calibration.max_trials": 7}
    )
    assert sgd.options["calibration_max_trials"] == 6, "CRFsuite makes one fewer"
    assert (sgd.options["calibration_eta"], sgd.options["calibration_samples"]) == (0.2, 50)
    assert sgd.stop == Stop(rel_change=1e-6, window=10)
    pa = translate("pa", {"type": 2, "c": 0.5, "error_sensitive": 0, "averaging": False, "max_iterations": 7})
    assert pa.options == {
        "type": "PA-II", "c": 0.5, "error_sensitive": False, "averaging": False, "epochs": 7, "epsilon": 0.0,
    }  # fmt: skip
    assert (pa.objective["l1"], pa.objective["l2"]) == (0.0, 0.0)
    assert pa.stop == Stop()
    assert translate("arow", {"variance": 2, "gamma": 3}).options["variance"] == 2


@pytest.mark.parametrize(
    ("algorithm", "given", "match"),
    [
        ("l2sgd", {"c1": 1}, "^c1=1: CRFsuite's l2sgd has no such parameter; it has feature.minfreq, "),
        ("l2sgd", {"calibration.sample": 1}, r"did you mean calibration\.samples\? It has feature"),
        ("arow", {"type": 1}, "^type=1: CRFsuite's arow has no such parameter"),
        ("lbfgs", {"c2": -1}, "^c2=-1: must be at least 0"),
        ("lbfgs", {"c2": "much"}, "^c2='much': must be float"),
        ("l2sgd", {"period": 0}, "^period=0: must be at least 1"),
        ("lbfgs", {"linesearch": "Armijo"}, r"^linesearch='Armijo': must be MoreThuente \| Back"),
        ("lbfgs", {"feature.possible_states": "perhaps"}, "must be bool"),
        ("pa", {"type": 3}, "^type=3: must be at most 2"),
        ("newton", {}, "^algorithm='newton': choose lbfgs, l2sgd, ap, pa, arow"),
    ],
)
def test_what_crfsuite_does_not_have(algorithm, given, match):
    with pytest.raises(OptionError, match=match):
        translate(algorithm, given)


def log_of(algorithm, X, y, folder, **given):
    pycrfsuite = pytest.importorskip("pycrfsuite")
    said = []

    class Trainer(pycrfsuite.Trainer):
        def message(self, message):
            said.append(message)

    trainer = Trainer(algorithm=algorithm)
    for tokens, labels in zip(X, y, strict=True):
        trainer.append(tokens, labels)
    trainer.set_params(given)
    trainer.train(str(folder / "model"))
    return [float(loss) for loss in re.findall(r"\nLoss: (\S+)", "".join(said))]


@pytest.mark.parametrize(
    ("algorithm", "given"),
    [
        ("lbfgs", {"c2": 0.1, "feature.possible_transitions": 1}),
        ("lbfgs", {"c1": 0.5, "c2": 0.05, "feature.possible_states": 1, "delta": 1e-6}),
        ("lbfgs", {"c2": 0.5, "epsilon": 1e-3, "delta": 0.0}),
    ],
)
def test_lbfgs_comes_to_the_same_objective(algorithm, given, tmp_path):
    X, y = recipe_data(80, seed=0)
    found = translate(algorithm, given).keywords()
    result = crfit.CRF(**found, n_threads=1).fit(X, y).result_
    assert result.reason is StopReason.CONVERGED
    losses = log_of(algorithm, X, y, tmp_path, **given)
    assert result.objective == pytest.approx(losses[-1], rel=1e-3)
    assert 0.5 < result.iterations / len(losses) < 2


def test_l2sgd_comes_as_far_in_as_many_epochs(tmp_path):
    X, y = recipe_data(200, seed=0)
    given = {"c2": 0.1, "max_iterations": 30, "feature.possible_transitions": 1}
    result = crfit.CRF(**translate("l2sgd", given).keywords(), n_threads=1).fit(X, y).result_
    losses = log_of("l2sgd", X, y, tmp_path, **given)
    assert result.iterations == 30
    assert result.history[-1].extra["online_objective"] == pytest.approx(losses[29], rel=0.02)


@pytest.mark.parametrize("algorithm", ["ap", "pa", "arow"])
def test_runs_by_mistakes_are_as_long(algorithm, tmp_path):
    X, y = recipe_data(60, seed=0)
    result = crfit.CRF(**translate(algorithm).keywords(), n_threads=1).fit(X, y).result_
    losses = log_of(algorithm, X, y, tmp_path)
    assert losses[-1] == 0.0
    assert result.latest("online_loss") == 0.0
    assert (result.iterations == 100) == (len(losses) == 100), "an average goes on, AROW is at its end"
    assert (result.iterations == 100) == (algorithm != "arow")


@pytest.fixture
def trained(call, recipes, tmp_path):
    def run(*options):
        return call("train", recipes / "train.columns", "-m", tmp_path / "m", "--json", "-q", *options)

    return run


def test_on_the_command_line(trained, tmp_path):
    ran = trained("-a", "l2sgd", "-p", "c2=1", "-p", "max_iterations=4", "-o", "batch=4")
    assert ran.code == 0, ran.err
    assert (ran.json["trainer"], ran.json["iterations"]) == ("sgd", 4)
    options = crfit.load(tmp_path / "m").options
    assert (options["l2"], options["transitions"]) == (2.0, "observed")
    ran = trained("-p", "c2=0.5", "-p", "feature.possible_transitions=1", "--max-iter", "3")
    assert (ran.json["trainer"], ran.json["iterations"], ran.json["reason"]) == ("lbfgs", 3, "max_iter")
    assert crfit.load(tmp_path / "m").options["transitions"] == "all"
    ran = trained("-a", "pa", "-p", "type=2", "-p", "max_iterations=3")
    assert (ran.json["trainer"], ran.json["iterations"]) == ("pa", 3), ran.err
    assert crfit.load(tmp_path / "m").options["l2"] == 0.0
    ran = trained("-p", "feature.minfreq=3", "--max-iter", "1")
    assert "more weights are kept" in ran.err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["-a", "lbfgs", "--l2", "1"], "--l2 1.0: -a and -p already set this"),
        (["-p", "c2=1", "--trainer", "sgd"], "--trainer sgd: -a and -p already set this"),
        (["-a", "l2sgd", "-p", "c1=1"], "c1='1': CRFsuite's l2sgd has no such parameter"),
        (["-a", "l2sgd", "-p", "c2"], "'c2' does not have the form NAME=VALUE"),
        (["-a", "sdg"], "-a"),
    ],
)
def test_what_does_not_go_together(trained, options, words):
    ran = trained(*options)
    assert ran.code == 2
    assert words in ran.err
