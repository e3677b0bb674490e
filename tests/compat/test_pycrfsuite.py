"""crfit.compat.pycrfsuite against python-crfsuite itself: the same parameters, files, labels and numbers."""

import copy
import math
import pickle
import re
import signal
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pycrfsuite as original
import pytest

from crfit.compat import pycrfsuite
from crfit.compat.pycrfsuite._logparser import LabelScore, TrainLogParser
from crfit.data import Dataset
from crfit.demo import recipe_data
from crfit.errors import CrfitWarning, DataError, OptionError
from crfit.training.stopping import Stop

X, Y = recipe_data(150, seed=3)
ALGORITHMS = ("lbfgs", "l2sgd", "ap", "pa", "arow")
ITEMS = [
    ["a", "b"],
    ("t",),
    {"single"},
    "xy",
    {"word": "x", "value": 0.5, "whole": 3, "yes": True, "no": False, "empty": ""},
    {"list": ["p", "q"], "set": {"z"}, "deep": {"k": "v", "n": 2, "more": {"l": ["x"]}}},
    {"numpy": np.float32(2.0), "flag": np.bool_(True), "bytes": b"raw", "größe": "ß"},
    [],
    {},
]


def train(
    module: Any, path: Path, algorithm: str = "lbfgs", params: dict[str, Any] | None = None, **options: Any
) -> Any:
    trainer = module.Trainer(algorithm, params or {}, verbose=False, **options)
    for x, y in zip(X, Y, strict=True):
        trainer.append(x, y)
    trainer.train(str(path))
    return trainer


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A model trained by each of the two, same parameters."""
    folder = tmp_path_factory.mktemp("models")
    params = {"c1": 0.05, "c2": 0.1, "feature.possible_transitions": True, "max_iterations": 60}
    train(original, folder / "theirs", params=params)
    train(pycrfsuite, folder / "ours", params=params)
    return {"theirs": folder / "theirs", "ours": folder / "ours"}


@pytest.fixture(params=["theirs", "ours"])
def both(request: pytest.FixtureRequest, files: dict[str, Path]) -> tuple[Any, pycrfsuite.Tagger]:
    """Both taggers on the same file, whoever wrote it."""
    theirs, ours = original.Tagger(), pycrfsuite.Tagger()
    theirs.open(str(files[request.param]))
    ours.open(str(files[request.param]))
    return theirs, ours


# Tagging


def test_labels_marginals_and_probabilities_are_the_same(both: tuple[Any, pycrfsuite.Tagger]) -> None:
    theirs, ours = both
    assert ours.labels() == theirs.labels()
    for x, y in zip(X[:40], Y[:40], strict=True):
        assert ours.tag(x) == theirs.tag(x)
        theirs.set(x)
        ours.set(x)
        assert ours.tag() == theirs.tag()
        theirs.set(x)  # see the next test
        for t in range(len(x)):
            for label in ours.labels():
                assert ours.marginal(label, t) == pytest.approx(theirs.marginal(label, t), abs=1e-9)
        assert ours.probability(y) == pytest.approx(theirs.probability(y), rel=1e-9, abs=1e-12)


def test_marginals_do_not_depend_on_the_order_of_calls(both: tuple[Any, pycrfsuite.Tagger]) -> None:
    theirs, ours = both
    x = X[0]

    def after_tagging(tagger: Any) -> list[float]:
        tagger.set(x)
        tagger.marginal(tagger.labels()[0], 0)
        tagger.tag()
        return [tagger.marginal(label, 0) for label in tagger.labels()]

    ours.set(x)
    expected = [ours.marginal(label, 0) for label in ours.labels()]
    assert after_tagging(ours) == expected
    assert math.fsum(expected) == pytest.approx(1.0)
    # The original overwrites its tables while tagging; if it is ever corrected, docs/drop-in.md changes.
    assert math.fsum(after_tagging(theirs)) != pytest.approx(1.0, abs=1e-3)


@pytest.mark.parametrize("kind", [list, dict, "nested", "iterator"])
def test_marginals_are_those_of_the_items_as_given(kind: Any, files: dict[str, Path]) -> None:
    def items() -> list[Any]:
        if kind is dict:
            return [dict.fromkeys(item, 1.0) for item in X[0]]
        if kind == "nested":
            return [{"w": {"l": [*item]}, **dict.fromkeys(item, 1.0)} for item in X[0]]
        return [list(item) if kind is list else iter(item) for item in X[0]]

    with pycrfsuite.Tagger().open(files["ours"]) as tagger:
        tagger.set(X[0])
        expected = [tagger.marginal(label, 0) for label in tagger.labels()]
        x = items()
        labels = tagger.tag(x)
        for item in x:
            if kind == "nested":
                item["w"]["l"][0] = None  # would be an error
            elif kind != "iterator":
                item.clear()
        del x[1:]
        assert [tagger.marginal(label, 0) for label in tagger.labels()] == pytest.approx(expected)
        assert tagger.probability(labels) > 0.0


def test_info_and_dump_are_the_same(both: tuple[Any, pycrfsuite.Tagger], tmp_path: Path) -> None:
    theirs, ours = both
    expected, found = theirs.info(), ours.info()
    assert found.header == expected.header
    assert found.labels == expected.labels
    assert found.attributes == expected.attributes
    for name in ("transitions", "state_features"):
        assert list(getattr(found, name)) == list(getattr(expected, name))
        rounded = {key: round(weight, 6) for key, weight in getattr(found, name).items()}
        assert rounded == pytest.approx(getattr(expected, name), abs=1.1e-6)
    theirs.dump(str(tmp_path / "theirs.txt"))
    ours.dump(tmp_path / "ours.txt")
    assert (tmp_path / "ours.txt").read_bytes().rstrip() == (tmp_path / "theirs.txt").read_bytes().rstrip()


def test_dump_to_standard_output(files: dict[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    with pycrfsuite.Tagger().open(files["ours"]) as tagger:
        tagger.dump()
    assert capsys.readouterr().out.startswith("FILEHEADER = {\n  magic: lCRF\n")


def test_opening_and_closing(files: dict[str, Path]) -> None:
    tagger = pycrfsuite.Tagger()
    with tagger.open(str(files["ours"])) as same:
        assert same is tagger
        labels = tagger.tag(X[0])
    with pytest.raises(ValueError, match="closed"):
        tagger.tag(X[0])
    with pytest.raises(ValueError, match="closed"):
        tagger.set(X[0])
    with pytest.raises(RuntimeError, match="closed"):
        tagger.info()
    tagger.close()
    with pycrfsuite.Tagger().open_inmemory(files["ours"].read_bytes()) as tagger:
        assert tagger.tag(X[0]) == labels
        assert pickle.loads(pickle.dumps(tagger)).tag(X[0]) == labels


def test_invalid_model_files(tmp_path: Path, files: dict[str, Path]) -> None:
    with pytest.raises(FileNotFoundError):
        pycrfsuite.Tagger().open(str(tmp_path / "none"))
    for contents in (b"", b"hello" * 100, files["ours"].read_bytes()[:-100]):
        (tmp_path / "bad").write_bytes(contents)
        with pytest.raises(ValueError, match="bad"):
            pycrfsuite.Tagger().open(str(tmp_path / "bad"))
        with pytest.raises(ValueError, match="bytes"):
            pycrfsuite.Tagger().open_inmemory(contents)


def test_wrong_calls_of_a_tagger(both: tuple[Any, pycrfsuite.Tagger]) -> None:
    theirs, ours = both
    for tagger in (theirs, ours):
        assert tagger.tag() == []  # nothing was set
        assert tagger.tag([]) == []
        tagger.set(X[0])
        n, label = len(X[0]), tagger.labels()[0]
        for position in (-1, n):
            with pytest.raises(ValueError, match="position"):
                tagger.marginal(label, position)
        with pytest.raises(RuntimeError, match="unknown!"):
            tagger.marginal("unknown!", 0)
        with pytest.raises(RuntimeError, match="unknown!"):
            tagger.probability(["unknown!"] * n)
        with pytest.raises(ValueError, match="labels"):
            tagger.probability([label] * (n - 1))


def test_attributes_unknown_to_the_model_are_ignored(both: tuple[Any, pycrfsuite.Tagger]) -> None:
    theirs, ours = both
    x = [["never seen"], {"never": "seen", "n": 2.0}]
    assert ours.tag(x) == theirs.tag(x)
    assert ours.tag(pycrfsuite.ItemSequence(x)) == theirs.tag(original.ItemSequence(x))


# Items


def test_items_have_the_same_attributes() -> None:
    theirs, ours = original.ItemSequence(ITEMS), pycrfsuite.ItemSequence(ITEMS)
    assert ours.items() == theirs.items()
    assert len(ours) == len(theirs)
    assert repr(ours) == repr(theirs)
    assert pycrfsuite.ItemSequence(iter(ITEMS)).items() == ours.items()
    assert pycrfsuite.ItemSequence(ours).items() == ours.items()
    assert pickle.loads(pickle.dumps(ours)).items() == ours.items()
    assert pycrfsuite.ItemSequence([]).items() == []


def test_models_name_attributes_alike(tmp_path: Path) -> None:
    for module in (original, pycrfsuite):
        trainer = module.Trainer(verbose=False)
        trainer.append(ITEMS, ["A", "B", "C"] * 3)
        trainer.append(module.ItemSequence(ITEMS), ["A", "B", "C"] * 3)
        trainer.append(["ab", "c"], "AB")  # items and labels are any iterables
        trainer.append([], [])
        trainer.train(str(tmp_path / module.__name__))
    theirs = original.Tagger()
    theirs.open(str(tmp_path / "pycrfsuite"))
    with pycrfsuite.Tagger().open(tmp_path / pycrfsuite.__name__) as ours:
        assert ours.info().attributes == theirs.info().attributes
        assert ours.info().labels == theirs.info().labels


@pytest.mark.parametrize("item", [[1], {"a": None}, {1: 2.0}, {"a": math.nan}])
def test_invalid_items_are_reported_where_they_are_given(item: Any, files: dict[str, Path]) -> None:
    trainer = pycrfsuite.Trainer(verbose=False)
    trainer.append(X[0], Y[0])
    with pytest.raises(DataError, match="sequence 1, position 1"):
        trainer.append([["a"], item], ["A", "B"])
    with pytest.raises(DataError), pycrfsuite.Tagger().open(files["ours"]) as tagger:
        tagger.set([item])


def test_appended_sequences_are_copied(tmp_path: Path) -> None:
    def attributes(change: bool) -> list[str]:
        x, y = [{"a": 1.0}, {"b": 2.0}], ["A", "B"]
        trainer = pycrfsuite.Trainer(verbose=False)
        trainer.append(x, y)
        if change:
            x[0]["late"] = 1.0
            y[1] = "C"
        trainer.append([["c"]], ["A"])
        trainer.train(tmp_path / "model")
        with pycrfsuite.Tagger().open(tmp_path / "model") as tagger:
            return [*tagger.info().attributes, *tagger.labels()]

    assert attributes(change=True) == attributes(change=False)


def test_a_rejected_sequence_leaves_nothing_behind(tmp_path: Path) -> None:
    trainer = pycrfsuite.Trainer(verbose=False, params={"feature.possible_states": True})
    trainer.append([["a"], ["b"]], ["A", "B"])
    for labels in (["new", 1], ["new", None]):
        with pytest.raises(DataError, match="sequence 1, position 1"):
            trainer.append([["c"], ["d"]], labels)  # type: ignore[list-item]
    with pytest.raises(DataError, match="sequence 1, position 1"):
        trainer.append([["c"], [1]], ["new", "A"])  # type: ignore[list-item]
    trainer.append([["a"], ["e"]], ["A", "C"])
    trainer.train(tmp_path / "model")
    assert trainer.logparser is not None
    assert trainer.logparser.featgen_num_features == 3 * 3 + 2
    with pycrfsuite.Tagger().open(tmp_path / "model") as tagger:
        assert tagger.labels() == ["A", "B", "C"]


def test_items_and_labels_must_match() -> None:
    with pytest.raises(ValueError, match="1 items and 2 labels"):
        pycrfsuite.Trainer(verbose=False).append([["a"]], ["A", "B"])


# Parameters


@pytest.mark.parametrize("algorithm", [*ALGORITHMS, "averaged-perceptron", "passive-aggressive", None])
def test_parameters_and_defaults(algorithm: str | None) -> None:
    theirs, ours = original.Trainer(algorithm, verbose=False), pycrfsuite.Trainer(algorithm, verbose=False)
    assert ours.params() == theirs.params()
    assert ours.get_params() == theirs.get_params()
    for name in ours.params():
        assert ours.get(name) == theirs.get(name)
        assert ours.help(name)


def test_setting_parameters(tmp_path: Path) -> None:
    trainer = pycrfsuite.Trainer("lbfgs", {"c1": 0.5}, False)
    trainer.append(X[0], Y[0])
    trainer.set("c2", "0.25")
    trainer.set_params(
        {"feature.minfreq": np.int64(1), "all_possible_states": True, "linesearch": "Backtracking"}
    )
    assert (trainer.get("c1"), trainer.get("c2"), trainer.get("feature.minfreq")) == (0.5, 0.25, 1.0)
    assert isinstance(trainer.get("feature.minfreq"), float)
    assert trainer.get("feature.possible_states") is True
    assert not trainer.verbose
    trainer.select("PA")  # resets the parameters, keeps the data
    trainer.set("pa_type", 2)
    assert trainer.get("type") == 2
    trainer.train(tmp_path / "model")
    with pytest.raises(ValueError, match=r"c1.*pa has no such parameter"):
        trainer.get("c1")


@pytest.mark.parametrize(
    ("name", "value"), [("c1", "abc"), ("c1", -1), ("linesearch", "x"), ("max_iterations", 2.7), ("nope", 1)]
)
def test_invalid_parameters(name: str, value: Any) -> None:
    with pytest.raises(OptionError, match=name):
        pycrfsuite.Trainer(verbose=False).set(name, value)


def test_invalid_algorithms() -> None:
    for name, kind in (("unknown", "crf1d"), ("lbfgs", "crf2d")):
        with pytest.raises(ValueError, match=r"choose|only"):
            pycrfsuite.Trainer(verbose=False).select(name, kind)


# Training


@pytest.mark.parametrize("c1", [0.0, 0.1])
def test_exact_lbfgs_takes_the_same_steps(c1: float, tmp_path: Path) -> None:
    params = {"c1": c1, "c2": 0.5, "max_iterations": 8}
    theirs = train(original, tmp_path / "theirs", params=params).logparser.iterations
    ours = train(pycrfsuite, tmp_path / "ours", params=params, algorithm_exact=True).logparser.iterations
    assert [step["num"] for step in ours] == [step["num"] for step in theirs] == [*range(1, 9)]
    for name in ("loss", "feature_norm", "linesearch_trials"):
        assert [step[name] for step in ours] == pytest.approx([step[name] for step in theirs], rel=1e-3)


@pytest.mark.parametrize(
    ("limit", "fits", "start"), [(49, True, "eg"), (50, True, "auto"), (49, False, "auto")]
)
def test_few_iterations_start_on_the_dual_if_it_fits(
    limit: int, fits: bool, start: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A dual that is too large for memory is never made."""
    seen: list[Any] = []
    module = import_module("crfit.compat.pycrfsuite.trainer")
    fit = module.fit_dataset
    monkeypatch.setattr(
        module, "fit_dataset", lambda data, options, **k: seen.append(options) or fit(data, options, **k)
    )
    if not fits:
        monkeypatch.setattr(module, "DUAL_MEMORY", 1)
    train(pycrfsuite, tmp_path / "ours", params={"c2": 0.1, "max_iterations": limit})
    assert getattr(seen[0].trainer, "start", "auto") == start


