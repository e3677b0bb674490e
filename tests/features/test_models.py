"""Models with features: trained from tokens, saved, loaded, and used on the command line."""

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import crfit
from cli_helpers import call  # noqa: F401
from crfit import _native, formats
from crfit import features as f
from crfit.data import Dataset
from crfit.demo import recipe_lines
from crfit.errors import CrfitWarning, DataError, ModelFileError, OptionError
from crfit.features import Features

LINES = recipe_lines(120, seed=5)
X = [[word for word, _ in line] for line in LINES]
Y = [[label for _, label in line] for line in LINES]
FEATURES = (
    f.default() + f.gazetteer(["olive oil", "flour"], name="food") + f.clusters({"cup": "01"}, 1, name="c")
)


@pytest.fixture(scope="module")
def crf():
    return crfit.CRF(features=FEATURES, n_threads=1).fit(X[:80], Y[:80])


@pytest.fixture
def loaded(crf, tmp_path):
    crf.model_.save(tmp_path / "m.crfit")
    return crfit.load(tmp_path / "m.crfit")


def by_hand(model, X):
    """The same model without features, on the attributes that they make."""
    other = crfit.Model(
        model.weights, model.layout, model.attribute_alphabet, model.label_alphabet, model.edge_alphabet,
        options=model.options,
    )  # fmt: skip
    return other, [model.features.attributes(x) for x in X]


def test_the_same_as_from_attributes(loaded):
    assert loaded.features == FEATURES
    other, attributes = by_hand(loaded, X)
    assert loaded.tag_many(X) == [loaded.tag(x) for x in X] == other.tag_many(attributes)
    assert loaded.tag_many(X, n_threads=3) == loaded.tag_many(X, n_threads=1)
    assert loaded.marginals(X[90]) == other.marginals(attributes[90])
    assert loaded.marginals_many(X[:3]) == other.marginals_many(attributes[:3])
    assert loaded.spans(X[90]) == other.spans(attributes[90])
    assert loaded.nbest(X[90], 3) == other.nbest(attributes[90], 3)
    assert loaded.confidence(X[90]) == other.confidence(attributes[90])
    assert loaded.probability(X[90], Y[90]) == other.probability(attributes[90], Y[90])
    first, second = loaded.explain(X[90], 1), other.explain(attributes[90], 1)
    assert first.to_dict() | {"token": ""} == second.to_dict() | {"token": ""}
    assert X[90][1] in loaded.explain(X[90])._repr_html_()
    fixed = {0: Y[90][0]}
    assert loaded.tag(X[90], fixed=fixed) == other.tag(attributes[90], fixed=fixed)


def test_the_estimator(crf):
    assert crf.predict(X[80:]) == crf.model_.tag_many(X[80:])
    assert crf.score(X[80:], Y[80:]) > 0.8
    assert crf.predict_single(X[0]) == crf.predict(X[:1])[0]
    assert [len(p) for p in crf.predict_proba(X[:2])] == [len(x) for x in X[:2]]
    assert crf.get_params()["features"] == FEATURES
    again = crfit.CRF(features=FEATURES.text.replace("gazetteer food\n", "").replace("clusters c 1\n", ""))
    again.fit(X[:20], Y[:20], dev=(X[20:30], Y[20:30]))
    assert "dev_f1" in again.result_.history[-1].extra
    data = Dataset.from_sequences(X[:20], Y[:20], features="default")
    assert (
        crfit.CRF().fit(data).model_.tag(X[0]) == crfit.CRF(features="default").fit(data).predict([X[0]])[0]
    )
    with pytest.raises(OptionError, match="X is a dataset with its own attributes"):
        crfit.CRF(features="lower").fit(data)


def test_any_sequence_of_tokens(loaded):
    x = X[90]
    expected = loaded.tag(x)
    given = (
        tuple(x),
        iter(x),
        np.array(x),
        [word.encode() for word in x],
        [type("S", (str,), {})(w) for w in x],
    )
    for one in given:
        assert loaded.tag(one) == expected
    assert loaded.tag([]) == []
    assert loaded.tag_many([x, [], (word for word in x)]) == [expected, [], expected]


@pytest.mark.parametrize(
    ("x", "message"),
    [
        ("two cups", "a sequence must be a list of tokens, not str; split a text into tokens first"),
        (["a", 1], "sequence 0, position 1: a token must be a str, not int 1"),
        ([["a", "b"]], "position 0: a token must be a str; the features make its attributes, not list"),
        (["\ud800"], "has surrogate code points"),
        ({"a": 1}, "a sequence must be a list of tokens, not dict"),
    ],
)
def test_what_is_not_a_sequence_of_tokens(loaded, x, message):
    for use in (loaded.tag, loaded.nbest, lambda x: loaded.tag_many([x]), lambda x: loaded.encode([x])):
        with pytest.raises(DataError) as caught:
            use(*([x, 2] if use == loaded.nbest else [x]))
        assert message in str(caught.value)


