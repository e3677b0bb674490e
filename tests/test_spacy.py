"""The spaCy component: entities, spans and tags in a pipeline, saved with its model."""

import importlib
import re
from pathlib import Path

import pytest

import crfit
from crfit.data import text
from crfit.data.templates import Template
from crfit.demo import attributes, recipe_data, recipe_lines
from crfit.errors import OptionError
from crfit.files import BYTE_ORDER_MARK

spacy = pytest.importorskip("spacy", reason="no spaCy: pip install 'crfit[spacy]'")
component = pytest.importorskip("crfit.spacy")

LINES = ["2 cups plain flour , sifted", "1 large onion , chopped", "a pinch of salt", "3 eggs"]


@spacy.registry.misc("test_recipe_attributes")
def recipe_attributes(doc):
    return attributes([token.text for token in doc])


@pytest.fixture(scope="module")
def model():
    X, y = recipe_data(300, seed=1)
    return crfit.CRF(l2=0.5).fit(X, y).model_


@pytest.fixture(scope="module")
def path(model, tmp_path_factory):
    file = tmp_path_factory.mktemp("spacy") / "m.crfit"
    model.save(file)
    return str(file)


def pipeline(path, **config):
    nlp = spacy.blank("en")
    nlp.add_pipe("crfit", config={"model": path, "attributes": "test_recipe_attributes", **config})
    return nlp


def words(doc):
    return attributes([token.text for token in doc])


def entities(doc):
    return [(one.start, one.end, one.label_) for one in doc.ents]


def spans_of(model, doc, least=0.0):
    return [span for span in model.spans(words(doc)) if span.probability >= least]


def test_entities_and_their_probabilities(model, path):
    nlp = pipeline(path)
    for doc in nlp.pipe(LINES):
        expected = spans_of(model, doc)
        assert entities(doc) == [tuple(span[:3]) for span in expected]
        assert [one._.probability for one in doc.ents] == pytest.approx([span[3] for span in expected])
        assert entities(nlp(doc.text)) == entities(doc)
    assert len(nlp("")) == 0
    assert [len(doc) for doc in nlp.pipe(["", LINES[0], ""], batch_size=1)][::2] == [0, 0]


def test_threshold_spans_and_tags(model, path):
    doc = pipeline(path, sets="spans", spans_key="sc", threshold=0.97)(LINES[0])
    assert not doc.ents
    expected = spans_of(model, doc, 0.97)
    assert 0 < len(expected) < len(spans_of(model, doc))
    assert [(one.start, one.end, one.label_) for one in doc.spans["sc"]] == [tuple(s[:3]) for s in expected]
    doc = pipeline(path, sets="tags")(LINES[0])
    assert [token.tag_ for token in doc] == model.tag(words(doc))
    best = [marginals[token.tag_] for marginals, token in zip(model.marginals(words(doc)), doc, strict=True)]
    assert [token._.probability for token in doc] == pytest.approx(best)
    unsure = pipeline(path, sets="tags", threshold=0.97)(LINES[0])
    assert [token.tag_ for token in unsure] == [
        label or "" for label in model.tag(words(doc), threshold=0.97)
    ]


def test_entities_that_are_there_stay(path):
    nlp = pipeline(path)
    doc = nlp.make_doc(LINES[0])
    whole = entities(nlp(LINES[0]))
    doc.ents = [spacy.tokens.Span(doc, 0, 2, label="MINE")]
    assert entities(nlp(doc)) == [(0, 2, "MINE"), *[one for one in whole if one[0] >= 2]]
    doc.ents = [spacy.tokens.Span(doc, 0, 2, label="MINE")]
    assert entities(pipeline(path, overwrite=True)(doc)) == whole


@pytest.mark.parametrize("way", ["disk", "bytes"])
def test_a_saved_pipeline_carries_the_model(path, model, tmp_path, way):
    model.save(tmp_path / "gone.crfit")
    nlp = pipeline(str(tmp_path / "gone.crfit"), threshold=0.5)
    nlp.add_pipe("sentencizer")
    expected = [entities(doc) for doc in nlp.pipe(LINES)]
    if way == "disk":
        nlp.to_disk(tmp_path / "pipeline")
        # The config names the file that was read; a saved pipeline does not need it any more.
        (tmp_path / "gone.crfit").unlink()
        loaded = spacy.load(tmp_path / "pipeline")
    else:
        data = nlp.to_bytes()
        config = nlp.config
        (tmp_path / "gone.crfit").unlink()
        loaded = spacy.blank("en").from_config(config).from_bytes(data)
    assert [entities(doc) for doc in loaded.pipe(LINES)] == expected