@pytest.mark.parametrize("params", [{"c2": 0.1}, {"c1": 0.1, "c2": 0.1}], ids=["l2", "l1"])
def test_max_iterations_limits_the_work(params: dict[str, Any], tmp_path: Path) -> None:
    """The limit counts passes, and at each limit the loss is below that of as many iterations of L-BFGS."""
    for limit in (1, 5, 20):
        limited = params | {"max_iterations": limit}
        theirs = train(original, tmp_path / "theirs", params=limited).logparser.last_iteration["loss"]
        log = train(pycrfsuite, tmp_path / "ours", params=limited).logparser
        assert len(log.iterations) <= limit
        assert log.last_iteration["loss"] < theirs
        assert "Newton-CG terminated with the maximum number of iterations\n" in log.log


def test_no_penalty_and_a_limit(tmp_path: Path) -> None:
    log = train(pycrfsuite, tmp_path / "m", params={"c2": 0, "max_iterations": 5}).logparser
    assert "L-BFGS optimization\n" in log.log
    assert len(log.iterations) <= 5


@pytest.mark.parametrize(
    ("params", "change", "window"),
    [
        ({"delta": 1e-3}, 1e-3, None),
        ({"period": 30}, 1e-5, 3),
        ({"period": 2}, 1e-5, 1),
        ({"period": 30, "c2": 0}, 1e-5, 30),
        ({"delta": 1e-3, "c2": 0}, 1e-3, None),
        ({"period": 0}, None, None),
    ],
)
def test_period_counts_iterations_of_the_trainer_that_runs(
    params: dict[str, Any], change: float | None, window: int | None
) -> None:
    """Ten iterations of L-BFGS are one step of Newton-CG."""
    trainer = pycrfsuite.Trainer(verbose=False, params=params)
    stop = trainer._problem(Dataset.from_sequences(X, Y))[0].stop
    assert stop == Stop(grad_rel=1e-5, rel_change=change, window=window)