def test_several_columns(tmp_path):
    pairs = [[(word, str(len(word))) for word in x] for x in X]
    features = f.lower() + f.word(column=1).window(-1, 1)
    model = crfit.CRF(features=features).fit(pairs[:50], Y[:50]).model_
    assert (
        model.tag(pairs[60])
        == model.tag([list(pair) for pair in pairs[60]])
        == model.tag_many([pairs[60]])[0]
    )
    assert model.explain(pairs[60])[0].token == pairs[60][0][0]
    for x in (X[60], [("a", "b", "c")], ["ab"]):
        with pytest.raises(DataError, match="the features use 2 columns: give each token as a list or tuple"):
            model.tag(x)
    path = tmp_path / "test.jsonl"
    path.write_text(json.dumps({"tokens": pairs[60]}) + "\n")
    assert model.tag_many(model.read(path, labelled=False)) == [model.tag(pairs[60])]
    path.write_text(json.dumps({"tokens": ["a"]}) + "\n")
    with pytest.raises(DataError, match=r"test.jsonl:1: the features use 2 columns"):
        model.read(path, labelled=False)
    path.write_text(json.dumps({"tokens": [["a", 1]]}) + "\n")
    with pytest.raises(DataError, match=r"test.jsonl:1: expected a token, which is a string"):
        model.read(path, labelled=False)


def write(path, sequences, labels=None, *, json_lines=False):
    lines = []
    for i, x in enumerate(sequences):
        y = labels[i] if labels else None
        if json_lines:
            lines.append(json.dumps({"id": i, "tokens": x} | ({"labels": y} if y else {})) + "\n")
        else:
            lines += [" ".join([w, *([y[t]] if y else [])]) + "\n" for t, w in enumerate(x)] + ["\n"]
    path.write_text("".join(lines))
    return path


@pytest.mark.parametrize("n_threads", [1, 3])
def test_files_and_lists_give_the_same_data(tmp_path, n_threads):
    of_lists = Dataset.from_sequences(X, Y, features="default")
    for file in (write(tmp_path / "a.txt", X, Y), write(tmp_path / "a.jsonl", X, Y, json_lines=True)):
        found = crfit.text.read(file, features="default", n_threads=n_threads)
        assert found.features == f.default()
        assert found.attribute_alphabet == of_lists.attribute_alphabet
        assert found.label_alphabet == of_lists.label_alphabet
        for name in ("seq_ptr", "attr_ptr", "attr_ids", "labels"):
            assert np.array_equal(getattr(found, name), getattr(of_lists, name))
        found.save(tmp_path / "data")
        again = Dataset.load(tmp_path / "data")
        assert again.features == found.features
        assert np.array_equal(again.attr_ids, found.attr_ids)


