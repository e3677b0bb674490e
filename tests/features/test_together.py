"""Models with features in pipes, services, spaCy, retraining and searches."""

import json
import re

import pytest
from servers import running

import crfit
from cli_helpers import call  # noqa: F401
from crfit.data.tokens import tokenize
from crfit.demo import recipe_lines
from crfit.errors import OptionError
from crfit.inspection.difference import compare

LINES = [
    line
    for line in recipe_lines(170, seed=5)
    if [t.token for t in tokenize(" ".join(w for w, _ in line))] == [w for w, _ in line]
]
X = [[word for word, _ in line] for line in LINES]
Y = [[label for _, label in line] for line in LINES]
TEXT = "2 cups brown sugar, packed"
TOKENS = ["2", "cups", "brown", "sugar", ",", "packed"]


def json_lines(path, X, Y=None, **more):
    records = [{"tokens": x, **more} for x in X]
    for record, y in zip(records, Y or (), strict=False):
        record["labels"] = y
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def columns(path, X, Y):
    rows = (
        "".join(f"{w}\t{label}\n" for w, label in zip(x, y, strict=True)) for x, y in zip(X, Y, strict=True)
    )
    path.write_text("\n".join(rows))
    return path


def with_spans(x, y):
    """A text, and the spans of its characters."""
    at, spans = 0, []
    for token, label in zip(x, y, strict=True):
        if label.startswith("B-"):
            spans.append([at, at + len(token), label[2:]])
        elif label.startswith("I-"):
            spans[-1][1] = at + len(token)
        at += len(token) + 1
    return " ".join(x), spans


def doccano(path, X, Y):
    pairs = [with_spans(x, y) for x, y in zip(X, Y, strict=True)]
    path.write_text("".join(json.dumps({"text": text, "label": spans}) + "\n" for text, spans in pairs))
    return path


def label_studio(path, X, Y):
    tasks = []
    for x, y in zip(X, Y, strict=True):
        text, spans = with_spans(x, y)
        values = [{"start": a, "end": b, "text": text[a:b], "labels": [n]} for a, b, n in spans]
        result = [{"type": "labels", "value": value} for value in values]
        tasks.append({"data": {"text": text}, "annotations": [{"result": result}]})
    path.write_text(json.dumps(tasks))
    return path


FORMS = {"json": json_lines, "columns": columns, "doccano": doccano, "label_studio": label_studio}


@pytest.fixture(scope="module")
def model():
    return crfit.CRF(features="default").fit(X[:100], Y[:100]).model_


@pytest.fixture(scope="module")
def path(model, tmp_path_factory):
    file = tmp_path_factory.mktemp("model") / "m.crfit"
    model.save(file)
    return file


def is_from_tokens(found, model):
    """Whether a model makes the attributes of another one from tokens."""
    return found.features == model.features and found.template is None and len(found.tag(TOKENS)) == 6


# --- files -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
def test_every_form_trains_the_same_model(call, model, path, tmp_path, form):  # noqa: F811
    suffix = {"columns": "txt", "label_studio": "json"}.get(form, "jsonl")
    train, dev = (
        FORMS[form](tmp_path / f"{name}.{suffix}", X[a:b], Y[a:b])
        for name, a, b in (("train", 0, 100), ("dev", 100, 140))
    )
    new = tmp_path / "new.crfit"
    ran = call("train", train, "-m", new, "--features", "default", "--dev", dev, "-q", "--json", code=0).json
    found = crfit.load(new)
    assert found.weights.tobytes() == model.weights.tobytes()
    assert ran["dev"] == found.evaluate(found.read(dev)).to_dict()
    assert call("eval", "-m", path, dev, "--json", code=0).json["f1"] == pytest.approx(ran["dev"]["f1"])
    shown = call("eval", "-m", path, dev, "--errors", code=0).out
    wrong = [x for x, y in zip(X[100:140], Y[100:140], strict=True) if model.tag(x) != y]
    assert f"{len(wrong)} wrong sequences" in shown
    assert ("line " in shown) == (form in ("json", "columns"))  # others have no lines of their own
    assert f"[{X[100][0]}]" in call("explain", "-m", path, dev, "--sequence", 0, "--position", 0, code=0).out
    assert f"{len(X[100:140])} sequences are" in call("diff", path, path, "--data", dev, code=0).out