@pytest.mark.parametrize(
    ("params", "limit"),
    [({}, None), ({"max_iterations": 7}, 7), ({"max_iterations": 1}, 5), ({"c2": 0, "c1": 0}, None)],
)
def test_without_tolerances_training_ends_near_the_optimum(params: dict[str, Any], limit: int | None) -> None:
    """Nearer than crfit's own default, because L-BFGS ends about 1e-5 above the optimum."""
    trainer = pycrfsuite.Trainer(verbose=False, params=params)
    stop = trainer._problem(Dataset.from_sequences(X, Y))[0].stop
    assert stop == Stop(rel_change=1e-5, tol=3e-5, max_passes=limit)


@pytest.mark.parametrize("exact", [False, True])
def test_ctrl_c_ends_training_without_a_model(exact: bool, tmp_path: Path) -> None:
    class Impatient(pycrfsuite.Trainer):
        def on_iteration(self, log: str, info: dict[str, Any]) -> None:
            signal.raise_signal(signal.SIGINT)

    trainer = Impatient(verbose=False, algorithm_exact=exact)
    for x, y in zip(X, Y, strict=True):
        trainer.append(x, y)
    with pytest.raises(KeyboardInterrupt):
        trainer.train(tmp_path / "model")
    assert not list(tmp_path.iterdir())


