"""crfit.compat.sklearn_crfsuite: the estimator, its metrics, and scikit-learn's tools on both."""

import copy
import os
import pickle
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pycrfsuite as original
import pytest
import sklearn
from sklearn import metrics as sklearn_metrics
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV, cross_val_predict, cross_val_score
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.validation import check_is_fitted

from crfit.compat import installation, pycrfsuite, sklearn_crfsuite
from crfit.compat.sklearn_crfsuite import CRF, metrics, scorers, utils
from crfit.compat.sklearn_crfsuite._fileresource import FileResource
from crfit.demo import recipe_data
from crfit.estimators import NotFittedError

X, Y = recipe_data(150, seed=3)
X_TEST, Y_TEST = recipe_data(40, seed=4)
#: The constructor of sklearn-crfsuite 0.5.0, in its order.
ARGUMENTS = (
    *(
        "algorithm",
        "min_freq",
        "all_possible_states",
        "all_possible_transitions",
        "c1",
        "c2",
        "max_iterations",
    ),
    *("num_memories", "epsilon", "period", "delta", "linesearch", "max_linesearch", "calibration_eta"),
    *("calibration_rate", "calibration_samples", "calibration_candidates", "calibration_max_trials"),
    *("pa_type", "c", "error_sensitive", "averaging", "variance", "gamma", "verbose", "model_filename"),
    *("keep_tempfiles", "trainer_cls"),
)


@pytest.fixture(scope="module")
def crf() -> CRF:
    return CRF(c1=0.05, c2=0.1, all_possible_transitions=True).fit(X, Y)


def test_arguments() -> None:
    code = CRF.__init__.__code__
    assert code.co_varnames[1 : code.co_argcount] == (*ARGUMENTS, "algorithm_exact")


def test_the_model_is_the_same_for_python_crfsuite(crf: CRF) -> None:
    theirs = original.Tagger()
    theirs.open(crf.modelfile.name)
    assert [list(p) for p in crf.predict(X_TEST)] == [theirs.tag(x) for x in X_TEST]
    for x in X_TEST[:5]:
        theirs.set(x)
        for t, marginals in enumerate(crf.predict_marginals_single(x)):
            assert marginals == pytest.approx({y: theirs.marginal(y, t) for y in theirs.labels()}, abs=1e-9)
    info = theirs.info()
    assert crf.classes_ == theirs.labels()
    assert crf.attributes_ == list(info.attributes)
    assert crf.num_attributes_ == len(info.attributes)
    assert crf.size_ == os.path.getsize(str(crf.modelfile.name))
    assert crf.state_features_ == pytest.approx(info.state_features, abs=1.1e-6)
    assert crf.transition_features_ == pytest.approx(info.transitions, abs=1.1e-6)


def test_predictions(crf: CRF) -> None:
    found = crf.predict(X_TEST)
    assert found.shape == (len(X_TEST),)
    assert found.dtype == object
    assert found[0] == crf.predict_single(X_TEST[0]) == crf.tagger_.tag(X_TEST[0])
    n = len(X_TEST[0])
    assert [len(labels) for labels in crf.predict([X_TEST[0], X_TEST[0], []])] == [n, n, 0]
    assert crf.predict([X_TEST[0], X_TEST[0]]).shape == (2, n)
    assert (crf.predict([X_TEST[0]]) == [found[0]]).all()
    assert crf.predict_marginals([X_TEST[0]]).shape == (1, n)
    assert crf.predict([]).shape == (0,)
    marginals = crf.predict_marginals(X_TEST)
    assert marginals[1] == crf.predict_marginals_single(X_TEST[1])
    assert sum(marginals[0][0].values()) == pytest.approx(1.0)
    assert crf.predict_single(pycrfsuite.ItemSequence(X_TEST[0])) == found[0]
    assert crf.score(X_TEST, Y_TEST) == pytest.approx(metrics.flat_accuracy_score(Y_TEST, found))
    assert crf.score(X_TEST, Y_TEST) > 0.8


