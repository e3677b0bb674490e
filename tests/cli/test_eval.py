"""``crfit eval``: errors and calibration."""

import json

import numpy as np
import pytest

import crfit
from cli_helpers import FORMATS, blocks
from crfit.evaluation.calibration import reliability, span_confidence, token_confidence
from crfit.evaluation.mistakes import find_mistakes


@pytest.fixture(scope="module")
def weak(recipes, tmp_path_factory):
    """Models of a few sequences, which make mistakes."""
    from crfit.cli import main

    folder = tmp_path_factory.mktemp("weak")
    for name in FORMATS:
        text = (recipes / f"train.{name}").read_text(encoding="utf-8")
        parts = text.split("\n") if name == "jsonl" else text.split("\n\n")
        small = folder / f"small.{name}"
        small.write_text(("\n" if name == "jsonl" else "\n\n").join(parts[:12]) + "\n", encoding="utf-8")
        assert main(["train", str(small), "-m", str(folder / name), "-q", "--json", "--max-iter", "8"]) == 0
    return folder


def expected(model, path, n=None):
    dataset = model.read(path)
    return dataset, find_mistakes(model, dataset, model.tag_dataset(dataset), n)


@pytest.mark.parametrize("name", FORMATS)
def test_errors_as_json(call, recipes, weak, name):
    test = recipes / f"test.{name}"
    model = crfit.load(weak / name)
    dataset, found = expected(model, test)
    record = call("eval", "-m", weak / name, test, "--errors", "--json", code=0).json
    assert record["wrong_sequences"] == len(record["errors"]) == found.n_sequences > 5
    share = 100 * (1 - found.n_sequences / record["sequences"])
    assert record["sequence_accuracy"] == pytest.approx(share)
    assert [each["sequence"] for each in record["errors"]] == found.sequences.tolist()
    lines = test.read_text(encoding="utf-8").split("\n")
    gold, names = dataset.sequence_labels(), model.labels
    for each in record["errors"]:
        i = each["sequence"]
        start, end = dataset.seq_ptr[i : i + 2]
        assert each["gold"] == gold[i]
        ids = model.tag_dataset(dataset.subset([i]))
        assert each["predicted"] == [names[k] for k in ids]
        assert each["wrong"] == sum(a != b for a, b in zip(each["gold"], each["predicted"], strict=True)) > 0
        assert len(each["tokens"]) == end - start
        first = lines[each["line"] - 1]
        if name == "columns":
            assert [*each["tokens"][0], each["gold"][0]] == first.split()
        elif name == "crfsuite":
            assert [each["gold"][0], *each["tokens"][0]] == first.split("\t")
        else:
            assert each["tokens"] == json.loads(first)["tokens"]
        logs = each["log_probability"]
        assert logs["gold"] < logs["predicted"] <= 0
    for n in (1, 3):
        few = call("eval", "-m", weak / name, test, "--json", "--errors", n, code=0).json
        assert few["errors"] == record["errors"][:n]
        assert few["wrong_sequences"] == record["wrong_sequences"]


@pytest.mark.parametrize("name", FORMATS)
def test_errors_as_text(call, recipes, weak, name):
    test = recipes / f"test.{name}"
    plain = call("eval", "-m", weak / name, test, code=0).out
    record = call("eval", "-m", weak / name, test, "--errors", "--json", code=0).json
    ran = call("eval", "-m", weak / name, "--errors", 4, test, code=0)
    assert ran.out.startswith(plain)
    head, *shown = blocks(ran.out[len(plain) + 1 :].rstrip("\n") + "\n\n")
    assert head == [f"4 of {record['wrong_sequences']} wrong sequences, worst first:"]
    assert len(shown) == 4
    for block, each in zip(shown, record["errors"], strict=False):
        title, heading, *rows = block
        logs = each["log_probability"]
        gap = logs["predicted"] - logs["gold"]
        n_wrong = f"{each['wrong']} of {len(rows)} tokens wrong"
        assert title == f"line {each['line']}: {n_wrong}; log p(predicted) - log p(gold) = {gap:.2f}"
        assert heading.split() == ["token", "gold", "predicted"]
        where = heading.index("gold")
        for row, token, gold, guess in zip(
            rows, each["tokens"], each["gold"], each["predicted"], strict=True
        ):
            assert row.startswith("*") == (gold != guess)
            assert row[where:].split() == [gold, guess], "aligned"
            if name == "columns":
                assert row[1:where].split() == token
            else:
                shown_token = row[1:where].strip()
                assert " ".join(token).startswith(shown_token.removesuffix("…"))
                assert len(shown_token) <= 60


@pytest.mark.parametrize("after", [["--errors"], ["--errors", "--json"]])
def test_errors_without_a_number_are_all(call, recipes, weak, after):
    test = recipes / "test.columns"
    wrong = call("eval", "-m", weak / "columns", test, "--errors=2", "--json", code=0).json["wrong_sequences"]
    for arguments in ([test, *after], [*after, test], [*after, "--", test]):
        ran = call("eval", "-m", weak / "columns", *arguments, code=0)
        if "--json" in after:
            assert len(ran.json["errors"]) == wrong
        else:
            assert f"{wrong} wrong sequences, worst first" in ran.out
    assert call("eval", "-m", weak / "columns", test, "--errors", "-3", code=2).err