def test_tokens_of_json_lines_may_hold_spaces(call, tmp_path):  # noqa: F811
    train = json_lines(
        tmp_path / "a.jsonl", [["1 1/2", "cups"], ["2", "large eggs"]], [["Q", "U"], ["Q", None]]
    )
    call("train", train, "-m", tmp_path / "m", "--features", "default", "-q", code=0)
    model = crfit.load(tmp_path / "m")
    assert "word=1 1/2" in model.attribute_alphabet.strings()
    assert model.labels == ["Q", "U"]
    told = call("eval", "-m", tmp_path / "m", train, "--errors", code=2).err
    assert "--errors needs the label of every token, but some are not known" in told
    assert call("eval", "-m", tmp_path / "m", train, "--json", code=0).json["tokens"] == 3
    beside = columns(tmp_path / "b.txt", X[:3], Y[:3])
    told = call("train", beside, train, "-m", tmp_path / "n", "--features", "default", code=2).err
    assert "a.jsonl:1: the token at position 0" in told
    assert "split it" in told


def test_forms_beside_each_other(call, tmp_path):  # noqa: F811
    files = [FORMS[form](tmp_path / f"{form}.x", X[i : i + 5], Y[i : i + 5]) for i, form in enumerate(FORMS)]
    for chosen in (files, [one for one in files if "columns" not in one.name]):
        ran = call("train", *chosen, "-m", tmp_path / "m", "--features", "default", "-q", "--json", code=0)
        assert ran.json["n_sequences"] == 5 * len(chosen)
        assert is_from_tokens(
            crfit.load(tmp_path / "m"), crfit.CRF(features="default").fit(X[:2], Y[:2]).model_
        )


# --- pipes -------------------------------------------------------------------------------------------------


def test_a_pipe_takes_texts_tokens_and_columns(call, model, path, tmp_path):  # noqa: F811
    mixed = [
        {"id": 7, "text": TEXT},
        {"tokens": ["3", "eggs"], "text": "3 eggs", "n": [1]},
        {"text": "1 onion", "lang": "en"},
    ]
    new = tmp_path / "new"
    new.write_text("\n\n".join(map(json.dumps, mixed)))
    found = [json.loads(line) for line in call("tag", "-m", path, new, code=0).out.splitlines()]
    assert [one.pop("labels") for one in found] == model.tag_many([TOKENS, ["3", "eggs"], ["1", "onion"]])
    places = found[0].pop("tokens")
    assert [TEXT[one["start"] : one["end"]] for one in places] == [one["token"] for one in places] == TOKENS
    assert [one["token"] for one in found[2].pop("tokens")] == ["1", "onion"]
    assert found == [{"id": 7, "text": TEXT}, mixed[1], {"text": "1 onion", "lang": "en"}]
    least = json.loads(call("tag", "-m", path, new, "--least-confident", 1, code=0).out)
    assert least["text"] == mixed[least["sequence"]]["text"]
    call("tag", "-m", path, new, "--nbest", 2, "--spans", code=0)
    new.write_text("2\ncups\n")
    assert call("tag", "-m", path, new, code=0).out.split() == ["2", "B-QTY", "cups", "B-UNIT"]
    assert "needs --json" in call("tag", "-m", path, new, "--nbest", 2, "--spans", code=2).err
    new.write_text('{"text": "1 egg"}\n{"text": 7}\n')
    told = call("tag", "-m", path, new, code=2)
    assert 'new:2: "text" is not a string' in told.err
    assert len(told.out.splitlines()) == 1


def test_a_text_without_tokens_has_an_empty_answer(call, model, path, tmp_path):  # noqa: F811
    new = tmp_path / "new.jsonl"
    new.write_text('{"text": " ", "n": 0}\n{"text": "2 cups", "n": 1}\n{"n": 2, "text": ""}\n')
    found = [json.loads(line) for line in call("tag", "-m", path, new, "--spans", code=0).out.splitlines()]
    assert [one["n"] for one in found] == [0, 1, 2]
    assert [len(one["labels"]) for one in found] == [0, 2, 0]
    assert found[0] == {"text": " ", "n": 0, "tokens": [], "labels": [], "spans": []}
    least = json.loads(call("tag", "-m", path, new, "--least-confident", 1, code=0).out)
    assert (least["n"], least["sequence"]) == (1, 1)
    new.write_text('{"text": ""}\n')
    assert json.loads(call("tag", "-m", path, new, code=0).out) == {"text": "", "tokens": [], "labels": []}