def test_files_with_escapes_and_errors(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"tokens": ["a\\"b\\u00e9", "\\ud83d\\ude00"], "labels": ["A", "B"]}\n')
    data = crfit.text.read(path, features="lower\nprefix 1")
    assert data.attribute_alphabet.strings() == ['lower=a"bé', "prefix1=a", "lower=😀", "prefix1=😀"]
    path.write_text(
        '{"tokens": [["a"], "b"], "labels": ["A", "B"]}\n{"tokens": [["a", "b"]], "labels": ["A"]}\n'
    )
    with pytest.raises(
        DataError, match=r"a.jsonl:2: a token with several columns, but the features use only one"
    ):
        crfit.text.read(path, features="lower")
    path.write_text('{"tokens": [{"a": 1}], "labels": ["A"]}\n')
    with pytest.raises(DataError, match=r"a.jsonl:1: expected a token, which is a string"):
        crfit.text.read(path, features="lower")
    (tmp_path / "b.txt").write_text("a A\nb B\n")
    with pytest.raises(DataError, match=r"b.txt:1: .* but the features use column 1"):
        crfit.text.read(tmp_path / "b.txt", features="column 1")
    (tmp_path / "c.crfsuite").write_text("A\tw=a\n")
    with pytest.raises(DataError, match="features need tokens"):
        crfit.text.read(tmp_path / "c.crfsuite", features="lower")
    with pytest.raises(OptionError, match="leave one of the two out"):
        crfit.text.read(tmp_path / "b.txt", features="lower", template="recipe.template")


def test_model_files_that_are_wrong(crf, tmp_path, monkeypatch):
    from crfit.features import stored

    def refused(change):
        with monkeypatch.context() as patch:
            store = stored.store_features
            patch.setattr(
                "crfit.model.file.store_features",
                lambda features, tensors: change(store(features, tensors), tensors),
            )
            crf.model_.save(tmp_path / "wrong.crfit")
        with pytest.raises(ModelFileError, match="is damaged") as caught:
            crfit.load(tmp_path / "wrong.crfit")
        return str(caught.value)

    assert "list" in refused(
        lambda header, tensors: header | {"sources": ["food"]}
    )  # c is not read from a file
    assert "there is no feature" in refused(lambda header, tensors: header | {"text": "lowre"})
    assert "sources" in refused(lambda header, tensors: {"text": header["text"]})
    assert "text" in refused(lambda header, tensors: header | {"text": 3})

    def without(header, tensors):
        del tensors["features.0"]
        return header

    assert "features.0" in refused(without)

    def other(header, tensors):
        tensors["features.1"] = np.frombuffer(b"word without class\n", dtype=np.uint8)
        return header

    assert "is damaged" in refused(other)


def test_models_of_other_tools(crf, tmp_path):
    with pytest.warns(CrfitWarning, match="cannot make attributes from tokens"):
        formats.write(crf.model_.constrain(), tmp_path / "m.crfsuite")
    again = crfit.load(tmp_path / "m.crfsuite")
    assert again.features is None
    x = crf.model_.features.attributes(X[90])
    assert again.tag(x) == crf.model_.constrain().tag(X[90])
    with pytest.raises(ModelFileError, match="features instead of a template"):
        formats.write(crf.model_.constrain(), tmp_path / "m.crfpp")


def test_wrong_combinations(crf):
    model = crf.model_
    parts = (
        model.weights,
        model.layout,
        *(getattr(model, f"{n}_alphabet") for n in ("attribute", "label", "edge")),
    )
    with pytest.raises(OptionError, match="make the attributes: leave out template"):
        crfit.Model(*parts, template="U:%x[0,0]", features="default")
    with pytest.raises(OptionError, match="not for a classifier"):
        crfit.Model(*parts, features="default", options={"task": "classify"})


def test_indices_are_checked():
    for rows in (
        ([(1, 0, 0, 0)], [(b"a", [(0, 0)])], []),  # a list for a word
        ([(17, 0, 0, 1)], [(b"a", [(0, 0)])], [(False, False, b"a\tb\n")]),
        ([(18, 0, 0, 0)], [(b"a", [(0, 0)])], [(False, False, b"a\tb\n")]),  # clusters for a gazetteer
        ([(1, 0, 0, -1)], [(b"a", [(1, 0)])], []),
        ([(1, 0, 0, -1)], [(b"a", [])], []),
        ([(99, 0, 0, -1)], [(b"a", [(0, 0)])], []),
        ([(1, 0, -1, -1)], [(b"a", [(0, 0)])], []),
        ([(1, 0, 0, -1)], [(b"a", [(0, 10**6)])], []),
        ([(17, 0, 0, 0)], [(b"a", [(0, 0)])], [(False, False, b"no class\n")]),
    ):
        with pytest.raises(ValueError):
            _native.Features(*rows)


# --- the command line --------------------------------------------------------------------------------------


@pytest.mark.parametrize("json_lines", [False, True])
def test_the_command_line(call, tmp_path, json_lines):  # noqa: F811
    name = "x.jsonl" if json_lines else "x.txt"
    train = write(tmp_path / f"train-{name}", X[:80], Y[:80], json_lines=json_lines)
    test = write(tmp_path / f"test-{name}", X[80:], Y[80:], json_lines=json_lines)
    new = write(tmp_path / f"new-{name}", X[80:], json_lines=json_lines)
    own = tmp_path / "my.features"
    (tmp_path / "food.txt").write_text("olive oil\nflour\n")
    own.write_text("lower[-1..1]\nsuffix 1..3\ngazetteer food.txt\n")
    model = tmp_path / "m.crfit"
    call("train", train, "-m", model, "--features", own, "--dev", test, "-q", code=0)
    loaded = crfit.load(model)
    expected = crfit.CRF(features=f.load(own)).fit(X[:80], Y[:80]).model_
    assert loaded.tag_many(X[80:]) == expected.tag_many(X[80:])
    scores = call("eval", "-m", model, test, "--json", code=0).json
    assert scores["f1"] == pytest.approx(crfit.evaluate(Y[80:], expected.tag_many(X[80:])).f1)
    assert "wrong sequences" in call("eval", "-m", model, test, "--errors", 2, code=0).out
    lines = call("tag", "-m", model, new, code=0).out
    if json_lines:
        assert [json.loads(line)["labels"] for line in lines.splitlines()] == loaded.tag_many(X[80:])
    else:
        rows = [line.split("\t") for line in lines.splitlines() if line]
        assert [row[-1] for row in rows] == [label for y in loaded.tag_many(X[80:]) for label in y]
    # A model with features reads the other format too.
    other = write(
        tmp_path / ("o.txt" if json_lines else "o.jsonl"), X[80:], Y[80:], json_lines=not json_lines
    )
    assert call("eval", "-m", model, other, "--json", code=0).json == scores
    told = call("explain", "-m", model, test, "--sequence", 0, "--position", 0, code=0).out
    assert f"[{X[80][0]}]" in told
    assert "gazetteer food.txt" in call("inspect", model, code=0).out
    assert call("inspect", model, "--json", code=0).json["features"] == loaded.features.text
    call("inspect", model, "--html", tmp_path / "r.html", "--data", test, code=0)
    assert "gazetteer food.txt" in (tmp_path / "r.html").read_text()


def test_columns_besides_the_token_do_not_matter(call, tmp_path):  # noqa: F811
    train = tmp_path / "train.txt"
    train.write_text("".join("".join(f"{w} POS {y}\n" for w, y in line) + "\n" for line in LINES[:40]))
    call("train", train, "-m", tmp_path / "m", "--features", "default", "-q", code=0)
    new = write(tmp_path / "new.txt", X[80:82])
    tagged = call("tag", "-m", tmp_path / "m", new, code=0).out
    assert [line.split("\t")[0] for line in tagged.split("\n") if line] == X[80] + X[81]
    own = tmp_path / "pos.features"
    own.write_text("lower\ncolumn 1\n")
    call("train", train, "-m", tmp_path / "m", "--features", own, "-q", code=0)
    write(new, X[:2], Y[:2])
    assert "the features use column 1" in call("eval", "-m", tmp_path / "m", new, code=2).err
    new.write_text("a b c D\n")
    assert "the model was trained on 3" in call("eval", "-m", tmp_path / "m", new, code=2).err


def test_mistakes_on_the_command_line(call, tmp_path):  # noqa: F811
    train = write(tmp_path / "train.txt", X[:20], Y[:20])
    model, wrong = tmp_path / "m", tmp_path / "wrong.features"
    wrong.write_text("bias\nlowre\n")
    assert (
        f"{wrong}:2: there is no feature 'lowre'"
        in call("train", train, "-m", model, "--features", wrong, code=2).err
    )
    assert "nowhere: cannot be read" in call("train", train, "-m", model, "--features", "nowhere", code=2).err
    both = ("--features", "default", "--template", "recipe.template")
    assert "leave out --template" in call("train", train, "-m", model, *both, code=2).err
    classify = ("--features", "default", "--task", "classify")
    assert "--features default: is for sequences" in call("train", train, "-m", model, *classify, code=2).err
    own = tmp_path / "own.features"
    own.write_text("lower\n")
    assert "also an input" in call("train", train, "-m", own, "--features", own, code=2).err
    assert own.read_text() == "lower\n"
    assert not model.exists()


def test_resuming_a_run(call, tmp_path):  # noqa: F811
    train = write(tmp_path / "train.txt", X[:40], Y[:40])
    (tmp_path / "food").write_text("olive oil\n")
    plain, listed = tmp_path / "plain", tmp_path / "listed"
    plain.write_text("lower[-1..1]\n")
    listed.write_text("lower\ngazetteer food\n")

    def run(*more, code=0):
        start = (
            "train",
            train,
            "-m",
            tmp_path / "m",
            "--checkpoint",
            tmp_path / "c",
            "-q",
            "--trainer",
            "lbfgs",
        )
        return call(*start, *more, code=code).err

    run("--features", plain, "--max-iter", 3)
    run("--resume", tmp_path / "c", "--max-iter", 6)
    assert crfit.load(tmp_path / "m").features == f.load(plain)
    assert "has other features" in run("--resume", tmp_path / "c", "--features", listed, code=2)
    run("--features", listed, "--max-iter", 3)
    assert "give --features again" in run("--resume", tmp_path / "c", code=2)
    run("--resume", tmp_path / "c", "--features", listed, "--max-iter", 6)
    (tmp_path / "food").write_text("flour\n")
    assert "has other features" in run("--resume", tmp_path / "c", "--features", listed, code=2)


def test_loading_and_tagging_imports_no_training(loaded, tmp_path):
    code = (
        f"import crfit, sys\nprint(crfit.load({str(tmp_path / 'm.crfit')!r}).tag(['2', 'cups', 'flour']))\n"
        "heavy = {'click', 'rich', 'scipy', 'safetensors', 'crfit.trainers', 'crfit.training.loop'}\n"
        "assert not heavy & set(sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, env=os.environ
    )
    assert done.returncode == 0, done.stderr
    assert Features.parse("lower") is not None


def test_many_python_threads(loaded):
    expected = [loaded.tag(x) for x in X]
    with ThreadPoolExecutor(8) as pool:
        for _ in range(3):
            assert list(pool.map(loaded.tag, X)) == expected
            assert list(pool.map(lambda k: loaded.tag_many(X[k:])[0], range(60))) == expected[:60]
