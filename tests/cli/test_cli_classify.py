"""Classifiers on the command line: train, tag, eval, inspect, and what is refused."""

import gzip
import json

import numpy as np
import pytest

import crfit
from cli_helpers import program
from crfit import LogLinear
from crfit.data import items
from crfit.data.text import Input
from crfit.errors import DataError

WORDS = {
    "spam": ["cheap", "pills", "offer", "now"],
    "ham": ["see", "you", "soon"],
    "news": ["war", "vote", "now"],
}


def make_items(n, seed):
    rng = np.random.default_rng(seed)
    items = []
    for _ in range(n):
        label = str(rng.choice(list(WORDS), p=[0.5, 0.3, 0.2]))
        other = str(rng.choice(list(WORDS)))
        words = [*rng.choice(WORDS[label], 2), *rng.choice(WORDS[other], 2)]
        items.append(
            (label, {**{f"w={word}": 1.0 for word in words}, "length": float(rng.integers(1, 9)) / 8})
        )
    return items


def as_crfsuite(items):
    return "\n".join("\t".join([label, *(f"{a}:{v:g}" for a, v in x.items())]) for label, x in items) + "\n"


def as_jsonl(items):
    return "".join(json.dumps({"label": label, "attributes": x}) + "\n" for label, x in items)