def test_answers_to_texts_are_corrections(call, path, tmp_path):  # noqa: F811
    new, fixed = tmp_path / "new", tmp_path / "fixed.jsonl"
    new.write_text(json.dumps({"text": TEXT}) + "\n")
    fixed.write_text(call("tag", "-m", path, new, code=0).out.replace("B-PREP", "B-HOW"))
    ran = call("train", fixed, "-m", tmp_path / "m", "--toward", path, "-q", "--json", code=0).json
    assert ran["before_after"][0]["before"]["wrong_tokens"] == 1
    assert crfit.load(tmp_path / "m").tag(TOKENS)[-1] == "B-HOW"


def test_json_lines_for_a_template_are_refused(call, tmp_path):  # noqa: F811
    train = json_lines(tmp_path / "a.jsonl", X[:20], Y[:20])
    call("train", train, "-m", tmp_path / "m", "-q", code=0)  # labelled tokens become columns
    told = call("tag", "-m", tmp_path / "m", json_lines(tmp_path / "b", X[:2]), code=2).err
    assert "looks like JSON lines, but the model has a template" in told
    assert "--features" in told
    told = call("eval", "-m", tmp_path / "m", train, "--errors", 1, code=0).out
    assert "accuracy" in told


def test_a_model_of_attributes_says_what_it_needs(call, tmp_path):  # noqa: F811
    crfit.CRF().fit([[["w=a"]]], [["X"]]).save(tmp_path / "m")
    dev = json_lines(tmp_path / "dev.jsonl", X[:2], Y[:2])
    for verb in ("eval", "tag", "explain"):
        assert (
            "a token is a string, but attributes are expected"
            in call(verb, "-m", tmp_path / "m", dev, code=2).err
        )
    told = call("train", dev, "-m", tmp_path / "n", "--features", "defualt", code=2).err
    assert "defualt: cannot be read" in told
    assert "name a file of features, or default" in told


# --- old models --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("option", ["--init", "--toward"])
@pytest.mark.parametrize("form", FORMS)
def test_features_come_from_the_old_model(call, model, path, tmp_path, option, form):  # noqa: F811
    fixed, dev = (
        FORMS[form](tmp_path / "fixed.json", X[100:130], Y[100:130]),
        json_lines(tmp_path / "d", X[130:], Y[130:]),
    )
    new = tmp_path / "new.crfit"
    arguments = ["train", fixed, "-m", new, option, path, "--dev", dev]
    ran = call(*arguments, "--json", code=0)
    assert f"from {path}: features" in ran.err
    found = crfit.load(new)
    assert is_from_tokens(found, model)
    for row, part in zip(ran.json["before_after"], (slice(100, 130), slice(130, None)), strict=True):
        for one, name in ((model, "before"), (found, "after")):
            wrong = sum(
                a != b
                for x, y in zip(X[part], Y[part], strict=True)
                for a, b in zip(one.tag(x), y, strict=True)
            )
            assert row[name]["wrong_tokens"] == wrong


def test_from_a_template_to_features(call, tmp_path):  # noqa: F811
    """Each model is scored on the attributes that it knows."""
    train, old, new = columns(tmp_path / "a.txt", X[:60], Y[:60]), tmp_path / "old", tmp_path / "new"
    call("train", train, "-m", old, "-q", code=0)
    for file in (train, json_lines(tmp_path / "a.jsonl", X[:60], Y[:60])):
        both = ("--init", old, "--features", "default", "--dev", file)
        rows = call("train", file, "-m", new, *both, "-q", "--json", code=0).json["before_after"]
        before = call("eval", "-m", old, file, "--json", code=0).json
        for row in rows:
            assert row["before"]["wrong_tokens"] == before["tokens"] - round(
                before["accuracy"] * before["tokens"] / 100
            )
        assert crfit.load(new).features is not None


def test_estimators_take_the_features_of_old_models(model, path):
    new = X[100:110], Y[100:110]
    assert is_from_tokens(crfit.CRF(warm_start=path).fit(*new).model_, model)
    assert is_from_tokens(crfit.CRF(toward=model).fit(*new).model_, model)
    assert is_from_tokens(crfit.CRF.from_model(model).partial_fit(*new).model_, model)
    loaded = crfit.CRF.load(path)
    assert loaded.predict(X[:5]) == model.tag_many(X[:5])
    assert is_from_tokens(loaded.set_params(warm_start=True, features=None).fit(*new).model_, model)
    own = crfit.CRF(warm_start=model, features="lower\nbias").fit(*new).model_
    assert own.features.text.split() == ["lower", "bias"]


# --- searches, pruning, differences ------------------------------------------------------------------------