def test_negative_values_are_kept(tmp_path: Path) -> None:
    for module in (original, pycrfsuite):
        trainer = module.Trainer(verbose=False, params={"c2": 0.01})
        for _ in range(5):
            trainer.append([{"n": -1.0}, {"n": 1.0}, {"m": -2.0}], ["A", "B", "A"])
        trainer.train(str(tmp_path / module.__name__))
    with pycrfsuite.Tagger().open(tmp_path / "pycrfsuite") as theirs:
        assert ("m", "A") not in theirs.info().state_features
    with pycrfsuite.Tagger().open(tmp_path / pycrfsuite.__name__) as ours:
        assert ours.info().state_features["m", "A"] < 0.0
        assert ours.info().state_features["n", "A"] < 0.0 < ours.info().state_features["n", "B"]


def test_models_are_the_same_bytes_each_time(tmp_path: Path) -> None:
    for name in ("a", "b"):
        train(pycrfsuite, tmp_path / name, params={"c1": 0.1})
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_training_needs_data_and_a_place_for_the_model(tmp_path: Path) -> None:
    trainer = pycrfsuite.Trainer(verbose=False)
    trainer.append(X[0], Y[0], 1)
    with pytest.raises(ValueError, match="held-out group 1"):
        trainer.train(tmp_path / "model", holdout=1)
    with pytest.raises(pycrfsuite.CRFSuiteError, match="no folder"):
        trainer.train(tmp_path / "none" / "model")
    trainer.append([["with\0nul"]], ["A"])
    with pytest.raises(pycrfsuite.CRFSuiteError, match="model"):
        trainer.train(tmp_path / "model")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_training_without_data_writes_an_empty_model(algorithm: str, tmp_path: Path) -> None:
    class Hooked(pycrfsuite.Trainer):
        error = ""

        def on_prepare_error(self, log: str) -> None:
            self.error = log

    ours, theirs = Hooked(algorithm, verbose=False), original.Trainer(algorithm, verbose=False)
    ours.append(X[0], Y[0])
    ours.clear()
    with pytest.warns(CrfitWarning, match="append"):
        ours.train(tmp_path / "ours")
    theirs.train(str(tmp_path / "theirs"))
    assert (tmp_path / "ours").read_bytes() == (tmp_path / "theirs").read_bytes()
    assert "there is no data" in ours.error
    assert ours.logparser is not None
    assert [name for name, *_ in ours.logparser.events][-2:] == ["optimization_end", "end"]
    for name in ("ours", "theirs"):
        with pytest.raises(ValueError, match="has no labels"):
            pycrfsuite.Tagger().open(tmp_path / name)
    with pytest.raises(pycrfsuite.CRFSuiteError, match="no folder"):
        ours.train(tmp_path / "none" / "model")