TRAIN, TEST = make_items(150, 0), make_items(60, 1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("classify")
    for name, part in (("train", TRAIN), ("test", TEST)):
        (folder / f"{name}.crfsuite").write_text(as_crfsuite(part))
        (folder / f"{name}.jsonl").write_text(as_jsonl(part))
    packed = gzip.compress(as_crfsuite(TRAIN).replace("\n", "\n\n \n").encode())
    (folder / "blank.crfsuite.gz").write_bytes(packed)
    return folder


@pytest.fixture
def learn(call, folder, tmp_path):
    """Trains a classifier, on train.crfsuite unless told otherwise, into the file m."""

    def run(*options, data=folder / "train.crfsuite", model=tmp_path / "m", code=0):
        return call("train", data, "--task", "classify", "-m", model, *options, code=code)

    return run


def test_program_round_trip(folder, tmp_path):
    model = tmp_path / "m.crfit"
    trained = program(
        "train", folder / "train.crfsuite", "--task", "classify", "-m", model,
        "--dev", folder / "test.crfsuite", "--json", code=0,
    )  # fmt: skip
    record = json.loads(trained.stdout)
    assert record["n_sequences"] == 150
    assert record["dev"].keys() >= {"accuracy", "macro_f1", "micro_f1", "by_class", "items"}
    tagged = program("tag", "-m", model, input=(folder / "test.crfsuite").read_bytes(), code=0)
    assert tagged.stderr == b""
    labels = tagged.stdout.decode().splitlines()
    right = [found == label for found, (label, _) in zip(labels, TEST, strict=True)]
    scored = program("eval", "-m", model, folder / "test.crfsuite", "--json")
    assert json.loads(scored.stdout)["accuracy"] == pytest.approx(100 * np.mean(right))
    assert json.loads(scored.stdout) == {**record["dev"], "confusions": []}


@pytest.mark.parametrize("classes", ["multinomial", "one_vs_rest"])
@pytest.mark.parametrize("extra", [[], ["--no-intercept"]])
@pytest.mark.parametrize("suffix", ["crfsuite", "jsonl"])
def test_same_as_the_estimator(call, learn, folder, tmp_path, suffix, extra, classes):
    options = ["--classes", classes, "-q", *extra, "--l2", 0.5, "--stop-grad-inf", 1e-7]
    learn(*options, data=folder / f"train.{suffix}")
    ours = LogLinear(l2=0.5, classes=classes, fit_intercept=not extra, stop=crfit.Stop(grad_inf=1e-7))
    ours.fit([x for _, x in TRAIN], [label for label, _ in TRAIN])
    items = [x for _, x in TEST]
    expected = ours.predict_proba(items)
    tagged = call("tag", "-m", tmp_path / "m", folder / f"test.{suffix}", "--marginals", "--json")
    records = [json.loads(line) for line in tagged.out.splitlines()]
    assert [record["label"] for record in records] == ours.predict(items).tolist()
    found = [[record["probabilities"][name] for name in ours.classes_] for record in records]
    np.testing.assert_allclose(found, expected, atol=1e-6)
    assert [record["probability"] for record in records] == [max(row) for row in found]
    loaded = crfit.load(tmp_path / "m")
    assert (loaded.options["task"], loaded.options["classes"]) == ("classify", classes)
    assert loaded.input_format == suffix
    assert ("(intercept)" in loaded.attribute_alphabet) == (not extra)


def test_blank_lines_and_compression_change_nothing(learn, folder, tmp_path):
    names = ["train.crfsuite", "blank.crfsuite.gz"]
    for name in names:
        learn("-q", "--input", "crfsuite", data=folder / name, model=tmp_path / name)
    one, other = ((tmp_path / name).read_bytes() for name in names)
    assert one == other


def test_tag_in_text(call, learn, folder, tmp_path):
    model = tmp_path / "m"
    learn("-q")
    plain = call("tag", "-m", model, folder / "test.crfsuite").out.splitlines()
    likely = call("tag", "-m", model, folder / "test.crfsuite", "--marginals").out.splitlines()
    assert [line.rpartition(":")[0] for line in likely] == plain
    assert all(1 / 3 <= float(line.rpartition(":")[2]) <= 1 for line in likely)
    # An item of which nothing is known has the intercept alone.
    ran = call("tag", "-m", model, write(tmp_path / "none.crfsuite", "?\tw=unheard\n"))
    loaded = crfit.load(model)
    assert loaded.labels[int(loaded.weights[loaded.layout.free].argmax())] + "\n" == ran.out
    assert "is not in the model" in ran.err
    ran = call("tag", "-m", model, write(tmp_path / "bare.crfsuite", "?\n"))
    assert "has no attributes" in ran.err


def write(path, text):
    path.write_text(text, encoding="utf-8")
    return path


def test_eval_in_text(call, learn, folder, tmp_path):
    model = tmp_path / "m"
    ran = learn("-q", "--dev", folder / "test.crfsuite")
    assert "150 items, 3 labels" in ran.out
    assert "macro F1" in ran.out
    assert "recall" not in ran.out
    shown = call("eval", "-m", model, folder / "test.crfsuite", "--confusion").out
    lines = shown.splitlines()
    assert lines[0].startswith("processed 60 items; correct: ")
    assert lines[1].startswith("accuracy and micro F1:")
    assert {line.split()[0] for line in lines[4:7]} == set(WORDS)
    assert "gold  predicted   items" in shown
    scores = call("eval", "-m", model, folder / "test.crfsuite", "--json").json
    by_class = scores["by_class"].values()
    assert scores["macro_f1"] == pytest.approx(np.mean([one["f1"] for one in by_class]))
    assert scores["micro_f1"] == scores["accuracy"]


def test_inspect(call, learn, tmp_path):
    model = tmp_path / "m"
    learn("-q")
    assert "task classify, classes multinomial" in call("inspect", model).out
    top = call("inspect", model, "--top", 2, "--label", "news").out
    assert "w=war" in top or "w=vote" in top
    assert call("inspect", model, "--json").json["options"]["task"] == "classify"


def test_early_stopping_and_resume(call, learn, folder, tmp_path):
    common, log = ["--trainer", "lbfgs", "-q"], tmp_path / "log"
    learn(*common, "--dev", folder / "test.crfsuite", "--early-stop", 2, "--log", log)
    steps = [json.loads(line) for line in log.read_text().splitlines()]
    assert any("dev_macro_f1" in json.dumps(step) for step in steps)
    learn(*common, "--max-iter", 5, "--checkpoint", tmp_path / "c")
    resumed = ["-q", "-m", tmp_path / "d", "--max-iter", 12, "--resume", tmp_path / "c"]
    call("train", folder / "train.crfsuite", *resumed, code=0)
    learn(*common, "--max-iter", 12)
    assert np.array_equal(crfit.load(tmp_path / "d").weights, crfit.load(tmp_path / "m").weights)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--order", 2], "--order 2: is for sequences, not for --task classify"),
        (["--boundary"], "--boundary: is for sequences"),
        (["--transitions", "all"], "--transitions all: is for sequences"),
        (["--template", "x"], "--template x: is for column files"),
        (["--weights", "all"], "--weights all: classifiers always have all weights"),
        (["--input", "columns"], "--input columns: --task classify reads crfsuite or jsonl"),
        (["--classes", "one_vs_rest", "--log", "x"], "--log x: does not work with --classes one_vs_rest"),
        (
            ["--classes", "one_vs_rest", "--early-stop", "3"],
            "--early-stop 3: does not work with --classes one_vs_rest",
        ),
        (["--classes", "some"], "'some' is not one of 'multinomial', 'one_vs_rest'"),
    ],
)
def test_options_without_sense_are_refused(learn, tmp_path, options, message):
    assert message in learn(*options, code=2).err
    assert not (tmp_path / "m").exists()