@pytest.mark.parametrize(
    "params",
    [
        {"algorithm": "lbfgs", "min_freq": 2, "num_memories": 4, "epsilon": 1e-4, "period": 5, "delta": 1e-4},
        {"algorithm": "lbfgs", "linesearch": "Backtracking", "max_linesearch": 10, "algorithm_exact": True},
        {
            "algorithm": "l2sgd",
            "calibration_eta": 0.2,
            "calibration_samples": 50,
            "calibration_max_trials": 9,
        },
        {"algorithm": "ap", "all_possible_states": True},
        {"algorithm": "pa", "pa_type": 2, "c": 0.5, "error_sensitive": False, "averaging": False},
        {"algorithm": "arow", "variance": 0.5, "gamma": 2.0},
    ],
    ids=lambda params: params["algorithm"],
)
def test_all_arguments_reach_the_trainer(params: dict[str, Any]) -> None:
    crf = CRF(max_iterations=10, **params).fit(X, Y)
    assert crf.score(X, Y) > 0.9
    assert crf.training_log_ is not None
    assert len(crf.training_log_.iterations) <= 10


def test_arguments_that_the_algorithm_does_not_have() -> None:
    with pytest.raises(ValueError, match="c1"):
        CRF(algorithm="ap", c1=1.0).fit(X, Y)
    with pytest.raises(ValueError, match="algorithm"):
        CRF(algorithm="unknown").fit(X, Y)


def test_held_out_data(capsys: pytest.CaptureFixture[str]) -> None:
    crf = CRF(c2=0.1, max_iterations=20, verbose=True).fit(X, Y, X_dev=X_TEST, y_dev=Y_TEST)
    assert crf.training_log_ is not None
    last = crf.training_log_.last_iteration
    assert last is not None
    assert float(last["item_accuracy"]) == pytest.approx(crf.score(X_TEST, Y_TEST))
    assert float(last["instance_accuracy"]) == pytest.approx(
        metrics.sequence_accuracy_score(Y_TEST, crf.predict(X_TEST))
    )
    out = capsys.readouterr().out
    assert "Iter 1   time=" in out
    assert "Acc(item/seq)=" in out
    assert "Label" in out
    only_quantities = CRF(max_iterations=5, verbose=True)
    only_quantities.fit(X, Y, X_dev=[[["bias"]]], y_dev=[["B-QTY"]])
    out = capsys.readouterr().out
    assert re.search(r"\nB-QTY +\d\.\d{3} +\d\.\d{3}  \d\.\d{3} +1\n", out)
    assert re.search(r"\nB-UNIT +0\n", out)
    for pair in ({"X_dev": X_TEST}, {"y_dev": Y_TEST}):
        with pytest.raises(ValueError, match="both"):
            CRF().fit(X, Y, **pair)


def test_wrong_data() -> None:
    with pytest.raises(ValueError, match="150 sequences and y has 3"):
        CRF().fit(X, Y[:3])
    with pytest.raises(ValueError, match="both"):
        CRF().fit(X, None)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="X is empty"):
        CRF().fit([], [])
    assert CRF(c2=0.1).fit(iter(X[:20]), iter(Y[:20])).score(X[:20], Y[:20]) > 0.9
    with pytest.raises(ValueError, match="to score"):
        CRF().fit(X, Y).score([], [])


def test_before_fit() -> None:
    crf = CRF()
    for name in ("tagger_", "classes_", "size_", "num_attributes_", "attributes_", "state_features_"):
        assert getattr(crf, name) is None
    assert crf.transition_features_ is None
    with pytest.raises(NotFittedError, match="fit"):
        crf.predict(X)
    with pytest.raises(sklearn.exceptions.NotFittedError):
        check_is_fitted(crf)


def test_model_file(tmp_path: Path) -> None:
    path = str(tmp_path / "model.crfsuite")
    crf = CRF(model_filename=path, c2=0.1).fit(X, Y)
    assert crf.modelfile.name == path
    check_is_fitted(crf)
    ready = CRF(model_filename=path)  # predicts with the file, without fit
    assert ready.predict(X_TEST).tolist() == crf.predict(X_TEST).tolist()
    copied = pickle.loads(pickle.dumps(crf))
    del crf
    assert os.path.exists(path)
    os.unlink(path)
    assert copied.predict(X_TEST).tolist() == ready.predict(X_TEST).tolist()


