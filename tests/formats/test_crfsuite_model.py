"""CRFsuite's model files: read, written back byte for byte, and damaged."""

import os
import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import crfit
from crfit.data.alphabet import Alphabet
from crfit.demo import recipe_data
from crfit.errors import ModelFileError
from crfit.formats import crfsuite_model
from crfit.layout import Layout
from crfit.model import Model
from format_helpers import N_MUTANTS, models, mutants, same, survives

pycrfsuite = pytest.importorskip("pycrfsuite")

X, Y = recipe_data(120, seed=3)
HEADER = {"magic": 0, "size": 4, "type": 8, "version": 12, "labels": 20, "attributes": 24}
OFFSETS = {"features": 28, "labels": 32, "attributes": 36, "label features": 40, "attribute features": 44}


def trained(path, X, Y, algorithm="lbfgs", **params):
    trainer = pycrfsuite.Trainer(algorithm, params, verbose=False)
    for x, y in zip(X, Y, strict=True):
        trainer.append(x, y)
    trainer.train(str(path))
    return path


def opened(path):
    tagger = pycrfsuite.Tagger()
    tagger.open(str(path))
    return tagger


SETTINGS = {
    "default": {},
    "l1": {"c1": 1.0, "c2": 0.01},
    "all": {"feature.possible_states": 1, "feature.possible_transitions": 1, "max_iterations": 10},
}


@pytest.fixture(scope="module", params=[*SETTINGS, "pa"])
def file(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / f"{request.param}.crfsuite"
    if request.param == "pa":
        return trained(path, X[:80], Y[:80], "pa")
    return trained(path, X[:80], Y[:80], **SETTINGS[request.param])


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """Contents of a model with 3 labels and 4 attributes."""
    path = tmp_path_factory.mktemp("small") / "small.crfsuite"
    x, y = [["a", "b"], ["b"], ["c", "a"], ["d"]], ["X", "Y", "X", "Z"]
    return trained(path, [x], [y]).read_bytes()


def test_a_file_is_written_back_byte_for_byte(file, tmp_path):
    model = crfsuite_model.read(file)
    crfsuite_model.write(model, tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == file.read_bytes()
    assert same(crfsuite_model.read(file.read_bytes()), model)


def compare(tagger, model, X):
    for x in X:
        tagger.set(x)
        labels = tagger.tag()
        assert model.tag(x) == labels
        assert model.probability(x, labels) == pytest.approx(tagger.probability(labels), abs=1e-9)
        wanted = [{label: tagger.marginal(label, t) for label in model.labels} for t in range(len(x))]
        for ours, theirs in zip(model.marginals(x), wanted, strict=True):
            assert ours == pytest.approx(theirs, abs=1e-9)


def test_labels_and_probabilities_are_crfsuites(file):
    compare(opened(file), crfsuite_model.read(file), [*X[80:], [["unseen"], ["unseen"]]])


def test_real_values(tmp_path):
    rng = np.random.default_rng(0)
    X = [[{f"a{i}": float(rng.normal()) for i in range(3)} for _ in range(5)] for _ in range(20)]
    Y = [[str(rng.integers(3)) for _ in range(5)] for _ in range(20)]
    path = trained(tmp_path / "values.crfsuite", X[:15], Y[:15])
    compare(opened(path), crfsuite_model.read(path), X[15:])


@pytest.mark.parametrize("options", [{}, {"l1": 0.5}, {"weights": "all"}, {"transitions": "observed"}])
def test_our_models_are_read_by_crfsuite(options, tmp_path):
    model = crfit.CRF(scheme=None, **options).fit(X[:80], Y[:80]).model_
    crfsuite_model.write(model, tmp_path / "ours.crfsuite")
    compare(opened(tmp_path / "ours.crfsuite"), model, X[80:])
    assert opened(tmp_path / "ours.crfsuite").labels() == model.labels


def test_a_file_without_room_for_constraints_is_written_with_a_warning(tmp_path):
    model = crfit.CRF().fit(X[:80], Y[:80]).model_
    with pytest.warns(crfit.errors.CrfitWarning, match="cannot hold constraints"):
        crfsuite_model.write(model, tmp_path / "ours.crfsuite")
    read = crfsuite_model.read(tmp_path / "ours.crfsuite")
    assert read.tag_many(X[80:]) == model.constrain().tag_many(X[80:])


names = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0") | st.just("\udcff"), max_size=40
)


@settings(max_examples=100, deadline=None)
@given(models(names))
def test_round_trip(tmp_path_factory, model):
    path = tmp_path_factory.getbasetemp() / "round.crfsuite"
    crfsuite_model.write(model, path)
    read = crfsuite_model.read(path)
    assert same(read, model)
    assert list(read.attribute_alphabet) == list(model.attribute_alphabet)
    assert opened(path).labels() == model.labels


def test_zero_weights_and_unused_attributes_are_dropped(tmp_path):
    layout = Layout(n_labels=2, n_attributes=3)
    weights = np.zeros(layout.n_weights)
    weights[[0, 5, 7]] = 1.0, -2.0, 0.5
    model = Model(weights, layout, Alphabet(["a", "b", "c"]), Alphabet(["X", "Y"]), Alphabet())
    crfsuite_model.write(model, tmp_path / "few")
    read = crfsuite_model.read(tmp_path / "few")
    assert list(read.attribute_alphabet) == ["a", "c"]
    assert read.weights.tolist() == [1.0, -2.0, 0.5]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"order": 2}, "label histories of length 2"),
        ({"boundary": True}, "weights for the first and the last label"),
    ],
)
def test_what_it_cannot_express(options, words, tmp_path):
    model = crfit.CRF(**options).fit(X[:20], Y[:20]).model_
    with pytest.raises(
        ModelFileError, match=f"x.crfsuite: cannot be written: CRFsuite does not .* {words}; train"
    ):
        crfsuite_model.write(model, tmp_path / "x.crfsuite")
    assert os.listdir(tmp_path) == []
    zero = Model(
        np.zeros(model.layout.n_weights),
        model.layout,
        model.attribute_alphabet,
        model.label_alphabet,
        Alphabet(),
    )
    crfsuite_model.write(zero, tmp_path / "x.crfsuite")  # weights of 0 change nothing