@pytest.mark.parametrize("way", ["disk", "bytes"])
def test_a_model_that_came_later_is_saved_too(model, tmp_path, way):
    file = tmp_path / "later.crfit"
    nlp = pipeline(str(file))
    model.save(file)
    if way == "disk":
        nlp.to_disk(tmp_path / "pipeline")
        file.unlink()
        again = spacy.load(tmp_path / "pipeline")
    else:
        data = nlp.to_bytes()
        file.unlink()
        again = pipeline(str(file)).from_bytes(data)
    assert again(LINES[0]).ents


def test_models_of_columns_get_the_texts():
    rows = "".join("".join(f"{word} {label}\n" for word, label in line) + "\n" for line in recipe_lines(100))
    template = Template("U0:%x[0,0]\nU1:%x[-1,0]\nB")
    objective = crfit.make_objective(text.read(text.Input("x", rows.encode()), template=template), l2=0.5)
    model = crfit.Model.from_training(objective, crfit.train(objective, "lbfgs"), template=template)
    nlp = spacy.blank("en")
    own = component.CrfitComponent(nlp.vocab, model, sets="tags")
    doc = own(nlp.make_doc("\ufeff 2 cups"))
    source = text.Input("x", BYTE_ORDER_MARK + "".join(f"{token.text}\n" for token in doc).encode())
    assert [token.tag_ for token in doc] == model.tag_many(model.read(source, labelled=False))[0]


def test_white_space_is_not_labelled():
    lines = recipe_lines(100)
    X, y = [[word for word, _ in line] for line in lines], [[label for _, label in line] for line in lines]
    model, nlp = crfit.CRF(features="default").fit(X, y).model_, spacy.blank("en")
    tags, spans = (component.CrfitComponent(nlp.vocab, model, sets=sets) for sets in ("tags", "spans"))
    doc = spans(tags(nlp.make_doc(" 2 cups \n plain   flour\n")))
    words = [token for token in doc if not token.is_space]
    assert 0 < len(words) < len(doc)
    assert [token.tag_ for token in words] == model.tag(["2", "cups", "plain", "flour"])
    assert all(not token.tag_ for token in doc if token.is_space)
    found = [(words[a].i, words[b - 1].i + 1, kind) for a, b, kind, _ in model.spans([w.text for w in words])]
    assert [(span.start, span.end, span.label_) for span in doc.spans["crfit"]] == found
    for empty in ("", " \n "):
        assert list(spans(nlp.make_doc(empty)).spans["crfit"]) == []


def test_bad_use(path, model, tmp_path):
    nlp = spacy.blank("en")
    with pytest.raises(OptionError, match="needs attributes"):
        nlp.add_pipe("crfit", config={"model": path})
    with pytest.raises(OptionError, match="choose ents"):
        pipeline(path, sets="x")
    with pytest.raises(OptionError, match="threshold"):
        pipeline(path, threshold=2.0)
    crfit.LogLinear().fit([["a"], ["b"]], ["A", "B"]).model_.save(tmp_path / "c.crfit")
    with pytest.raises(OptionError, match="classifier"):
        pipeline(str(tmp_path / "c.crfit"))
    with pytest.raises(crfit.errors.ModelFileError, match=r"missing\.crfit: cannot be read"):
        pipeline("missing.crfit")("a b")
    empty = spacy.blank("en")
    empty.add_pipe("crfit")
    with pytest.raises(OptionError, match="model file in the config"):
        empty("a b")


def test_the_entry_point_names_the_factory():
    project = (Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8")
    target = re.search(r'\[project\.entry-points\.spacy_factories\]\ncrfit = "(.+):(.+)"', project)
    assert getattr(importlib.import_module(target[1]), target[2]) is component.make_crfit
    assert spacy.Language.has_factory("crfit")