def test_searches_keep_the_features(call, model, path, tmp_path):  # noqa: F811
    search = crfit.CRFCV(features="default", l2=[0.3, 1.0], cv=2).fit(X[:60], Y[:60])
    assert is_from_tokens(search.model_, model)
    expected = crfit.CRF(features="default", l2=search.best_params_["l2"]).fit(X[:60], Y[:60])
    assert search.predict(X[60:]) == expected.predict(X[60:])
    files = [FORMS[form](tmp_path / f"{form}.x", X[:60], Y[:60]) for form in ("json", "doccano")]
    arguments = ("--features", "default", "--l2", "0.3,1", "-q")
    call("tune", *files, "-m", tmp_path / "m", "--dev", files[0], *arguments, code=0)
    assert is_from_tokens(crfit.load(tmp_path / "m"), model)
    told = call("tune", files[0], "-m", tmp_path / "m", "--task", "classify", *arguments, code=2).err
    assert "features" in told


def test_pruned_models_take_tokens(call, model, path, tmp_path):  # noqa: F811
    dev = json_lines(tmp_path / "dev.jsonl", X[100:], Y[100:])
    small = tmp_path / "small.crfit"
    out = call("convert", path, small, "--prune", 0.5, "--data", dev, code=0).out
    assert re.search(r"at most [\d.]+ on the", out)
    assert is_from_tokens(crfit.load(small), model)
    assert crfit.load(small).layout.n_weights < model.layout.n_weights
    for form in ("doccano", "columns"):
        file = FORMS[form](tmp_path / form, X[100:], Y[100:])
        other = call("convert", path, tmp_path / "s.crfit", "--prune", 0.5, "--data", file, code=0).out
        assert other.splitlines()[1] == out.splitlines()[1]
    bound = model.prune(1.0)  # as many attributes as the features make at most
    assert bound.summary["pruned"]["max_attributes"] == model.features.n_attributes
    assert is_from_tokens(bound, model)
    with pytest.raises(OptionError, match="data says it already"):
        model.prune(1.0, data=crfit.Dataset.from_sequences(X, features="default"), max_attributes=3)


def test_differences_name_the_features(model):
    other = crfit.CRF(features="bias\nlower").fit(X[:20], Y[:20]).model_
    told = compare(model, other).to_dict()["options"]["features"]
    assert list(told.values() if isinstance(told, dict) else told) == [
        model.features.text,
        other.features.text,
    ]
    assert "features" not in compare(model, model).to_dict()["options"]


# --- services ----------------------------------------------------------------------------------------------


def test_the_service_takes_texts_and_tokens(model, path, tmp_path):
    pytest.importorskip("starlette", reason="no starlette: pip install 'crfit[serve]'")
    with running(crfit.load(path)) as ask:
        labels = model.tag(TOKENS)
        status, found = ask("/tag", {"id": 7, "text": TEXT, "spans": True})
        assert (status, found["id"], found["labels"]) == (200, 7, labels)
        assert [one["token"] for one in found["tokens"]] == TOKENS
        assert [TEXT[one["start"] : one["end"]] for one in found["tokens"]] == TOKENS
        assert ask("/tag", {"tokens": TOKENS})[1] == {"tokens": TOKENS, "labels": labels}
        status, found = ask(
            "/batch", {"sequences": [{"tokens": ["a b", ""]}, {"text": " "}], "marginals": True}
        )
        assert status == 200  # what a token holds does not matter
        assert [one["labels"] for one in found["sequences"]] == [model.tag(["a b", ""]), []]
        assert ask("/tag", {"tokens": [["2"], {"w": 1}]})[0] == 400
        assert b"One sentence a line" in ask("/")[1]
        assert ask("/health")[1]["text"] is True


def test_the_component_of_spacy_needs_no_attributes(model, path, tmp_path):
    spacy = pytest.importorskip("spacy", reason="no spaCy: pip install 'crfit[spacy]'")
    pytest.importorskip("crfit.spacy")
    nlp = spacy.blank("en")
    nlp.add_pipe("crfit", config={"model": str(path)})
    doc = nlp(TEXT)
    tokens = [token.text for token in doc]
    expected = [(span.start, span.end, span.type) for span in model.spans(tokens)]
    assert [(one.start, one.end, one.label_) for one in doc.ents] == expected
    assert expected
    nlp.to_disk(tmp_path / "saved")
    again = spacy.load(tmp_path / "saved")
    assert [one.text for one in again(TEXT).ents] == [one.text for one in doc.ents]