def test_subclasses_need_not_call_init(tmp_path: Path) -> None:
    class Collecting(pycrfsuite.Trainer):
        def __init__(self) -> None:
            self.messages: list[str] = []

        def message(self, message: str) -> None:
            self.messages.append(message)

    class Named(pycrfsuite.Tagger):
        def __init__(self, name: str) -> None:
            self.name = name

    trainer, other = Collecting(), Collecting()
    for x, y in zip(X, Y, strict=True):
        trainer.append(x, y)
    other.append([["a"]], ["A"])
    assert trainer.get_params() == pycrfsuite.Trainer().get_params()
    trainer.train(tmp_path / "model")
    assert "type: CRF1d\n" in trainer.messages
    assert other.messages == []
    tagger = copy.copy(Named("mine"))
    with pytest.raises(ValueError, match="closed"):
        tagger.tag(X[0])
    with tagger.open(tmp_path / "model"):
        assert tagger.tag() == []
        assert len(tagger.tag(X[0])) == len(X[0])
    assert tagger.name == "mine"


def test_training_again_with_more_data(tmp_path: Path) -> None:
    trainer = pickle.loads(pickle.dumps(pycrfsuite.Trainer(verbose=False)))
    trainer.append([["a"], ["b"]], ["A", "B"])
    trainer.train(tmp_path / "model")
    trainer.append([["a"], ["c"]], [b"A", "C"])
    trainer.train(tmp_path / "model")
    with pycrfsuite.Tagger().open(tmp_path / "model") as tagger:
        assert tagger.labels() == ["A", "B", "C"]


