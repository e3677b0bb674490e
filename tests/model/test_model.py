"""Models: made from training, pruned, read with, evaluated, saved, pickled."""

import copy
import os
import pickle
from dataclasses import replace
from enum import Enum
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crfit.data import Dataset, text
from crfit.data.templates import Template
from crfit.demo import recipe_data, recipe_lines, write_columns
from crfit.engines import make_inference, make_objective
from crfit.errors import DataError, OptionError
from crfit.model import Model, load
from crfit.model.model import drop_zeros
from crfit.training.loop import train
from crfit.training.stopping import Stop
from oracle import problems

X, Y = recipe_data(80, seed=7)
TEMPLATE = Template("U0:%x[0,0]\nU1:%x[-1,0]/%x[0,1]\nB\nB1:%x[0,1]\n", name="words.template")


@pytest.fixture(scope="module")
def trained() -> Model:
    objective = make_objective(Dataset.from_sequences(X, Y), l2=0.1)
    return Model.from_training(objective, train(objective, stop=Stop(max_iter=15, grad_inf=0.0)))


@pytest.fixture(scope="module")
def columns(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("columns") / "recipe.txt"
    write_columns(path, recipe_lines(80, seed=7))
    return path


@pytest.fixture(scope="module")
def with_edges(columns: Path) -> Model:
    objective = make_objective(text.read(columns, template=TEMPLATE), boundary=True)
    w = np.random.default_rng(0).normal(size=objective.n_weights)
    return Model.from_training(objective, w, template=TEMPLATE)


def assert_same(model: Model, other: Model) -> None:
    assert other.weights.tobytes() == model.weights.tobytes()
    assert other.attribute_alphabet == model.attribute_alphabet
    assert other.label_alphabet == model.label_alphabet
    assert other.edge_alphabet == model.edge_alphabet
    assert (other.template, other.input_format) == (model.template, model.input_format)
    assert (other.options, other.summary) == (model.options, model.summary)
    for name in ("order", "boundary", "weights", "transitions", "n_weights"):
        assert getattr(other.layout, name) == getattr(model.layout, name)


def test_a_model_has_weights_of_its_own_unless_told():
    objective = make_objective(Dataset.from_sequences(X, Y))
    w = np.random.default_rng(0).normal(size=objective.n_weights)
    assert not np.shares_memory(Model.from_training(objective, w).weights, w)
    shared = Model.from_training(objective, w, copy=False)
    assert np.shares_memory(shared.weights, w)
    assert not shared.weights.flags.writeable
    assert w.flags.writeable


def test_model_of_a_result_says_how_it_was_trained(trained):
    assert trained.options == {
        "l1": 0.0, "l2": 0.1, "order": 1, "weights": "observed", "transitions": "all", "boundary": False,
    }  # fmt: skip
    assert trained.summary["trainer"] == "newton_cg"
    assert trained.summary["iterations"] == 15
    assert trained.summary["reason"] == "max_iter"
    assert trained.evaluate(trained.encode(X, Y)).accuracy > 95
    assert "13 labels" in repr(trained)


def test_model_does_not_follow_later_training():
    objective = make_objective(Dataset.from_sequences(X, Y))
    w = np.random.default_rng(0).normal(size=objective.n_weights)
    model = Model.from_training(objective, w)
    before = model.tag_many(X)
    w[:] = 0
    assert model.tag_many(X) == before
    with pytest.raises(ValueError, match="read-only"):
        model.weights[0] = 1.0


def test_options_and_summary_are_ready_for_json(trained):
    class Colour(Enum):
        RED = "red"

    given = {
        "x": np.float64(0.5), "n": np.int32(3), "list": (1, np.array([2, 3])), "colour": Colour.RED,
        "path": Path("a/b"), "stop": Stop(max_iter=3), "endless": float("inf"), "flag": np.bool_(True),
        1: None,
    }  # fmt: skip
    model = remade(trained, options=given)
    assert model.options["list"] == [1, [2, 3]]
    assert model.options["stop"]["max_iter"] == 3
    assert model.options | {"list": 0, "stop": 0} == {
        "x": 0.5, "n": 3, "list": 0, "colour": "red", "path": os.path.join("a", "b"), "stop": 0,
        "endless": None, "flag": True, "1": None,
    }  # fmt: skip
    with pytest.raises(OptionError, match=r"summary\['run'\]\[0\]"):
        remade(trained, summary={"run": [object()]})


def remade(model: Model, **changes: object) -> Model:
    fields = {
        name: getattr(model, name)
        for name in ("weights", "layout", "attribute_alphabet", "label_alphabet", "edge_alphabet")
    }
    return Model(**(fields | changes))  # type: ignore[arg-type]


def test_parts_must_fit(trained):
    with pytest.raises(OptionError, match="weights"):
        remade(trained, weights=trained.weights[1:])
    for bad in (np.nan, np.inf, -np.inf):
        weights = np.array(trained.weights)
        weights[7] = bad
        with pytest.raises(OptionError, match="at 7"):
            remade(trained, weights=weights)
    assert remade(trained, weights=np.full(len(trained.weights), 1e308)).weights[0] == 1e308
    for name, changes in (
        ("label_alphabet", {"label_alphabet": trained.attribute_alphabet}),
        ("input_format", {"input_format": "xml"}), ("template", {"input_format": "columns"}),
        ("template", {"template": TEMPLATE, "input_format": "jsonl"}),
    ):  # fmt: skip
        with pytest.raises(OptionError, match=name):
            remade(trained, **changes)
    assert remade(trained, template=TEMPLATE.text).template == TEMPLATE
    with pytest.raises(OptionError, match="weights"):
        Model.from_training(make_objective(Dataset.from_sequences(X, Y)), np.zeros(3))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_weight_that_is_not_finite_is_named_by_its_place_in_the_objective(bad):
    objective = make_objective(Dataset.from_sequences(X, Y))
    weights = np.zeros(objective.n_weights)  # zeros go, but the place is told before
    weights[7] = bad
    with pytest.raises(OptionError, match=rf"^weights='{bad} at 7': all weights must be finite"):
        Model.from_training(objective, weights)


@settings(max_examples=80, deadline=None)
@given(problems(), st.sampled_from([0.0, 0.5, 0.9, 1.0]))
def test_pruning_changes_no_answer(problem, share):
    rng = np.random.default_rng(problem.seed)
    w = np.where(rng.random(len(problem.w)) < share, 0.0, problem.w)
    data, layout = problem.dataset, problem.layout
    pruned = drop_zeros(w, layout, data.attribute_alphabet, data.edge_alphabet)
    model = Model(
        pruned.weights, pruned.layout, pruned.attribute_alphabet, data.label_alphabet, pruned.edge_alphabet
    )
    whole = make_inference(data, layout, w)
    # a model without edge attributes is computed in another way, equal up to rounding
    np.testing.assert_allclose(model.marginals_dataset(data), whole.node_marginals(), rtol=1e-12)
    np.testing.assert_array_equal(model.tag_dataset(data), whole.viterbi()[0])
    # what is left: every attribute has a weight, and with "observed" every weight of an attribute counts
    Y, state, edges = layout.n_labels, pruned.layout.n_state_weights, pruned.layout.edge_offset
    blocks = [(pruned.weights[:state], Y), (pruned.weights[edges:], Y * Y)]
    for block, width in blocks:
        if layout.weights == "observed":
            assert (block != 0).all()
        else:
            assert (block.reshape(-1, width) != 0).any(axis=1).all()
    for ptr in (pruned.layout.state_ptr, pruned.layout.edge_ptr):
        assert ptr is None or (np.diff(ptr) > 0).all()
    old = list(data.attribute_alphabet)
    left = list(pruned.attribute_alphabet)
    assert left == [name for name in old if name in left]
    assert np.count_nonzero(pruned.weights) == np.count_nonzero(w)


@pytest.mark.parametrize("weights", ["observed", "all"])
def test_l1_leaves_a_small_model(weights):
    objective = make_objective(Dataset.from_sequences(X, Y), l1=1.0, l2=0.0, weights=weights)
    result = train(objective, stop=Stop(max_iter=30))
    model = Model.from_training(objective, result)
    assert len(model.attribute_alphabet) < objective.layout.n_attributes / 2
    assert model.labels == objective.dataset.label_alphabet.strings()
    data = objective.dataset
    labels = make_inference(data, objective.layout, result.weights).viterbi()[0]
    np.testing.assert_array_equal(model.tag_dataset(data), labels)
    assert model.tag_many(X) == data.sequence_labels(labels)


def test_a_model_of_zeros_keeps_its_labels(tmp_path):
    objective = make_objective(Dataset.from_sequences(X, Y))
    model = Model.from_training(objective, np.zeros(objective.n_weights))
    assert model.layout.n_attributes == 0
    model.save(tmp_path / "m.crfit")
    at = load(tmp_path / "m.crfit").marginals(X[0])[0]
    assert list(at.values()) == pytest.approx([1 / len(model.labels)] * len(model.labels))


def test_model_reads_columns_with_its_template(with_edges, columns):
    model = with_edges
    assert model.input_format == "columns"
    assert model.layout.n_edge_attributes > 0
    data = model.read(columns)
    assert data.edge_alphabet is model.edge_alphabet
    assert data.edge_ids is not None
    assert len(data.edge_ids) > 0
    rows = "\n".join(columns.read_text("utf-8").split("\n")[:3]).encode()
    one = model.read(text.Input("sentence", rows), labelled=False)
    assert (one.n_tokens, one.labels) == (3, None)
    # the edge attributes count: without them the marginals are others
    bare = replace(data, edge_ptr=None, edge_ids=None)
    assert not np.allclose(model.marginals_dataset(bare), model.marginals_dataset(data))
    np.testing.assert_allclose(model.marginals_dataset(data).sum(axis=1), 1.0)


def column_model(content: bytes, template: Template | None = None) -> Model:
    source = text.Input("train", content)
    template = template or text.column_template([source])
    objective = make_objective(text.read(source, template=template))
    return Model.from_training(objective, np.ones(objective.n_weights), template=template)


WORDS = Template("U0:%x[0,0]\nB\n")


@pytest.mark.parametrize("unused", [False, True])
def test_files_with_other_columns_than_the_training_data_are_refused(unused, tmp_path):
    model = column_model(b"a x P\nb y Q\n", WORDS if unused else None)
    model.save(tmp_path / "m.crfit")
    for one in (model, load(tmp_path / "m.crfit"), pickle.loads(pickle.dumps(model))):
        assert one.n_columns == 3
        assert one.read(text.Input("f", b"a x P\n")).n_tokens == 1
        for content in (b"a x\n", b"a x P\n", b"a x\nb y Q\n"):
            assert one.read(text.Input("f", content), labelled=False).n_tokens > 0
        with pytest.raises(DataError, match=r"^f:1: 4 columns, but the model was trained on 3 .* data$"):
            one.evaluate(one.read(text.Input("f", b"a x new P\n")))
        with pytest.raises(DataError, match=r"^f:3: 4 columns, .* with or without the label$"):
            one.read(text.Input("f", b"a x\n\na x new P\n"), labelled=False)


def test_only_columns_that_the_template_does_not_imply_are_stored(tmp_path):
    for template, stored in ((None, False), (WORDS, True)):
        column_model(b"a x P\nb y Q\n", template).save(tmp_path / "m.crfit")
        assert (b"n_columns" in (tmp_path / "m.crfit").read_bytes()) == stored
    data = text.read(text.Input("train", b"a x P\n"), template=WORDS)
    data.save(tmp_path / "data")
    assert (data.n_columns, Dataset.load(tmp_path / "data").n_columns) == (3, 3)
    assert remade(column_model(b"a P\n"), template=WORDS).n_columns == 2


def test_only_datasets_are_evaluated(trained):
    for call in (
        lambda: trained.evaluate(X, Y),
        lambda: trained.tag_dataset(X),
        lambda: trained.log_probability_dataset((X, Y)),
    ):
        with pytest.raises(OptionError, match=r"^dataset=<(list|tuple) of \d+>: give a Dataset: model\.en"):
            call()
    assert trained.evaluate(trained.encode(X, Y)).accuracy > 90


def test_model_reads_attributes_without_a_template(trained, tmp_path):
    lines = tmp_path / "x.crfsuite"
    lines.write_text("B-QTY\tbias\tnever seen\nB-UNIT\tbias\n", encoding="utf-8")
    data = trained.read(lines)
    assert (data.n_tokens, data.n_dropped) == (2, 1)
    np.testing.assert_array_equal(
        trained.tag_dataset(data), trained.tag_dataset(trained.encode([[["bias"]] * 2]))
    )
    columns = tmp_path / "x.txt"
    columns.write_text("two NUM B-QTY\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"x\.txt.*no template.*jsonl"):
        trained.read(columns)
    remembered = remade(trained, input_format="crfsuite")
    (tmp_path / "short").write_text("B-QTY\tbias\n", encoding="utf-8")  # looks like columns
    (tmp_path / "long").write_text("B-QTY\tbias\tw=4\tw=5\tw=6\n", encoding="utf-8")
    assert remembered.read([tmp_path / "short", tmp_path / "long"]).n_sequences == 2
    objects = tmp_path / "x.jsonl"
    objects.write_text('{"tokens": [["bias"]], "labels": ["B-QTY"]}\n', encoding="utf-8")
    assert remembered.read([objects, objects]).n_sequences == 2
    assert remembered.format_of(text.load([objects, lines])) == "crfsuite"
    remembered = remade(trained, input_format="jsonl")
    json_lines = tmp_path / "x.txt"
    json_lines.write_text('{"tokens": [["bias"]], "labels": ["B-QTY"]}\n', encoding="utf-8")
    assert remembered.read([json_lines, json_lines]).n_sequences == 2


def test_labels_seen_only_in_held_out_data_are_errors(trained):
    known = trained.evaluate(trained.encode(X, Y))
    changed = [["B-NEW" if label == "B-UNIT" else label for label in labels] for labels in Y]
    held_out = trained.evaluate(trained.encode(X, changed))
    assert held_out.n_correct_tokens < known.n_correct_tokens
    assert {score.name: score.correct for score in held_out.by_label}["B-NEW"] == 0
    assert trained.evaluate(Dataset.from_sequences(X, changed)).n_correct_tokens == held_out.n_correct_tokens
    assert trained.evaluate(trained.encode(X, Y), scheme="tokens").scheme == "tokens"
    with pytest.raises(DataError, match="no labels"):
        trained.evaluate(trained.encode(X))


@pytest.mark.parametrize("mapped", [True, False])
def test_saved_model_gives_the_same_bytes(trained, tmp_path, mapped):
    path = tmp_path / "m.crfit"
    trained.save(path)
    first = path.read_bytes()
    model = load(path, mapped=mapped)
    assert_same(trained, model)
    data = trained.encode(X)
    assert model.marginals_dataset(data).tobytes() == trained.marginals_dataset(data).tobytes()
    assert model.tag_many(X) == trained.tag_many(X)
    model.save(path)  # over the file that it is mapped from
    assert path.read_bytes() == first
    assert model.tag_many(X) == trained.tag_many(X)
    os.unlink(path)
    assert model.nbest(X[0], 2) == trained.nbest(X[0], 2)
    assert not model.weights.flags.writeable


@pytest.mark.parametrize("order", [1, 2])
@settings(max_examples=40)
@given(drawn=st.data())
def test_every_layout_survives_the_file(tmp_path_factory, drawn, order):
    problem = drawn.draw(problems(order=order))
    data, model = problem.dataset, problem.model()
    path = tmp_path_factory.mktemp("layout") / "m.crfit"
    model.save(path)
    again = load(path)
    assert_same(model, again)
    assert again.marginals_dataset(data).tobytes() == model.marginals_dataset(data).tobytes()


def test_template_edges_and_boundary_survive_the_file(with_edges, columns, tmp_path):
    path = tmp_path / "m.crfit"
    with_edges.save(path)
    model = load(path)
    assert_same(with_edges, model)
    assert (model.template.text, model.template.name) == (TEMPLATE.text, "words.template")
    expected = with_edges.tag_dataset(with_edges.read(columns))
    np.testing.assert_array_equal(model.tag_dataset(model.read(columns)), expected)


def test_strings_that_are_no_utf8_survive(tmp_path):
    X, Y = [[["w=\udcff\udc80", "日本"], ["b"]]], [["été", "\udcfe"]]
    objective = make_objective(Dataset.from_sequences(X, Y))
    options = {"file": "caf\udce9.txt", "quote": '"crfit": {"format"'}
    template = Template("U0:\udce9%x[0,0]\nB\n")
    model = Model.from_training(objective, np.ones(objective.n_weights), options=options, template=template)
    model.save(tmp_path / "m.crfit")
    again = load(tmp_path / "m.crfit")
    assert_same(model, again)
    assert again.labels == ["été", "\udcfe"]


def test_float32_is_smaller_and_close(trained, tmp_path):
    trained.save(tmp_path / "64.crfit")
    trained.save(tmp_path / "32.crfit", dtype="float32")
    sizes = [os.path.getsize(tmp_path / f"{bits}.crfit") for bits in (64, 32)]
    assert sizes[0] - sizes[1] == pytest.approx(4 * len(trained.weights), abs=16)
    model = load(tmp_path / "32.crfit")
    assert model.weights.dtype == np.float64
    np.testing.assert_array_equal(model.weights, trained.weights.astype(np.float32))
    data = trained.encode(X)
    np.testing.assert_allclose(model.marginals_dataset(data), trained.marginals_dataset(data), atol=1e-4)
    with pytest.raises(OptionError, match="dtype"):
        trained.save(tmp_path / "16.crfit", dtype="float16")
    with pytest.raises(OptionError, match="too large"):
        remade(trained, weights=trained.weights * 1e300).save(tmp_path / "big.crfit", dtype="float32")
    assert sorted(os.listdir(tmp_path)) == ["32.crfit", "64.crfit"]


def test_pickles_and_copies(trained, with_edges, tmp_path):
    trained.tag(X[0])
    trained.save(tmp_path / "m.crfit")
    for model in (trained, with_edges, load(tmp_path / "m.crfit")):
        for again in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
            assert_same(model, again)
            assert again.tag_many(X) == model.tag_many(X)


@pytest.mark.parametrize("scale", [1e6, 1e12, 1e17, 1e100])
def test_no_probability_exceeds_one_however_large_the_weights(trained, scale):
    model = remade(trained, weights=trained.weights * scale)
    x = X[0]
    for labels, p in model.nbest(x, 4):
        assert 0.0 <= p <= 1.0
        assert 0.0 <= model.probability(x, labels) <= 1.0
    sums = [sum(row.values()) for row in model.marginals(x)]
    assert sums == pytest.approx([1.0] * len(x))
