"""``crfit tune``, its folder, and tuned entries of races."""

# ruff: noqa: F401, F811 (fixtures)

import csv
import errno
import json
import os
import signal
import subprocess
import sys

import numpy as np
import pytest

from cli_helpers import call, program, recipes
from crfit import load
from crfit.errors import OptionError
from crfit.tuning.charts import draw_search
from crfit.tuning.folder import FILES
from crfit.tuning.search import Candidate, Search, Trial, candidates_of

L2 = ("--l2", "3,0.3,0.03")


def test_program(tmp_path, recipes):
    out, model = tmp_path / "d", tmp_path / "m.crfit"
    arguments = ["tune", recipes / "train.columns", "-m", model, "--out", out, *L2, "--l1", "0,0.5"]
    ran = program(*arguments, "--json", code=0)
    record = json.loads(ran.stdout.splitlines()[-1])
    assert b"left 0:00" in ran.stderr
    assert len(record["candidates"]) == 6
    assert record["chosen"] == record["best"]
    assert record["best"]["score"] == max(row["score"] for row in record["candidates"] if not row["dropped"])
    assert record["best"]["low"] < record["best"]["score"] < record["best"]["high"]
    assert load(model).options["l2"] == record["params"]["l2"]
    assert sorted(path.name for path in out.iterdir()) == sorted(FILES)
    with open(out / "tune.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [float(row["l2"]) for row in rows] == [row["l2"] for row in record["candidates"]]
    page = (out / "tune.html").read_text(encoding="utf-8")
    assert "data:image/svg+xml;base64," in page
    assert 'src="http' not in page
    assert (out / "tune.png").read_bytes().startswith(b"\x89PNG")
    assert b"is there already" in program(*arguments, code=2).stderr


def test_held_out_file_and_other_options(call, tmp_path, recipes):
    arguments = [
        "tune", recipes / "train.jsonl", "--dev", recipes / "test.jsonl", "-m", tmp_path / "m.crfit",
        *L2, "--try", "weights=observed,all", "--choice", "one-standard-error", "--refine", 1, "--no-halving",
        "-q",
    ]  # fmt: skip
    record = call(*arguments, "--json", code=0).json
    assert record["n_folds"] == 1
    assert {row["weights"] for row in record["candidates"]} == {"observed", "all"}
    assert record["chosen"] == record["one_standard_error"]
    assert load(tmp_path / "m.crfit").options["weights"] == record["chosen"]["weights"]
    shown = call(*arguments, code=0).out
    assert "1 SE" in shown
    assert "trained with" in shown


def test_classifier(call, tmp_path):
    lines = [f"{'spam' if i % 3 else 'ham'}\tw={i % 3}\tn={i % 5}" for i in range(60)]
    (tmp_path / "mail.crfsuite").write_text("\n\n".join(lines) + "\n\n", encoding="utf-8")
    arguments = [
        "tune",
        tmp_path / "mail.crfsuite",
        "--task",
        "classify",
        "-m",
        tmp_path / "m.crfit",
        "-q",
        *L2,
    ]
    record = call(*arguments, "--json", code=0).json
    assert record["metric"] == "accuracy"
    assert record["best"]["score"] == 100.0


def test_interrupted_and_resumed(tmp_path, recipes, call):
    out, values = tmp_path / "d", ",".join(str(0.01 * 2**k) for k in range(10))
    arguments = [
        "tune", recipes / "train.columns", "--no-halving", "--l2", values,
        "--l1", "0,0.05,0.1,0.2", "--out", out, "-m", tmp_path / "m.crfit",
    ]  # fmt: skip
    command = [sys.executable, "-m", "crfit", *map(str, arguments)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stderr is not None
    process.stderr.readline()  # the default template
    process.stderr.readline()  # the first fit
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    if process.returncode == 0:
        pytest.skip("the search ended before the signal")
    assert process.returncode == 130
    assert b"--resume" in said
    assert not (tmp_path / "m.crfit").exists()
    assert (out / "tune.csv").exists()
    resumed = call(*arguments, "--resume", "--json", "-q", code=0).json
    arguments[arguments.index(out)] = tmp_path / "other"
    whole = call(*arguments, "--json", "-q", code=0).json
    for one, other in zip(resumed["candidates"], whole["candidates"], strict=True):
        assert {**one, "seconds": 0} == {**other, "seconds": 0}


def test_races_take_tuned_entries(call, tmp_path, recipes):
    out = tmp_path / "d"
    call("tune", recipes / "train.columns", "-m", tmp_path / "m.crfit", "--out", out, *L2, "-q", code=0)
    params = json.loads((out / "tune.json").read_text(encoding="utf-8"))["params"]
    ran = call(
        "race", recipes / "train.columns", "--trainers", f"a=lbfgs:tuned={out},b=lbfgs:tuned={out}:l2=7",
        "--max-iter", 3, "--out", tmp_path / "r", "--json", "-q", code=0,
    ).json  # fmt: skip
    assert [entry["options"]["l2"] for entry in ran["entries"]] == [params["l2"], 7.0]
    refused = call("race", recipes / "train.columns", "--trainers", f"lbfgs:tuned={tmp_path}", code=2)
    assert "crfit tune" in refused.err


def test_templates_and_penalties_of_groups(call, tmp_path, recipes):
    small, model = tmp_path / "small.template", tmp_path / "m.crfit"
    small.write_text("U0:%x[0,0]\nB\n")
    arguments = [
        "tune", recipes / "train.columns", "-m", model, "--out", tmp_path / "d", "--l2", "0.1,1",
        "--try", f"template={small},chunking.template", "--groups", "template", "--no-halving",
    ]  # fmt: skip
    record = call(*arguments, "--json", "-q", code=0).json
    assert [row["template"] for row in record["candidates"]] == [str(small), "chunking.template"] * 2
    alone = call(
        "tune", recipes / "train.columns", "-m", model, "--template", small, "--l2", "0.1,1", "--no-halving",
        "--json", "-q", code=0,
    ).json  # fmt: skip
    assert [row["score"] for row in record["candidates"][::2]] == [
        row["score"] for row in alone["candidates"]
    ]
    ran = call(*arguments, "--resume", code=0)
    assert "with one per group" in ran.out
    assert "l2 per group, step 1" in ran.err
    found, groups = load(model), record["groups"]
    lines = [line.partition(":")[0] for line in found.template.lines if line[:1] == "U"]
    assert set(groups["l2"]) == {"transitions", *lines}
    assert found.options.get("l2_by_group", {}) == (groups["l2"] if groups["taken"] else {})


def test_a_full_disk_names_the_file(call, tmp_path, recipes, monkeypatch):
    def full(path, data):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("pathlib.Path.write_bytes", full)
    arguments = ["-m", tmp_path / "m.crfit", "--out", tmp_path / "d", *L2, "-q"]
    ran = call("tune", recipes / "train.columns", *arguments)
    assert ran.code == 1
    assert f"{tmp_path / 'd' / 'tune.npz'}: cannot be written: No space left on device" in ran.err


@pytest.mark.parametrize("data", [b"", b"x", b"PK\x03\x04" + b"x" * 500])
def test_a_damaged_state_is_told(call, tmp_path, recipes, data):
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "tune.npz").write_bytes(data)
    arguments = ["-m", tmp_path / "m.crfit", "--out", tmp_path / "d", "--resume", *L2, "-q"]
    ran = call("tune", recipes / "train.columns", *arguments, code=2)
    assert "tune.npz: is not the state of a search: delete it, or name another folder" in ran.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--groups", "template", "--l1", "0.1"], "leave l1 out"),
        (["--groups", "template", "--task", "classify"], "classifiers have one l2"),
        (["--try", "template=none.template"], "no such template"),
        (
            ["--try", "template=chunking.template", "--template", "chunking.template"],
            "makes the attributes too",
        ),
        (["--try", "features=default", "--task", "classify"], "for sequences"),
        (["--l2", "a,b"], "not numbers separated by commas"),
        (["--l2", "-1"], "0 or more"),
        (["--cv", "1"], "2 or more"),
        (["--dev", "x", "--cv", "3"], "leave one of the two out"),
        (["--try", "colour=red"], "OPTION=A,B"),
        (["--try", "weights=red"], "weights"),
        (["--resume"], "add --out DIR"),
        (["--task", "classify", "--metric", "f1"], "accuracy"),
    ],
)
def test_bad_use_is_refused(call, tmp_path, recipes, arguments, message):
    ran = call("tune", recipes / "train.columns", "-m", tmp_path / "m.crfit", *arguments, code=2)
    assert message in ran.err
    assert ran.err.count("\n") <= 2
    assert not (tmp_path / "m.crfit").exists()


def test_lines_are_named_by_what_differs(tmp_path):
    candidates = candidates_of({"l2": [0.1, 1.0], "trainer": ["lbfgs", "sgd"]})
    trials = [Trial(one, {0: 1.0}) for one in candidates]
    figure = draw_search(Search(trials, "f1", 1, 0), tmp_path / "s.svg")
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["trainer=lbfgs", "trainer=sgd"]


def test_random_candidates_are_one_line(tmp_path):
    rng = np.random.default_rng(0)
    trials = [Trial(Candidate(float(rng.random()), float(rng.random())), {0: float(i)}) for i in range(20)]
    figure = draw_search(Search(trials, "f1", 1, 0), tmp_path / "s.svg")
    assert len(figure.axes) == 3
    assert len(figure.axes[0].lines) <= 3
    with pytest.raises(OptionError):
        draw_search(Search([Trial(Candidate(1.0))], "f1", 1, 0))