# Log and hooks


def held_out(module: Any, path: Path, cls: Any = None, **options: Any) -> Any:
    trainer = (cls or module.Trainer)(**({"verbose": False} | options))
    for k, (x, y) in enumerate(zip(X, Y, strict=True)):
        trainer.append(x, y, k % 3)
    trainer.train(str(path), holdout=2)
    return trainer


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_held_out_scores(algorithm: str, tmp_path: Path) -> None:
    params = {"max_iterations": 3}
    options = {"algorithm": algorithm, "params": params}
    theirs = held_out(original, tmp_path / "theirs", **options).logparser
    ours = held_out(pycrfsuite, tmp_path / "ours", **options, algorithm_exact=True).logparser
    expected, found = theirs.last_iteration, ours.last_iteration
    assert set(expected) <= set(found)
    # The original leaves labels without a reference out if it predicts them, which depends on its shuffling.
    assert [(name, score.ref) for name, score in found["scores"].items() if score.ref] == [
        (name, score.ref) for name, score in expected["scores"].items() if score.ref
    ]
    assert all(isinstance(score, LabelScore) for score in found["scores"].values())
    assert found["item_accuracy_float"] == float(found["item_accuracy"]) > 0.5
    if algorithm == "lbfgs":  # step by step the same
        assert found["item_accuracy"] == expected["item_accuracy"]
        assert found["instance_accuracy"] == expected["instance_accuracy"]
        assert found["scores"] == expected["scores"]


