"""``crfit race``: once as a program with everything, the rest in this process."""

# ruff: noqa: F401, F811 (fixtures)

import csv
import json
import signal
import subprocess
import sys
import time

import pytest

import crfit
from cli_helpers import N_TRAIN, interrupted_program, program
from crfit.cli import race as verb
from crfit.racing.result import COLUMNS
from race_helpers import no_pictures, odd_trainers

FILES = ["race.jsonl", "race.csv", "race.png", "race.svg", "race.html"]


def test_program(tmp_path, recipes):
    out = tmp_path / "r"
    arguments = [
        "race", recipes / "train.columns", "--dev", recipes / "test.columns", "--max-iter", 25,
        "--trainers", "lbfgs:memory=3,wide=lbfgs:memory=40,lbfgs:l2=0.1", "--optimum", "find", "--out", out,
    ]  # fmt: skip
    ran = program(*arguments, "--json", code=0)
    record = json.loads(ran.stdout.splitlines()[-1])
    assert [entry["label"] for entry in record["entries"]] == ["lbfgs memory=3", "wide", "lbfgs l2=0.1"]
    assert [entry["status"] for entry in record["entries"]] == ["limit"] * 3
    assert record["data"]["sequences"] == N_TRAIN
    assert record["optima"]["l2=1"]["kind"] == "found"
    first = record["entries"][0]
    assert first["options"] == {"memory": 3}
    assert first["objective"] == pytest.approx(record["optima"]["l2=1"]["value"] + first["gap"])
    assert first["dev"].keys() == {"accuracy", "f1", "sequence_accuracy"}
    assert set(first["seconds_to_reach"]) >= {"gap 1e-1"}
    assert [path.rsplit("/", 1)[1] for path in record["files"]] == FILES
    assert sorted(path.name for path in out.iterdir()) == sorted(FILES)
    assert ran.stderr.count(b"limit after 25 iterations") == 3
    assert b"optimum of l2=0.1: converged" in ran.stderr
    with open(out / "race.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert tuple(rows[0]) == COLUMNS
    assert {row["entry"] for row in rows} == {"lbfgs memory=3", "wide", "lbfgs l2=0.1"}
    assert (out / "race.png").read_bytes().startswith(b"\x89PNG")
    assert b"<html" in (out / "race.html").read_bytes()[:2000].lower()
    again = program(*arguments, code=2)
    assert again.stderr.startswith(f"crfit: error: --out {out}: there is a race in this folder".encode())


def test_program_interrupted(call, tmp_path, recipes, no_pictures):
    lines = (recipes / "train.columns").read_text(encoding="utf-8").split("\n\n")
    (tmp_path / "few.txt").write_text("\n\n".join(lines[:10]) + "\n", encoding="utf-8")
    out, log = tmp_path / "r", tmp_path / "r" / "race.jsonl"
    arguments = [
        "race", tmp_path / "few.txt", "--trainers", "lbfgs:memory=3,lbfgs", "--max-iter", 30,
        "--stop-grad-inf", 0, "--device", "reference", "--out", out,
    ]  # fmt: skip
    code, printed, said = interrupted_program(arguments, log, "point", 3, signal.SIGINT)
    assert code == 130, said
    assert b"interrupted" in printed
    assert b"waiting" in printed
    assert f"the race so far is in {out}; run the same command with --resume to continue".encode() in said
    assert b"Traceback" not in said
    ran = call(*arguments, "--resume", "-q", "--json", code=0)
    assert [entry["iteration"] for entry in ran.json["entries"]] == [30, 30]


def test_interrupt_after_the_race(call, recipes, tmp_path, monkeypatch, no_pictures):
    def interrupted(result, path):
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr("crfit.racing.page.write_page", interrupted)
    options = ["--trainers", "lbfgs", "--max-iter", 2, "--out", tmp_path, "-q"]
    ran = call("race", recipes / "train.columns", *options, code=130)
    assert "--resume" not in ran.err, "nothing is left to do"


def test_demo(call, tmp_path, monkeypatch, no_pictures):
    monkeypatch.setattr(verb, "DEMO_LINES", (80, 20))
    out = tmp_path / "new" / "r"
    ran = call("race", "--demo", "--out", out, "--max-iter", 12, "--optimum", "find", code=0)
    lines = ran.out.splitlines()
    assert lines[0].split() == [
        "entry", "ended", "iterations", "passes", "seconds", "objective", "relative", "gap",
        "sequence", "accuracy", "accuracy", "F1",
    ]  # fmt: skip
    labels = ["lbfgs memory=3", "lbfgs memory=10", "lbfgs memory=40", "lbfgs weights=all"]
    assert [line[:17].rstrip() for line in lines[1:5]] == labels
    assert lines[6].startswith("Seconds to reach a score, and a relative gap"), (
        "weights=all is another function"
    )
    for line, label in zip(lines[8:12], labels, strict=True):
        assert line.startswith(label)
    assert lines[11].count("*") >= sum(word.startswith("1e-") for word in lines[7].split()), "alone on its F"
    assert any(line.startswith("l2=1: F* = ") for line in lines)
    assert lines[-1] == f"Written to {out}: {', '.join(FILES)}"
    assert "\x1b" not in ran.out
    assert sorted(path.name for path in out.glob("*.txt")) == ["recipes-dev.txt", "recipes-train.txt"]
    (out / "race.csv").unlink()
    again = call("race", "--demo", "--out", out, "--max-iter", 12, "--optimum", "find", "--resume", "-q")
    assert (again.code, again.out, again.err) == (0, ran.out, "")
    assert (out / "race.csv").exists()


def test_metric_decides_the_verdict_also_of_a_race_that_is_over(call, recipes, tmp_path, no_pictures):
    arguments = ["race", recipes / "train.columns", "--trainers", "lbfgs", "--max-iter", 9, "--out", tmp_path]
    arguments += ["--dev", recipes / "test.columns", "-q"]
    assert "Highest F1 on held-out data" in call(*arguments, code=0).out
    again = call(*arguments, "--resume", "--metric", "sequence_accuracy", code=0)
    best = call(*arguments, "--resume", "--json", code=0).json["entries"][0]["dev"]["sequence_accuracy"]
    assert f"Highest sequence accuracy on held-out data: {best:.2f}, by lbfgs" in again.out
    assert f"sequence accuracy {best - 0.1:.2f}" in again.out, "the targets are of the metric"
    alone = call(*arguments[:-3], "--metric", "accuracy", code=2)
    assert "--metric accuracy: needs held-out data: add --dev FILE" in alone.err


@pytest.mark.parametrize("how", ["train", "dev", "link", "journal"])
def test_the_race_does_not_write_over_what_it_reads(call, recipes, tmp_path, how):
    train, own = recipes / "train.columns", tmp_path / ("race.jsonl" if how == "journal" else "race.csv")
    arguments = ["race", own, "--trainers", "lbfgs", "--overwrite", "--out", tmp_path]
    if how == "link":
        (tmp_path / "data.txt").write_bytes(train.read_bytes())
        own.symlink_to(tmp_path / "data.txt")
        arguments[1] = tmp_path / "data.txt"
    else:
        own.write_bytes(train.read_bytes())
    if how == "dev":
        arguments[1:2] = [train, "--dev", own]
    before = sorted(tmp_path.iterdir())
    ran = call(*arguments, code=2)
    assert f"--out {tmp_path}: the race would overwrite its input {tmp_path}" in ran.err
    assert sorted(tmp_path.iterdir()) == before
    assert own.read_bytes() == train.read_bytes()


def test_the_demo_replaces_its_own_files_only(call, tmp_path, monkeypatch, no_pictures):
    monkeypatch.setattr(verb, "DEMO_LINES", (30, 10))
    arguments = ["race", "--demo", "--trainers", "lbfgs", "--max-iter", 2, "--out", tmp_path, "-q"]
    (tmp_path / "recipes-dev.txt").write_text("of the user")
    ran = call(*arguments, code=2)
    assert f"--out {tmp_path}: --demo would overwrite your file recipes-dev.txt" in ran.err
    assert [path.name for path in tmp_path.iterdir()] == ["recipes-dev.txt"]
    assert (tmp_path / "recipes-dev.txt").read_text() == "of the user"
    (tmp_path / "recipes-dev.txt").unlink()
    assert call(*arguments).code == 0
    assert call(*arguments, "--overwrite").code == 0


def test_failures_are_told(call, recipes, tmp_path, no_pictures, odd_trainers):
    train = recipes / "train.columns"
    ran = call("race", train, "--trainers", "raising,lbfgs", "--max-iter", 4, "--out", tmp_path / "a", "-q")
    assert (ran.code, ran.err) == (0, "")
    assert "raising: failed: RuntimeError: no more" in ran.out.splitlines()
    options = ["--trainers", "raising,needy,exploding", "--out", tmp_path / "b", "-q", "--json"]
    ran = call("race", train, *options, code=1)
    assert [entry["status"] for entry in ran.json["entries"]] == ["failed", "failed", "diverged"]
    assert ran.json["entries"][1]["objective"] == ran.json["entries"][0]["objective"], "that of the start"


def test_options_reach_the_entries(call, recipes, tmp_path, no_pictures):
    options = [
        "--trainers", "lbfgs,wide=lbfgs:memory=50", "-o", "lbfgs.max_trials=5", "-o", "wide.l1=0.5",
        "--l2", 0.5, "--weights", "all", "--boundary", "--min-count", 2, "--seed", 3, "--threads", 1,
        "--max-passes", 7, "--out", tmp_path, "-q", "--json",
    ]  # fmt: skip
    ran = call("race", recipes / "train.jsonl", *options, code=0)
    plain, wide = ran.json["entries"]
    assert (plain["label"], plain["options"]) == ("lbfgs max_trials=5", {"max_trials": 5})
    assert wide["options"] == {"memory": 50, "max_trials": 5, "l1": 0.5}
    assert plain["problem"] == "l2=0.5 weights=all boundary=true min_count=2"
    assert wide["problem"] == "l2=0.5 l1=0.5 weights=all boundary=true min_count=2"
    settings = ran.json["settings"]
    assert (settings["seed"], settings["n_threads"], settings["max_passes"]) == (3, 1, 7)
    assert "max_iter" not in settings


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "name a training file, or use --demo. Try 'crfit race --help'."),
        (["TRAIN"], "name the entries, such as --trainers"),
        (["TRAIN", "--demo"], "--demo has its own data"),
        (["--demo", "--template", "x"], "--demo has its own data"),
        (["TRAIN", "--trainers", "lbfsg"], "--trainers lbfsg: unknown, did you mean lbfgs?"),
        (["TRAIN", "--trainers", "lbfgs:l2=-1"], "--trainers lbfgs:l2=-1: l2=-1.0: must be at least 0"),
        (["TRAIN", "--trainers", "lbfgs", "-o", "memory=3"], "-o memory=3: is not of the form TRAINER."),
        (["TRAIN", "--trainers", "lbfgs", "--optimum", "low"], "'low' is neither a number nor 'find'"),
        (["TRAIN", "--trainers", "lbfgs", "--optimum", "nan"], "--optimum nan: give a finite number"),
        (["TRAIN", "--trainers", "lbfgs,lbfgs:l2=3", "--optimum", "3"], "the entries minimise 2 functions"),
        (["TRAIN", "--trainers", "lbfgs", "--l2", "-1"], "--l2 -1.0: must be at least 0"),
        (["TRAIN", "--trainers", "lbfgs", "--device", "gpu"], "'gpu' is not one of 'cpu', 'reference'"),
        (["TRAIN", "--trainers", "lbfgs", "--resume", "--overwrite"], "--overwrite: a race is resumed or"),
        (["TRAIN", "--trainers", "lbfgs", "--max-iter", "-1"], "--max-iter"),
        (["missing.txt", "--trainers", "lbfgs"], "missing.txt"),
        (["TRAIN", "--dev", "missing.txt", "--trainers", "lbfgs", "-q"], "missing.txt"),
        (["TRAIN", "--trainers", "lbfgs", "--out", "TRAIN/r"], "cannot write a race there"),
        (["-", "--dev", "-", "--trainers", "lbfgs"], "Standard input (-) can be read only once"),
    ],
)
def test_refusals(call, recipes, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    ran = call("race", *(word.replace("TRAIN", str(recipes / "train.columns")) for word in arguments))
    assert ran.code in (1, 2)
    assert message in ran.err
    assert ran.err.count("\n") == 1
    assert ran.out == ""
    assert list(tmp_path.iterdir()) == [], "no folder was made"


def test_help_has_examples(call):
    ran = call("race", "--help", code=0)
    assert "  crfit race" in ran.out.partition("Examples:\n")[2]
    assert "the entry with that LABEL" in " ".join(ran.out.split())
    for heading in ("Common options:", "Training:", "Input:", "Model:", "Stopping", "Results:"):
        assert heading in ran.out