def test_no_errors(call, recipes, weak, tmp_path):
    ran = call("tag", "-m", weak / "columns", recipes / "test.columns", code=0)
    rows = [line.split() for line in ran.out.splitlines()]
    own = tmp_path / "own.txt"
    own.write_text("".join(f"{' '.join([*row[:-2], *row[-1:]])}\n" for row in rows), encoding="utf-8")
    ran = call("eval", "-m", weak / "columns", own, "--errors", code=0)
    assert ran.out.endswith("\nno wrong sequences\n")
    assert call("eval", "-m", weak / "columns", own, "--errors", "--json", code=0).json["errors"] == []


def test_errors_of_a_label_that_the_model_does_not_have(call, weak, tmp_path):
    odd = tmp_path / "odd.txt"
    odd.write_bytes("caf\xe9 WORD B-ODD\n".encode("latin-1"))
    ran = call("eval", "-m", weak / "columns", odd, "--errors", code=0)
    assert "line 1: 1 of 1 tokens wrong; a gold label is not in the model" in ran.out
    record = call("eval", "-m", weak / "columns", odd, "--errors", "--json", code=0).json
    assert record["errors"][0]["log_probability"]["gold"] is None


def test_errors_and_calibration_of_classifiers(call, tmp_path):
    lines = ["good\tw=a", "bad\tw=b\tw=c", "bad\tw=b\tw=c", "good\tw=a", "good\tw=b\tw=c"] * 3
    (tmp_path / "items.crfsuite").write_text("\n".join(lines) + "\n")
    records = [dict(zip(("label", "attributes"), (line.split("\t")[0], line.split("\t")[1:]), strict=True))
               for line in lines]  # fmt: skip
    (tmp_path / "items.jsonl").write_text("".join(json.dumps(r) + "\n" for r in records))
    found = []
    for name in ("items.crfsuite", "items.jsonl"):
        model, file = tmp_path / f"{name}.model", tmp_path / name
        call("train", file, "-m", model, "--task", "classify", "--l2", 0.1, "-q", code=0)
        ran = call("eval", "-m", model, file, "--errors", 1, "--calibration", code=0)
        assert "1 of 3 wrong items, worst first:" in ran.out
        assert ran.out.splitlines()[-2:] == ["   item     gold  predicted", "*  w=b w=c  good  bad"]
        assert "calibration of 15 items: expected error" in ran.out
        record = call("eval", "-m", model, file, "--errors", "--calibration", "--json", code=0).json
        assert [each["line"] for each in record["errors"]] == [5, 10, 15]
        assert record["calibration"]["items"]["n"] == 15
        found.append([each["tokens"] for each in record["errors"]])
    assert found == [[[["w=b", "w=c"]]] * 3] * 2


def test_calibration(call, recipes, weak, tmp_path):
    pytest.importorskip("matplotlib")
    test, picture = recipes / "test.columns", tmp_path / "c.png"
    model = crfit.load(weak / "columns")
    pairs = token_confidence(model, model.read(test))
    ran = call("eval", "-m", weak / "columns", test, "--calibration", code=0)
    spans = span_confidence(model, model.read(test))
    tables = reliability(*pairs).to_text(), reliability(*spans).to_text("spans")
    assert ran.out.endswith("\n" + "\n".join(tables))
    assert not picture.exists()
    ran = call("eval", "-m", weak / "columns", test, "--calibration-plot", picture, "--json", code=0)
    assert picture.read_bytes().startswith(b"\x89PNG")
    found = ran.json["calibration"]["tokens"]
    assert found["ece"] == pytest.approx(reliability(*pairs).ece)
    equal = reliability(*pairs, strategy="quantile")
    assert found["equal_mass"]["ece"] == pytest.approx(equal.ece)
    assert [each["count"] for each in found["equal_mass"]["bins"]] == equal.counts[equal.counts > 0].tolist()
    assert found["accuracy"] == pytest.approx(ran.json["accuracy"] / 100)
    assert np.isclose(found["brier"], np.mean((pairs[0] - pairs[1]) ** 2))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("c.jpeg", "--calibration-plot {}: the name must end in one of .png, .svg, .pdf"),
        ("no/c.png", "there is no folder"),
        ("in.svg", "--calibration-plot {}: this file is also an input: name another"),
    ],
)
def test_pictures_that_cannot_be_written(call, recipes, weak, tmp_path, name, message):
    file = tmp_path / "in.svg"
    file.write_bytes((recipes / "test.columns").read_bytes())
    ran = call("eval", "-m", weak / "columns", file, "--calibration-plot", tmp_path / name)
    assert ran.code in (1, 2)
    assert message.format(tmp_path / name) in ran.err
    assert ran.out == ""
    assert [path.name for path in tmp_path.iterdir()] == ["in.svg"]
