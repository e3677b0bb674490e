"""Hidden labels and costs on the command line."""

import json

import numpy as np
import pytest

import crfit
from cli_helpers import FORMATS, N_TRAIN, write_lines
from crfit import demo as synthetic

LINES = synthetic.recipe_lines(N_TRAIN + 40)


@pytest.fixture(scope="module")
def hidden(tmp_path_factory):
    """train.F and dev.F with a third of the labels hidden, for each format F."""
    folder, rng = tmp_path_factory.mktemp("partial"), np.random.default_rng(0)
    lines = [
        [
            (word, "?" if rng.random() < 0.2 else "B-NAME|I-NAME" if label == "I-NAME" else label)
            for word, label in line
        ]
        for line in LINES
    ]
    for name in FORMATS:
        write_lines(folder / f"train.{name}", lines[:N_TRAIN], name)
        write_lines(folder / f"dev.{name}", lines[N_TRAIN:], name)
    return folder, lines


PARTIAL = ("--missing", "?", "--label-separator", "|")


@pytest.mark.parametrize("name", FORMATS)
def test_files_with_hidden_labels(hidden, call, tmp_path, name):
    folder, lines = hidden
    model = tmp_path / "m.crfit"
    given = (folder / f"train.{name}", "--dev", folder / f"dev.{name}", "--max-iter", 30, "-q", "--json")
    ran = call("train", *given, "-m", model, *PARTIAL, code=0).json
    trained = crfit.load(model)
    assert not {"?", "B-NAME|I-NAME"} & set(trained.labels)
    assert (ran["trainer"], "warm up" in ran["why"]) == ("lbfgs", True)
    known = sum(label != "?" and "|" not in label for line in lines[N_TRAIN:] for _, label in line)
    assert ran["dev"]["tokens"] == known
    scored = call("eval", "-m", model, folder / f"dev.{name}", "--json", *PARTIAL, code=0).json
    assert {key: scored[key] for key in ("accuracy", "f1")} == {
        key: ran["dev"][key] for key in ("accuracy", "f1")
    }
    assert call("eval", "-m", model, folder / f"dev.{name}", "--json").json["tokens"] > known


def test_python_trains_the_same_model(hidden, call, tmp_path):
    folder, lines = hidden
    call("train", folder / "train.jsonl", "-m", tmp_path / "m", "--max-iter", 5, "-q", *PARTIAL, code=0)
    X = [synthetic.attributes([word for word, _ in line]) for line in lines[:N_TRAIN]]
    y = [
        [None if label == "?" else set(label.split("|")) if "|" in label else label for _, label in line]
        for line in lines[:N_TRAIN]
    ]
    crf = crfit.CRF(stop=crfit.Stop(max_iter=5)).fit(X, y)
    objective = crfit.load(tmp_path / "m").summary["objective"]
    assert crf.result_.objective == pytest.approx(objective, rel=1e-6)


def test_json_null(call, tmp_path):
    rows = [{"tokens": [["a"], ["b"]], "labels": ["P", None]}, {"tokens": [["b"]], "labels": ["Q"]}]
    (tmp_path / "x.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    call("train", tmp_path / "x.jsonl", "-m", tmp_path / "m", "-q", code=0)
    assert crfit.load(tmp_path / "m").labels == ["P", "Q"]


def test_costs(call, tmp_path):
    path = tmp_path / "train.txt"
    synthetic.write_columns(path, LINES[:N_TRAIN])
    labels = {label for line in LINES for _, label in line}
    one, other = sorted(labels)[:2]
    given = (path, "-q", "--json", "--max-iter", 20, "-m", tmp_path / "m")
    cost = ("--cost", f"{one},{other}=2", "--cost", f"*,{one}=1", "--cost", f"{one},{other}=3")
    ran = call("train", *given, *cost, "--checkpoint", tmp_path / "c", code=0).json
    assert crfit.load(tmp_path / "m").options["costs"] == [["*", one, 1.0], [one, other, 3.0]]
    assert ran["objective"] > call("train", *given, code=0).json["objective"]
    resumed = call(
        "train", path, "-q", "--json", "-m", tmp_path / "m", "--resume", tmp_path / "c", code=0
    ).json
    assert resumed["objective"] <= ran["objective"]  # with the costs of the checkpoint
    assert crfit.load(tmp_path / "m").options["costs"] == [["*", one, 1.0], [one, other, 3.0]]
    refused = call(
        "train", path, "-q", "-m", tmp_path / "m", "--resume", tmp_path / "c", "--cost", f"{one},*=9"
    )
    assert refused.code == 2
    assert "the run to resume has" in refused.err


@pytest.mark.parametrize("wrong", ["B-NAME=2", "B-NAME,O", "B-NAME,O=x", "a,b,c=1", ",O=1", "B-NAME,O=nan"])
def test_costs_of_another_form(hidden, call, wrong):
    ran = call("train", hidden[0] / "train.columns", "-m", "m", "--cost", wrong, code=2)
    assert "TRUE,PREDICTED=C" in ran.err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--cost", "N,O=1"), "the data has no such label"),
        (("--cost", "O,*=-1"), "0 or more"),
        (("--missing", "?", "--trainer", "sgd"), "use one of: lbfgs"),
        (("--label-separator", ""), "not empty"),
        (("--cost", "O,*=1", "--task", "classify", "--input", "jsonl"), "is for sequences"),
    ],
)
def test_errors_are_one_line(hidden, call, tmp_path, options, message):
    ran = call("train", hidden[0] / "train.columns", "-m", tmp_path / "m", "-q", *options, code=2)
    assert message in ran.err
    assert len(ran.err.strip().splitlines()) == 1


def test_nothing_known(call, tmp_path):
    (tmp_path / "x").write_text("a ?\nb ?\n", encoding="utf-8")
    ran = call("train", tmp_path / "x", "-m", tmp_path / "m", "-q", "--missing", "?", code=2)
    assert "no label is known" in ran.err
    assert str(tmp_path / "x") in ran.err
