"""The text language and the objects: two views of one thing."""

import gzip
import pickle
import re
from pathlib import Path

import pytest
from hypothesis import given, settings

from crfit import features as f
from crfit.errors import DataError, OptionError
from crfit.features import Features, as_features
from crfit.features.presets import PRESETS
from features.test_attributes import feature_sets


@settings(max_examples=300, deadline=None)
@given(feature_sets)
def test_text_and_objects_are_two_views(features):
    again = Features.parse(features.text, contents=features.contents)
    assert again == features
    assert hash(again) == hash(features)
    assert again.text == features.text
    assert pickle.loads(pickle.dumps(features)) == features


TEXTS = [
    ("lower[-2..2] # comment\r\n\n  # another", f.lower().window(-2, 2)),
    ("prefix 3", f.prefix(3)),
    ("  suffix   1..4 [ -1 .. +1 ] ", f.suffix(1, 4).window(-1, 1)),
    ("lower&lower[1]", f.lower() & f.lower().at(1)),
    ("(lower & lower[1])[-1..0] & first", (f.lower() & f.lower().at(1)).window(-1, 0) & f.first()),
    ("((shape))[-1][2]", f.shape().at(-1).at(2)),
    ("column 2[1]", f.word(column=2).at(1)),
    ("is title upper column=1", f.is_("title", "upper", column=1)),
    ("length\ncommas 7", f.Features(f.length(10), f.commas(7))),
]


@pytest.mark.parametrize(("text", "feature"), TEXTS)
def test_what_texts_mean(text, feature):
    assert Features.parse(text) == as_features(feature)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("lowre", "there is no feature 'lowre': did you mean lower?"),
        ("prefix", "prefix needs how many characters, as in 'prefix 3' or 'prefix 1..4'"),
        ("prefix 4..1", "give a whole number, 4 or more"),
        ("prefix 0", "give a whole number, 1 or more"),
        ("prefix 1..1000", "give 100 characters or fewer"),
        ("lower 3", "a window is written lower[-1..1]"),
        ("lower[3..1]", "a window goes from left to right"),
        ("lower[1..]", "a window is [-1] or [-2..2]"),
        ("lower[900]", "give an offset from -100 to 100"),
        ("lower & ", "a feature is missing before the end of the line"),
        ("(lower & shape", "a closing parenthesis is missing"),
        ("lower shape", "lower takes no 'shape'"),
        ("lower[1] shape", "'shape' is not expected here; join features with &"),
        ("is big", "'big': choose from alpha, digit"),
        ("has", "give at least one: letter, upper"),
        ("first column=1", "first has no column"),
        ("from_end 3 column=1", "from_end has no column"),
        ("column", "column needs a number"),
        ("lower column=1000", "give a column from 0 to 99"),
        ("length a", "length: 'a' is not a number"),
        ("gazetteer", "gazetteer needs a file"),
        ('gazetteer "a', "a quotation mark is missing"),
        ("(lower[-50..50] & shape[-50..50])", "more than 10,000 attributes"),
        ("(" * 60 + "lower" + ")" * 60, "nested too deeply"),
    ],
)
def test_errors_name_the_line(line, message):
    with pytest.raises(DataError) as caught:
        Features.parse(f"# first\nbias\n{line}\n", "my.features")
    assert str(caught.value).startswith("my.features:3: ")
    assert message in str(caught.value)


def test_a_text_without_features():
    with pytest.raises(DataError, match=r"my.features: no features: give one on each line"):
        Features.parse("# nothing\n\n", "my.features")