def test_options_of_classifiers_are_refused_for_sequences(call, folder, tmp_path):
    for options in (["--no-intercept"], ["--classes", "multinomial"]):
        ran = call("train", folder / "train.crfsuite", "-m", tmp_path / "m", *options, code=2)
        assert f"{options[0]}" in ran.err
        assert "add --task classify" in ran.err


def test_nbest_and_spans_are_for_sequences(call, learn, folder, tmp_path):
    learn("-q")
    for verb, option, value, message in (
        ("tag", "--nbest", 2, "--nbest 2: is for sequences"),
        ("eval", "--scheme", "conll", "--scheme conll: is for sequences"),
    ):
        assert message in call(verb, "-m", tmp_path / "m", folder / "test.crfsuite", option, value).err


def read(text, **options):
    return items.read(Input("f", text.encode()), **options)


def test_lines_are_items_with_weights_and_numbers():
    data = read("a\tx\ty:2\r\n\n@weight:3\tb\tx\n \nb\n")
    assert data.one_position
    assert data.sequence_labels() == [["a"], ["b"], ["b"]]
    assert data.sequence_weights.tolist() == [1.0, 3.0, 1.0]
    assert data.line_numbers.tolist() == [1, 3, 5]
    assert data.attr_values.tolist() == [1.0, 2.0, 1.0]
    data = read(
        '\n{"label": "a", "attributes": ["x"]}\n{"label": "b", "attributes": {"y": 2}, "weight": 3}\n'
    )
    assert data.sequence_labels() == [["a"], ["b"]]
    assert data.sequence_weights.tolist() == [1.0, 3.0]
    assert data.line_numbers.tolist() == [2, 3]
    assert read("a\tx\nb\ty\n", labelled=False).labels is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a\tx\n\nb\ty:z\n", "f:3: 'z' is not a finite number"),
        ("a\tx\n@weight:-1\tb\ty\n", "f:2: '@weight:-1'"),
        ("{\n", "f:1: not JSON"),
        ('{"label": "a", "attributes": ["x"]}\n{"label": 3, "attributes": []}\n', 'f:2: "label" is 3'),
        ('{"label": "a", "tokens": [["x"]]}\n', "f:1: an item must be an object"),
        ('{"label": "a", "attributes": "x"}\n', 'f:1: "attributes" must be a list'),
        ('{"label": "a", "attributes": ["x"], "weight": -1}\n', 'f:1: "weight" is -1'),
        ('{"label": "a", "attributes": ["x"]}\n\n{"label": "a", "attributes": ["x", 3]}\n', "f:3: "),
    ],
)
def test_bad_lines_are_named(text, message):
    with pytest.raises(DataError, match=message.replace("[", r"\[")):
        read(text)


def test_one_class_is_too_few(learn, tmp_path):
    ran = learn(data=write(tmp_path / "f.crfsuite", "a\tx\na\ty\n"), code=2)
    assert "f.crfsuite: the data has only one class, 'a'" in ran.err


def test_an_item_without_a_label_is_refused_with_its_line():
    text = b"spam\tw=a\n \t\n\tw=b\tw=c\nham\tw=d\n"
    with pytest.raises(DataError, match=r"items.txt:3: the line begins with a TAB"):
        items.read(Input("items.txt", text))
    assert items.read(Input("items.txt", text), labelled=False).n_sequences == 3
