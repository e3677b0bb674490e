"""crfit train --init and --toward, corrections of tools, crfit diff, and crfit convert --prune."""

import json

import pytest

import crfit
from crfit.demo import recipe_lines, write_columns
from crfit.training.callbacks import load_checkpoint

LINES = recipe_lines(160, seed=2)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Old and new training files, one to score, and a template over the words alone."""
    folder = tmp_path_factory.mktemp("retraining")
    write_columns(folder / "old.txt", LINES[:80])
    write_columns(folder / "new.txt", LINES[80:120])
    write_columns(folder / "dev.txt", LINES[120:])
    for name, part in (("words", LINES[:80]), ("dev-words", LINES[120:])):
        blocks = ("".join(f"{token} {label}\n" for token, label in line) for line in part)
        (folder / f"{name}.txt").write_text("\n".join(blocks))
    return folder


@pytest.fixture(scope="module")
def trained(files):
    from crfit.cli import main

    for name in ("old", "words"):
        path, model = files / f"{name}.txt", files / f"{name}.crfit"
        assert main(["train", str(path), "-m", str(model), "-q", "--l2", "0.5", "--boundary"]) == 0
    return files


def errors(path, model):
    scores = crfit.load(model).evaluate(crfit.load(model).read(path))
    return scores.n_tokens - scores.n_correct_tokens


def test_options_come_from_the_old_model(call, trained, tmp_path):
    new, old = tmp_path / "new.crfit", trained / "old.crfit"
    files = trained / "old.txt", trained / "new.txt"
    ran = call("train", *files, "-m", new, "--init", old, "--dev", trained / "dev.txt", code=0)
    assert f"from {old}: l2=0.5, boundary=True" in ran.err.replace("template, ", "")
    assert crfit.load(new).options["l2"] == 0.5
    assert crfit.load(new).template.text == crfit.load(old).template.text
    assert "carried over" in ran.out
    before, after = errors(files[1], old), errors(files[1], new)
    row = next(line for line in ran.out.splitlines() if line.startswith(str(files[1])))
    assert row.split()[2:4] == [str(before), str(after)]
    assert after < before
    given = call("train", *files, "-m", new, "--init", old, "--l2", 2, "-q", "--json", code=0)
    assert crfit.load(new).options["l2"] == 2.0
    assert given.json["carried_over"]["n_carried"] > 0
    rows = given.json["before_after"]
    assert [row["data"] for row in rows] == list(map(str, files))
    assert rows[1]["before"]["wrong_tokens"] == before


def test_scores_before_are_those_of_the_old_model(call, trained, tmp_path):
    """Held-out data keeps attributes that only the old model knows."""
    dev, old = trained / "dev.txt", trained / "old.crfit"
    arguments = ["train", trained / "new.txt", "-m", tmp_path / "new.crfit", "--toward", old, "--dev", dev]
    found = call(*arguments, "-q", "--json", code=0).json
    assert found["before_after"][1]["before"]["wrong_tokens"] == errors(dev, old)
    assert found["before_after"][1]["after"]["wrong_tokens"] == errors(dev, tmp_path / "new.crfit")
    assert found["dev"]["f1"] == pytest.approx(found["before_after"][1]["after"]["f1"])


def test_toward_resumes_with_the_same_model(call, trained, tmp_path):
    arguments = ["train", trained / "new.txt", "--toward", trained / "old.crfit", "-q"]
    call(*arguments, "-m", tmp_path / "whole.crfit", code=0)
    call(*arguments, "-m", tmp_path / "cut.crfit", "--max-iter", 3, "--checkpoint", tmp_path / "run")
    assert load_checkpoint(tmp_path / "run").problem["pulled"] is True
    call(*arguments, "-m", tmp_path / "more.crfit", "--resume", tmp_path / "run", code=0)
    weights = [crfit.load(tmp_path / f"{name}.crfit").weights.tobytes() for name in ("whole", "more")]
    assert weights[0] == weights[1]
    alone = ["train", trained / "new.txt", "-q", "-m", tmp_path / "x.crfit", "--resume", tmp_path / "run"]
    assert "pulled toward an old model" in call(*alone, code=2).err
    init = call(*alone, "--init", trained / "old.crfit", code=2)
    assert "leave one of the two out" in init.err
    refused = call(*arguments, "-m", tmp_path / "x.crfit", "--trainer", "sgd", code=2)
    assert "l2 toward old weights; use one of: lbfgs" in refused.err
    assert not (tmp_path / "x.crfit").exists()


def corrections(lines, form):
    """A file of a tool with the labels of these lines."""
    records = []
    for i, line in enumerate(lines):
        tokens, labels = [token for token, _ in line], [label for _, label in line]
        text, at, spans = " ".join(tokens), 0, []
        for token, label in line:
            if label.startswith("B-"):
                spans.append([at, at + len(token), label[2:]])
            elif label.startswith("I-"):
                spans[-1][1] = at + len(token)
            at += len(token) + 1
        values = [{"start": s, "end": e, "text": text[s:e], "labels": [n]} for s, e, n in spans]
        results = [{"type": "labels", "value": value} for value in values]
        records.append(
            {
                "tokens": {"tokens": tokens, "labels": labels},
                "doccano": {"id": i, "text": text, "label": spans},
                "label_studio": {"id": i, "data": {"text": text}, "annotations": [{"result": results}]},
            }[form]
        )
    return json.dumps(records) if form == "label_studio" else "\n".join(map(json.dumps, records))


def as_tokenized(lines):
    """Lines whose tokens come back from their text."""
    from crfit.data.tokens import tokenize

    return [
        line
        for line in lines
        if [t.token for t in tokenize(" ".join(w for w, _ in line))] == [w for w, _ in line]
    ]


@pytest.mark.parametrize("form", ["tokens", "doccano", "label_studio"])
def test_corrections_of_tools_go_into_training(call, trained, tmp_path, form):
    fixed = as_tokenized(LINES[80:120])
    assert len(fixed) > 15
    name = tmp_path / ("fixed.json" if form == "label_studio" else "fixed.jsonl")
    name.write_text(corrections(fixed, form))
    new, old = tmp_path / "new.crfit", trained / "words.crfit"
    files = [trained / "words.txt", name]
    found = call("train", *files, "-m", new, "--init", old, "-q", "--json", code=0).json
    assert found["n_sequences"] == 80 + len(fixed)
    row = found["before_after"][1]
    assert (row["data"], row["sequences"]) == (str(name), len(fixed))
    assert row["after"]["wrong_tokens"] < row["before"]["wrong_tokens"]
    scores = call("eval", "-m", new, name, "--json", code=0).json
    assert scores["sequences"] == len(fixed)
    alone = call("train", name, "-m", new, "--toward", old, "--dev", name, "-q", "--json", code=0).json
    assert alone["n_labels"] >= 10
    assert alone["dev"]["f1"] > 90


def test_corrections_that_are_wrong_are_refused_before_training(call, trained, tmp_path):
    bad = tmp_path / "bad.jsonl"
    bad.write_text('{"text": "2 large eggs", "label": [[2, 4, "SIZE"]]}\n')
    ran = call("train", trained / "words.txt", bad, "-m", tmp_path / "x.crfit", code=2)
    assert f"{bad}:1: the span of characters 2 to 4 cuts a token: let it run from 2 to 7" in ran.err
    good = tmp_path / "good.jsonl"
    good.write_text('{"tokens": ["eggs"], "labels": ["B-NAME"]}\n')
    ran = call("eval", "-m", trained / "old.crfit", good, code=2)
    assert "columns" in ran.err


def test_diff(call, trained, tmp_path):
    new = tmp_path / "new.crfit"
    old = trained / "words.crfit"
    call("train", trained / "dev-words.txt", "-m", new, "--toward", old, "-q", code=0)
    told = call("diff", old, new, "--data", trained / "dev-words.txt", "--top", 3, code=0).out
    assert "of 40 sequences are labelled differently" in told
    assert told.count(" -> ") > 5
    found = call("diff", old, new, "--json", "--data", trained / "dev-words.txt", code=0).json
    assert found["n_sequences"] == 40
    assert found["scores"]["after"]["accuracy"] > found["scores"]["before"]["accuracy"]
    assert len(found["weights"]["largest"]) == 20
    assert found["removed"]["attributes"] == []
    words = tmp_path / "plain.txt"
    words.write_text("eggs\nmilk\n")
    assert "scores" not in call("diff", old, new, "--json", "--data", words, code=0).json
    assert call("diff", old, tmp_path / "none.crfit", code=2).err


def test_pruning(call, trained, tmp_path):
    old, small = trained / "old.crfit", tmp_path / "small.crfit"
    bound = call("convert", old, small, "--prune", 0.5, code=0).out
    assert "change of log-odds: at most 0.5 with up to" in bound
    measured = call("convert", old, small, "--prune", 0.5, "--data", trained / "dev.txt", code=0).out
    assert "tokens of" in measured
    assert small.stat().st_size < old.stat().st_size
    assert crfit.load(small).summary["pruned"]["measured"] <= 0.5
    assert "add --prune EPS" in call("convert", old, small, "--data", trained / "dev.txt", code=2).err