def test_files_of_lists(tmp_path):
    (tmp_path / "lists").mkdir()
    (tmp_path / "lists" / "my cities.txt").write_text("New York\r\n\nParis\n")
    (tmp_path / "brown").write_text("0110\tnew\t120\n01\tParis\t3\n")
    with gzip.open(tmp_path / "classes.txt.gz", "wt") as file:
        file.write("new ADJ\nyork NAME\n")
    text = 'gazetteer "lists/my cities.txt" exact as city\nclusters brown 1 3\nclusters classes.txt.gz'
    path = tmp_path / "my.features"
    path.write_text(text)
    features = f.load(path)
    assert features.text == text + "\n"
    assert features.attributes(["New", "York", "PARIS"]) == [
        ["gazetteer:city=B", "cluster:brown1=0", "cluster:brown3=011", "cluster:classes=ADJ"],
        ["gazetteer:city=L", "cluster:classes=NAME"],
        [],
    ]
    assert list(features.contents) == ["lists/my cities.txt", "brown", "classes.txt.gz"]
    path.write_text("lower\ngazetteer nothing.txt\n")
    with pytest.raises(DataError, match=r"nothing.txt: cannot be read"):
        f.load(path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a b\nc d e\n", r"list:2: 3 fields: give a word and its class"),
        ("\n", r"list: has no words"),
    ],
)
def test_files_of_clusters_that_are_wrong(tmp_path, content, message):
    (tmp_path / "list").write_text(content)
    with pytest.raises(DataError, match=message):
        f.clusters(tmp_path / "list")


def test_lengths_are_for_bit_strings(tmp_path):
    (tmp_path / "list").write_text("a N\n")
    with pytest.raises(DataError, match="my:1: '4': are for classes that are bit strings"):
        Features.parse("clusters list 4", "my", folder=tmp_path)


def test_lists_with_one_name():
    with pytest.raises(OptionError, match="two lists have this name"):
        f.Features(f.gazetteer(["a"], name="x"), f.gazetteer(["b"], name="x"))
    with pytest.raises(DataError, match="two lists have this name: name one with 'as NAME'"):
        Features.parse("gazetteer a/x\ngazetteer b/x", contents={"a/x": b"a\n", "b/x": b"b\n"})
    with pytest.raises(OptionError, match="give a name to a list"):
        f.gazetteer(["a"])
    with pytest.raises(OptionError, match="give a name without spaces"):
        f.gazetteer(["a"], name="x y")


def test_one_name_for_different_attributes():
    with pytest.raises(OptionError, match=r"features='length 5': another feature also makes 'length='"):
        f.Features(f.length(3), f.length(5))
    with pytest.raises(DataError, match=r"my: 'commas 2': another feature also makes 'commas='"):
        Features.parse("commas\ncommas 2", "my")
    assert f.Features(f.length(3), f.length(3).window(0, 1)).n_attributes == 2


def test_arguments():
    assert as_features(None) is None
    assert as_features("default") == f.default() == f.load("default")
    assert as_features("lower\nshape") == as_features([f.lower(), f.shape()]) == f.lower() + f.shape()
    assert as_features(f.lower()) == Features(f.lower())
    assert f.default() + f.bias() == f.default()
    for wrong in (3, [], ["lower"], object()):
        with pytest.raises(OptionError):
            as_features(wrong)
    with pytest.raises(DataError, match="features:1: there is no feature 'defaults'"):
        as_features("defaults lower")
    with pytest.raises(OptionError, match=re.escape("pathlib.Path")):
        as_features(__file__)
    with pytest.raises(OptionError, match="further than 100"):
        Features(f.lower().at(60).at(60))
    for make, wrong in (
        (f.prefix, (0,)), (f.prefix, (1.5,)), (f.suffix, (3, 2)), (f.length, (0,)),
        (f.is_, ()), (f.is_, ("x",)),
        (f.lower().window, (1, 0)), (f.lower().at, ("a",)), (f.Features, ()), (f.Features, ("lower",)),
    ):  # fmt: skip
        with pytest.raises(OptionError):
            make(*wrong)


def test_features_that_come_with_crfit_are_written_as_they_print():
    for text in PRESETS.values():
        assert Features.parse(text).text == text


def test_the_guide_shows_the_default_set():
    page = (Path(__file__).resolve().parents[2] / "docs" / "features.md").read_text()
    assert "".join(f"    {line}\n" for line in PRESETS["default"].splitlines()) in page


def test_immutable_and_shown():
    features = f.default()
    assert "attributes per token" in repr(features)
    assert len(features) == len(list(features)) == len(features.text.splitlines())
    with pytest.raises(AttributeError):
        f.lower().column = 3
    with pytest.raises(TypeError):
        f.lower() & "lower"
    with pytest.raises(TypeError):
        features + "lower"