def test_temporary_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    crf = CRF(c2=0.1).fit(X[:20], Y[:20])
    first = crf.modelfile.name
    crf.fit(X[:30], Y[:30])
    assert first != crf.modelfile.name
    assert [str(path) for path in tmp_path.iterdir()] == [crf.modelfile.name]
    del crf
    assert not list(tmp_path.iterdir())
    kept = CRF(keep_tempfiles=True).fit(X[:20], Y[:20])
    del kept
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("named", [False, True])
def test_a_failed_fit_leaves_the_model(named: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Failing(pycrfsuite.Trainer):
        def on_iteration(self, log: str, info: dict[str, Any]) -> None:
            raise KeyError("my own")

    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    crf = CRF(c2=0.1, model_filename=str(tmp_path / "model") if named else None).fit(X[:20], Y[:20])
    before, expected, log = crf.modelfile.name, crf.predict(X_TEST).tolist(), crf.training_log_
    crf.set_params(trainer_cls=Failing)
    with pytest.raises(KeyError, match="my own"):
        crf.fit(X[:30], Y[:30])
    assert crf.modelfile.name == before
    assert crf.training_log_ is log
    assert crf.predict(X_TEST).tolist() == expected
    assert pickle.loads(pickle.dumps(crf.modelfile)).name is not None
    assert CRF(model_filename=before).predict(X_TEST).tolist() == expected


def test_file_resource(tmp_path: Path) -> None:
    file = FileResource(suffix=".s", prefix="p")
    assert file.name is None
    file.refresh()
    name = str(file.name)
    assert Path(name).name.startswith("p")
    assert name.endswith(".s")
    Path(name).write_bytes(b"contents")
    other = pickle.loads(pickle.dumps(file))
    assert Path(str(other.name)).read_bytes() == b"contents"
    assert other.name != name
    file.cleanup()
    assert file.name is None
    assert not os.path.exists(name)
    given = FileResource(str(tmp_path / "given"))
    given.refresh()
    given.cleanup()
    assert given.name == str(tmp_path / "given")


def test_copies(crf: CRF, tmp_path: Path) -> None:
    expected = crf.predict(X_TEST).tolist()
    joblib.dump(crf, tmp_path / "crf.joblib")
    for other in (
        pickle.loads(pickle.dumps(crf)),
        copy.deepcopy(crf),
        joblib.load(tmp_path / "crf.joblib"),
    ):
        assert other.predict(X_TEST).tolist() == expected
        assert other.modelfile.name != crf.modelfile.name
        assert other.training_log_.iterations == crf.training_log_.iterations
        assert other.get_params() == crf.get_params()


def test_pickles_of_the_original(crf: CRF, tmp_path: Path) -> None:
    """They name the original's modules and have no algorithm_exact."""
    installation.install(tmp_path)
    old = copy.deepcopy(crf)
    del old.algorithm_exact
    data = pickle.dumps(old, protocol=0)  # names as text
    for name in ("sklearn_crfsuite", "pycrfsuite"):
        data = data.replace(f"ccrfit.compat.{name}.".encode(), f"c{name}.".encode())
    assert b"crfit.compat" not in data
    (tmp_path / "old.pickle").write_bytes(data)
    (tmp_path / "x.pickle").write_bytes(pickle.dumps(X_TEST))
    program = (
        "import pickle\n"
        "crf, x = (pickle.load(open(name, 'rb')) for name in ('old.pickle', 'x.pickle'))\n"
        "import sklearn_crfsuite\n"
        "assert isinstance(crf, sklearn_crfsuite.CRF)\n"
        "assert crf.get_params()['algorithm_exact'] is False\n"
        "print(crf.predict(x).tolist())"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    out = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert out.stdout.strip() == str(crf.predict(X_TEST).tolist())


def test_parameters_and_clones(crf: CRF) -> None:
    other = clone(crf)
    assert other.get_params() == crf.get_params()
    assert other.tagger_ is None
    assert repr(CRF(c1=0.5)) == "CRF(c1=0.5)"
    assert other.set_params(c1=0.5, algorithm="lbfgs").c1 == 0.5
    with pytest.raises(ValueError, match="nope"):
        other.set_params(nope=1)


def test_grid_search() -> None:
    search = GridSearchCV(CRF(max_iterations=30), {"c2": [0.1, 10.0], "c1": [0.0, 0.01]}, cv=3)
    search.fit(X, Y)
    assert search.best_params_["c2"] == 0.1
    assert search.best_estimator_.score(X_TEST, Y_TEST) > 0.8
    flat_f1 = sklearn_metrics.make_scorer(
        metrics.flat_f1_score, average="weighted", labels=["B-NAME", "B-QTY"]
    )
    search = GridSearchCV(CRF(max_iterations=30), {"c2": [0.1]}, cv=3, scoring=flat_f1).fit(X, Y)
    assert np.isfinite(search.best_score_)


def test_randomized_search_in_processes() -> None:
    space = {"c1": [np.float64(0.01)], "c2": np.array([0.1, 0.5]), "max_iterations": np.array([10, 20])}
    search = RandomizedSearchCV(CRF(), space, n_iter=3, cv=2, n_jobs=2, random_state=0)
    search.fit(X, Y)
    assert search.score(X_TEST, Y_TEST) > 0.8


def test_pipeline_and_cross_validation() -> None:
    steps = [("same", FunctionTransformer(validate=False)), ("crf", CRF(c2=0.1, max_iterations=30))]
    pipeline = Pipeline(steps).fit(X, Y)
    assert pipeline.score(X_TEST, Y_TEST) > 0.8
    assert pipeline.set_params(crf__c1=0.1).named_steps["crf"].c1 == 0.1
    assert (
        len(cross_val_score(CRF(c2=0.1, max_iterations=30), X, Y, cv=3, scoring=scorers.flat_accuracy)) == 3
    )
    found = cross_val_predict(CRF(c2=0.1, max_iterations=30), X, Y, cv=3)
    assert metrics.flat_accuracy_score(Y, found) > 0.7
    assert 0.0 <= scorers.sequence_accuracy(pipeline, X_TEST, Y_TEST) <= 1.0


def test_metrics(crf: CRF) -> None:
    found = crf.predict(X_TEST)
    true, flat = utils.flatten(Y_TEST), utils.flatten(found)
    for name in ("precision", "recall", "f1"):
        ours, theirs = getattr(metrics, f"flat_{name}_score"), getattr(sklearn_metrics, f"{name}_score")
        assert ours(Y_TEST, found, average="macro", zero_division=0) == pytest.approx(
            theirs(true, flat, average="macro", zero_division=0)
        )
    assert metrics.flat_fbeta_score(Y_TEST, found, 0.5, average="micro") == pytest.approx(
        sklearn_metrics.fbeta_score(true, flat, beta=0.5, average="micro")
    )
    assert metrics.flat_accuracy_score(Y_TEST, found) == sklearn_metrics.accuracy_score(true, flat)
    labels = crf.classes_[:3]
    assert metrics.flat_classification_report(Y_TEST, found, labels=labels, digits=3) == (
        sklearn_metrics.classification_report(true, flat, labels=labels, digits=3)
    )
    assert metrics.sequence_accuracy_score([["A", "B"], ["A"]], [["A", "B"], ["B"]]) == 0.5
    assert metrics.sequence_accuracy_score([], []) == 0
    assert utils.flatten([("A",), ["B", "C"], []]) == ["A", "B", "C"]


def test_own_trainer_class() -> None:
    class Counting(pycrfsuite.Trainer):
        n = 0

        def on_iteration(self, log: str, info: dict[str, Any]) -> None:
            Counting.n += 1

    crf = CRF(trainer_cls=Counting, c2=0.1).fit(X, Y)
    assert crf.training_log_ is not None
    assert len(crf.training_log_.iterations) == Counting.n > 0


def test_without_scikit_learn(tmp_path: Path) -> None:
    program = (
        "import sys; sys.modules['sklearn'] = None\n"
        "from crfit.compat import sklearn_crfsuite\n"
        "crf = sklearn_crfsuite.CRF(c2=0.1).fit([[['a'], ['b']]], [['A', 'B']])\n"
        "print(crf.predict([[['a'], ['b']]]).tolist(), crf)\n"
        "for name in ('metrics', 'scorers'):\n"
        "    try: getattr(sklearn_crfsuite, name)\n"
        "    except ImportError as error: print(error)\n"
    )
    out = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert out.startswith("[['A', 'B']] CRF(c2=0.1)")
    assert out.count("crfit[sklearn]") == 2


def test_names() -> None:
    assert sklearn_crfsuite.metrics is metrics
    assert sklearn_crfsuite.CRF is CRF
    with pytest.raises(AttributeError, match="nope"):
        sklearn_crfsuite.nope  # type: ignore[attr-defined]  # noqa: B018