def test_classifiers_edges_and_nul(tmp_path):
    classifier = crfit.LogLinear().fit([{"a": 1.0}, {"b": 1.0}], ["X", "Y"]).model_
    with pytest.raises(ModelFileError, match="classifiers"):
        crfsuite_model.write(classifier, tmp_path / "x")
    layout = Layout(n_labels=1, n_attributes=1, n_edge_attributes=1)
    one = Alphabet(["a"]), Alphabet(["X"]), Alphabet(["e"])
    with pytest.raises(ModelFileError, match="attributes on transitions"):
        crfsuite_model.write(Model(np.ones(layout.n_weights), layout, *one), tmp_path / "x")
    layout = Layout(n_labels=1, n_attributes=1)
    nul = Model(np.ones(2), layout, Alphabet(["a\0b"]), Alphabet(["X"]), Alphabet())
    with pytest.raises(ModelFileError, match="attribute names with a NUL"):
        crfsuite_model.write(nul, tmp_path / "x")
    with pytest.raises(ModelFileError, match=r"cannot be written: .*no folder"):
        crfsuite_model.write(crfit.CRF(scheme=None).fit(X[:5], Y[:5]).model_, tmp_path / "none" / "x")


def refused(data, words):
    with pytest.raises(ModelFileError, match=words):
        crfsuite_model.read(data, "bad.crfsuite")


def changed(data, at, number):
    return data[:at] + struct.pack("<I", number) + data[at + 4 :]


def integer(data, at):
    return struct.unpack_from("<I", data, at)[0]


def test_every_cut_is_noticed(small):
    for length in range(len(small)):
        refused(small[:length], "bad.crfsuite: is (not a CRFsuite model|damaged: its header says)")
    refused(small + b"\0", "damaged: its header says")


@pytest.mark.parametrize("field", HEADER)
def test_every_field_of_the_header(small, field):
    for number in (0, 1, 2**31, 2**32 - 1):
        refused(changed(small, HEADER[field], number), "not a CRFsuite|another type or version|damaged")


@pytest.mark.parametrize("chunk", OFFSETS)
def test_every_offset_of_the_header(small, chunk):
    right = integer(small, OFFSETS[chunk])
    for number in (0, 1, 47, 48 if right != 48 else 49, right + 1, len(small) - 1, len(small), 2**32 - 1):
        refused(changed(small, OFFSETS[chunk], number), "damaged")


@pytest.mark.parametrize("chunk", ["features", "label features", "attribute features"])
def test_sizes_and_counts_of_chunks(small, chunk):
    start = integer(small, OFFSETS[chunk])
    for at in (start, start + 4, start + 8):
        for number in (0, len(small), 2**31, 2**32 - 1):
            refused(
                changed(small, at, number), "damaged: (there is no chunk|chunk .... has|the size of chunk)"
            )


@pytest.mark.parametrize("chunk", ["labels", "attributes"])
def test_names(small, chunk):
    start = integer(small, OFFSETS[chunk])
    for at in (0, 4, 12, 16, 20):
        for number in (1, len(small), 2**32 - 1):
            refused(changed(small, start + at, number), "damaged")
    first = start + 2072  # the first record: id, size, name
    refused(changed(small, first, 1), "not in the order of their ids")
    for number in (0, len(small), 2**32 - 1):
        refused(changed(small, first + 4, number), "name does not fit")
    refused(changed(small, first + 4, 1), "does not end where it should")
    refused(small[: first + 8] + b"\0" + small[first + 9 :], "does not end where it should")
    second = first + 8 + integer(small, first + 4)
    copied = small[: second + 8] + small[first + 8 : first + 9] + small[second + 9 :]
    refused(copied, "string 1 is the same as string 0")
    index = start + integer(small, start + 20)
    for number in (0, 24, len(small), 2**32 - 1):
        refused(changed(small, index, number), f"{chunk[:-1]} 0 has no name")


def test_features(small):
    first = integer(small, OFFSETS["features"]) + 12
    refused(changed(small, first, 2), "unknown kind")
    for number in (4, 2**32 - 1):
        refused(changed(small, first + 4, number), "does not exist")
        refused(changed(small, first + 8, number), "does not exist")
    refused(small[: first + 12] + struct.pack("<d", np.nan) + small[first + 20 :], "weight 0 is not a finite")
    twice = small[: first + 20] + small[first : first + 20] + small[first + 40 :]
    refused(twice, "has two weights")


def test_features_in_another_order(small):
    first = integer(small, OFFSETS["features"]) + 12
    n = integer(small, first - 4)
    records = [small[first + 20 * i : first + 20 * (i + 1)] for i in range(n)]
    turned = small[:first] + b"".join(records[::-1]) + small[first + 20 * n :]
    assert same(crfsuite_model.read(turned), crfsuite_model.read(small))


def test_missing_file(tmp_path):
    with pytest.raises(ModelFileError, match=r"none\.crfsuite: cannot be read: No such file"):
        crfsuite_model.read(tmp_path / "none.crfsuite")


def test_mutants(small):
    read = [survives(crfsuite_model.read, mutant) for mutant in mutants(small, N_MUTANTS)]
    assert 0 < sum(read) < N_MUTANTS