def test_held_out_scores_of_labels_without_a_reference(tmp_path: Path) -> None:
    def run(module: Any, **options: Any) -> Any:
        trainer = module.Trainer(params={"max_iterations": 2}, verbose=False, **options)
        trainer.append([["a"], ["b"], ["c"]], ["A", "B", "C"], 0)
        trainer.append([["a"], ["b"], ["b"]], ["A", "B", "D"], 1)
        trainer.append([["a"], ["b"], ["b"]], ["A", "A", "A"], 1)
        trainer.train(str(tmp_path / "model"), holdout=1)
        return trainer.logparser

    def lines(log: Any) -> list[str]:
        return [line for line in log.log if line.startswith(("    ", "Macro"))]

    theirs, ours = run(original), run(pycrfsuite, algorithm_exact=True)
    assert lines(ours) == lines(theirs)
    scores = ours.last_iteration["scores"]
    assert list(scores) == ["A", "B", "C", "D"]
    assert scores["C"] == LabelScore(0, 2, 0, None, None, None)  # predicted; the original leaves it out
    assert scores["D"] == LabelScore(0, 0, 1, 0.0, 0.0, 0.0)


def test_log_has_the_same_shape(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every kind of line of the original's log is in ours, in the same order; numbers may differ."""

    def kinds(module: Any, **options: Any) -> list[str]:
        class Silent(module.Trainer):  # type: ignore[misc,name-defined]
            lines = ""

            def message(self, message: str) -> None:
                type(self).lines += message
                super().message(message)

        params = {"max_iterations": 2}
        held_out(module, tmp_path / "model", Silent, params=params, verbose=True, **options)
        lines = Silent.lines.splitlines()
        begin = lines.index("L-BFGS optimization")  # then parameters, in another order
        first = next(k for k, line in enumerate(lines) if line.startswith("*****"))
        scores = re.compile(r"    \S.*: \(")
        kept = [line for line in lines[: begin + 1] + lines[first:] if not scores.match(line)]
        return [re.sub(r"[\d.]{2,}|\d", "0", line) for line in kept]

    theirs = kinds(original)
    capsys.readouterr()
    assert kinds(pycrfsuite, algorithm_exact=True) == theirs
    assert "***** Iteration #2 *****\n" in capsys.readouterr().out


def test_hooks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    calls: list[tuple[str, str]] = []
    records = []

    class Hooked(pycrfsuite.Trainer):
        def on_start(self, log: str) -> None:
            calls.append(("start", log))

        def on_featgen_progress(self, log: str, percent: int) -> None:
            calls.append((f"featgen {percent}", log))

        def on_featgen_end(self, log: str) -> None:
            calls.append(("featgen_end", log))

        def on_prepared(self, log: str) -> None:
            calls.append(("prepared", log))

        def on_iteration(self, log: str, info: dict[str, Any]) -> None:
            calls.append(("iteration", log))
            records.append(info)

        def on_optimization_end(self, log: str) -> None:
            calls.append(("optimization_end", log))

        def on_end(self, log: str) -> None:
            calls.append(("end", log))

    trainer = Hooked("lbfgs", {"max_iterations": 4}, algorithm_exact=True)
    for x, y in zip(X, Y, strict=True):
        trainer.append(x, y)
    trainer.train(tmp_path / "model")
    assert capsys.readouterr().out == ""
    names = [name for name, _ in calls]
    assert names[:3] == ["start", "featgen 0", "featgen 2"]
    assert names[51:] == [
        "featgen 100",
        "featgen_end",
        "prepared",
        *["iteration"] * 4,
        "optimization_end",
        "end",
    ]
    parser = trainer.logparser
    assert parser is not None
    assert "".join(log for _, log in calls) == "".join(parser.log)
    assert records == parser.iterations
    assert parser.last_iteration is parser.iterations[-1]
    assert [record["num"] for record in records] == [1, 2, 3, 4]
    assert records[-1]["loss"] < records[0]["loss"]
    assert parser.featgen_percent == 100
    assert None not in (parser.featgen_seconds, parser.training_seconds, parser.storing_seconds)
    assert parser.last_log is not None
    assert parser.last_log.startswith("Storing the model\n")
    assert pickle.loads(pickle.dumps(parser)).iterations == records


def test_an_exception_in_a_hook_ends_training(tmp_path: Path) -> None:
    class Failing(pycrfsuite.Trainer):
        def on_iteration(self, log: str, info: dict[str, Any]) -> None:
            raise KeyError("my own")

    trainer = Failing(verbose=False)
    trainer.append(X[0], Y[0])
    with pytest.raises(KeyError, match="my own"):
        trainer.train(tmp_path / "model")
    assert not list(tmp_path.iterdir())


def test_messages_of_a_base_trainer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    messages: list[str] = []

    class Listening(pycrfsuite.BaseTrainer):
        def message(self, message: str) -> None:
            messages.append(message)

    for cls in (Listening, pycrfsuite.BaseTrainer):
        trainer = cls()
        trainer.append(X[0], Y[0])
        trainer.train(tmp_path / "model")
    assert messages[0] == "Feature generation\n"
    assert all(message.endswith("\n") or message == "." or message.isdecimal() for message in messages)
    assert capsys.readouterr().out.startswith("Feature generation\ntype: CRF1d\n")


def test_the_parser_reads_logs_of_the_original(tmp_path: Path) -> None:
    theirs = held_out(original, tmp_path / "model", params={"max_iterations": 4}).logparser
    ours = TrainLogParser()
    for line in theirs.log:
        ours.feed(line)
    assert ours.iterations == theirs.iterations
    assert [name for name, *_ in ours.events] == [name for name, *_ in theirs.events]
    assert ours.events[:-1] == theirs.events[:-1]


def test_the_parser_reads_failures_of_the_original() -> None:
    class Failing(original.Trainer):  # type: ignore[misc]
        def on_prepare_error(self, log: str) -> None:
            assert "error code" in log

    theirs = Failing(verbose=False)
    theirs.train("/dev/null")  # without data
    ours = TrainLogParser()
    events = [event for line in theirs.logparser.log if (event := ours.feed(line))]
    assert events[52:] == ["featgen_end", "prepare_error", "optimization_end", "end"]


def test_version() -> None:
    assert pycrfsuite.CRFSUITE_VERSION == original.CRFSUITE_VERSION
    assert issubclass(pycrfsuite.CRFSuiteError, Exception)
    assert set(pycrfsuite.__all__) <= set(dir(original))
