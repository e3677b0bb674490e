"""Models inside pickles of sklearn-crfsuite, found without running these."""

import pickle
import random

import joblib
import pytest

import crfit
from crfit.demo import recipe_data
from crfit.errors import ModelFileError
from crfit.formats import crfsuite_model, sklearn_crfsuite
from format_helpers import N_MUTANTS, column_model, mutants, same, survives

X, Y = recipe_data(60, seed=5)


class FileResource:
    """What sklearn-crfsuite pickles: the contents of its model file among other things."""

    def __init__(self, data):
        self.__dict__["__FILE_RESOURCE_DATA__"] = data


class CRF:
    def __init__(self, data):
        self.c1, self.modelfile = 0.1, FileResource(data)


class Trap:
    def __reduce__(self):
        return exec, ("raise SystemExit('this pickle was run')",)


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    path = tmp_path_factory.mktemp("pickles") / "small.crfsuite"
    crfsuite_model.write(crfit.CRF().fit([[["a", "é"], ["b"]]], [["X", "Y"]]).model_, path)
    return path.read_bytes()


@pytest.mark.parametrize("protocol", range(6))
def test_every_protocol(small, protocol, tmp_path):
    (tmp_path / "crf.pkl").write_bytes(pickle.dumps(CRF(small), protocol))
    assert same(crfit.load(tmp_path / "crf.pkl"), crfsuite_model.read(small))


def test_joblib(small, tmp_path):
    joblib.dump(CRF(small), tmp_path / "crf.joblib")
    assert same(crfit.load(tmp_path / "crf.joblib"), crfsuite_model.read(small))


def test_a_real_estimator(tmp_path):
    theirs = pytest.importorskip("sklearn_crfsuite", reason="needs sklearn-crfsuite")
    crf = theirs.CRF(c1=0.1, max_iterations=20).fit(X[:40], Y[:40])
    (tmp_path / "crf.pkl").write_bytes(pickle.dumps(crf))
    model = crfit.load(tmp_path / "crf.pkl")
    assert model.tag_many(X[40:]) == [list(labels) for labels in crf.predict(X[40:])]
    for ours, wanted in zip(model.marginals_many(X[40:]), crf.predict_marginals(X[40:]), strict=True):
        for one, other in zip(ours, wanted, strict=True):
            assert one == pytest.approx(other, abs=1e-9)


def test_nothing_is_run(small):
    model = sklearn_crfsuite.read(pickle.dumps([Trap(), CRF(small)]))
    assert same(model, crfsuite_model.read(small))


def test_pickles_without_a_model(small, tmp_path):
    with pytest.raises(ModelFileError, match=r"x\.pkl: is a pickle without a CRFsuite model"):
        sklearn_crfsuite.read(pickle.dumps(CRF(None)), "x.pkl")
    (tmp_path / "model.pkl").write_bytes(pickle.dumps(column_model("U0:%x[0,0]\nB\n")))
    with pytest.raises(ModelFileError, match="without a CRFsuite model"):
        crfit.load(tmp_path / "model.pkl")
    other = small.replace(b"X\0", b"Z\0")
    with pytest.raises(ModelFileError, match="is a pickle of 2 models"):
        sklearn_crfsuite.read(pickle.dumps([CRF(small), CRF(other)]))
    assert same(sklearn_crfsuite.read(pickle.dumps([CRF(small), CRF(small)])), crfsuite_model.read(small))
    with pytest.raises(ModelFileError, match=r"x\.pkl: is damaged: its header says"):
        sklearn_crfsuite.read(pickle.dumps(CRF(small[:-1])), "x.pkl")


def test_every_cut_is_noticed(small):
    data = pickle.dumps(CRF(small))
    rng = random.Random(0)
    for length in [*range(2, 100), *(rng.randrange(100, len(data)) for _ in range(100))]:
        with pytest.raises(ModelFileError):
            sklearn_crfsuite.read(data[:length])


@pytest.mark.parametrize("protocol", [0, 2, 5])
def test_mutants(small, protocol):
    data = pickle.dumps(CRF(small), protocol)
    read = [survives(sklearn_crfsuite.read, mutant) for mutant in mutants(data, N_MUTANTS)]
    assert sum(read) < N_MUTANTS
