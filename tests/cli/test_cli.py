"""The command line: every verb once as a program, and ``crfit train`` in the same process."""

import gzip
import json
import os
import re
import shutil
import signal
import subprocess
import sys

import numpy as np
import pytest

import crfit
from cli_helpers import FORMATS, N_TEST, N_TRAIN, blocks, interrupted_program, program

TRAIN_KEYS = {
    *("trainer", "objective", "grad_inf", "grad_norm", "passes", "iterations", "seconds", "reason"),
    *("n_weights", "n_attributes", "n_labels", "n_sequences", "n_tokens", "dev"),
}


def test_program_round_trip(tmp_path, recipes):
    model = tmp_path / "m.crfit"
    packed = tmp_path / "train.txt.gz"
    packed.write_bytes(gzip.compress((recipes / "train.columns").read_bytes()))
    trained = program(
        "train", packed, "-m", model, "--dev", recipes / "test.columns", "--max-iter", 30, "--json", code=0,
    )  # fmt: skip
    record = json.loads(trained.stdout.splitlines()[-1])
    assert record.keys() >= TRAIN_KEYS
    assert record["n_sequences"] == N_TRAIN
    assert record["reason"] in ("max_iter", "converged")
    assert b"newton_cg" in trained.stderr

    source = (recipes / "test.columns").read_bytes()
    tagged = program("tag", "-m", model, input=source, code=0)
    assert tagged.stderr == b""
    cells = [line.split("\t") for line in tagged.stdout.decode().split("\n") if line]
    given = [line for line in source.decode().split("\n") if line]
    assert [" ".join(row[:-1]) for row in cells] == given

    scored = program("eval", "-m", model, "-", "--json", input=source, code=0)
    scores = json.loads(scored.stdout)
    right = sum(row[-1] == row[-2] for row in cells)
    assert scores["accuracy"] == pytest.approx(100 * right / len(cells))
    assert scores["tokens"] == len(cells)
    assert scores["sequences"] == N_TEST
    assert {"precision", "recall", "f1", "labels"} <= scores.keys()
    assert scores["f1"] == pytest.approx(record["dev"]["f1"])

    for arguments in (["inspect", model], ["trainers"]):
        shown = program(*arguments, code=0)
        assert b"newton_cg" in shown.stdout


def test_program_demo(tmp_path):
    out = tmp_path / "demo"
    ran = program("demo", "--quick", "--out", out, code=0)
    assert sorted(path.name for path in out.iterdir()) == [
        "dev.txt", "recipes.crfit", "test.txt", "train.txt", "training.png",
    ]  # fmt: skip
    assert (out / "training.png").read_bytes().startswith(b"\x89PNG")
    text = ran.stdout.decode()
    assert "FB1" in text
    assert "/QTY" in text
    assert "\x1b" not in text  # no colours in a pipe


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_program_interrupted(tmp_path, recipes, number, code):
    model, log = tmp_path / "m.crfit", tmp_path / "log.jsonl"
    command = ["train", recipes / "train.columns", "-m", model, "--stop-grad-inf", 0, "--stop-rel-change", 0]
    command += [
        "--log", log, "--json", "--trainer", "lbfgs", "-o", "max_trials=1000", "--device", "reference",
    ]  # fmt: skip
    returned, out, err = interrupted_program(command, log, "step", 2, number)
    assert returned == code
    assert json.loads(out)["reason"] == "interrupted"
    assert f"iterations to {model}".encode() in err
    assert b"last completed step" in err
    assert b"Traceback" not in err
    crfit.load(model)


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_program_interrupted_before_training(tmp_path, number, code):
    command = [sys.executable, "-m", "crfit", "train", "-", "-m", str(tmp_path / "m")]
    streams = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    process = subprocess.Popen(command, **streams)
    process.stdin.write(b"a X L\n" * 20_000)  # more than a pipe holds: once it is written, the program reads
    process.stdin.flush()
    process.send_signal(number)
    out, err = process.communicate(timeout=30)
    assert process.returncode == code
    assert err.splitlines()[-1] == b"crfit: error: interrupted"
    assert out == b""
    assert list(tmp_path.iterdir()) == []


def test_program_reader_gone(tmp_path, recipes):
    source = tmp_path / "long.txt"
    source.write_bytes((recipes / "test.columns").read_bytes() * 400)
    command = [sys.executable, "-m", "crfit", "tag", "-m", str(recipes / "columns.crfit"), str(source)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdout.readline()
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait(timeout=30) == 1


@pytest.mark.parametrize("stage", ["crfit.fit._final_scores", "crfit.model.Model.save"])
def test_interrupt_after_training_saves_the_model(call, recipes, tmp_path, monkeypatch, stage):
    model, (module, _, name) = tmp_path / "m", stage.rpartition(".")
    owner = crfit.Model if name == "save" else sys.modules[module]
    original = getattr(owner, name)

    def interrupted(*arguments):
        signal.raise_signal(signal.SIGINT)
        return original(*arguments)

    monkeypatch.setattr(owner, name, interrupted)
    options = ["-m", model, "--dev", recipes / "test.columns", "--max-iter", 3, "-q", "--json"]
    ran = call("train", recipes / "train.columns", *options, code=130)
    assert ran.json["reason"] == "max_iter"
    assert f"iterations to {model}" in ran.err
    crfit.load(model)


def test_two_interrupts_after_training_leave_no_model(call, recipes, tmp_path, monkeypatch):
    def interrupted(*_, **__):
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr("crfit.data.tensor_file.save_file", interrupted)
    ran = call("train", recipes / "train.columns", "-m", tmp_path / "m", "--max-iter", 3, "-q")
    assert (ran.code, ran.err.strip()) == (130, "crfit: error: interrupted")
    assert list(tmp_path.iterdir()) == []


def test_program_with_a_log_that_is_full(call, recipes, tmp_path):
    options = ["--max-iter", 3, "-q", "--json", "--log", "/dev/full"]
    ran = call("train", recipes / "train.columns", "-m", tmp_path / "m", *options, code=1)
    assert ran.err.startswith("crfit: warning: /dev/full: the log cannot be written: No space left")
    assert ran.err.count("\n") == 1
    assert ran.json["iterations"] == 3
    crfit.load(tmp_path / "m")


needs_bash = pytest.mark.skipif(shutil.which("bash") is None, reason="its commands are for bash")


@needs_bash
@pytest.mark.parametrize(
    ("redirection", "code"),
    [("2>&1 | head -1", 1), ("2>/dev/full", 1), ("2>&-", 0), (">/dev/full", 1), ("--log /dev/full", 1)],
)
def test_program_saves_the_model_whatever_happens_to_its_streams(recipes, tmp_path, redirection, code):
    command = [sys.executable, "-m", "crfit", "train", recipes / "train.columns", "-m", tmp_path / "m"]
    line = f"set -o pipefail; {' '.join(map(str, command))} --max-iter 60 {redirection}"
    ran = subprocess.run(["bash", "-c", line], capture_output=True, timeout=60, check=False)
    assert ran.returncode == code, ran.stderr
    assert b"Traceback" not in ran.stdout + ran.stderr
    assert b"Exception ignored" not in ran.stderr
    crfit.load(tmp_path / "m")


@needs_bash
def test_program_with_closed_streams(recipes):
    command = f"{sys.executable} -m crfit tag -m {recipes / 'columns.crfit'}"
    for redirection, message in (("<&-", "standard input is closed"), (">&-", "standard output is closed")):
        ran = subprocess.run(["bash", "-c", f"{command} {redirection}"], capture_output=True, check=False)
        assert ran.returncode in (1, 2)
        assert message.encode() in ran.stderr
        assert ran.stderr.count(b"\n") == 1


def test_program_shows_warnings_in_one_line(recipes):
    ran = program(
        "tag", "-m", recipes / "columns.crfit", recipes / "test.columns",
        env={**os.environ, "CRFIT_CPU_LEVEL": "v9"}, code=0,
    )  # fmt: skip
    assert ran.stderr.startswith(b"crfit: warning: CRFIT_CPU_LEVEL='v9'")
    assert ran.stderr.count(b"\n") == 1


def test_import_is_light():
    heavy = {"matplotlib", "sklearn", "scipy"}
    for modules, absent in (("crfit, crfit.cli", heavy), ("crfit", heavy | {"rich", "click"})):
        code = f"import {modules}, sys; print({absent} & sys.modules.keys())"
        ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert ran.stdout.strip() == "set()"


def test_public_names():
    for name in crfit.__all__:
        assert getattr(crfit, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = crfit.nothing


@pytest.mark.parametrize("verb", ["train", "tag", "eval", "inspect", "explain", "trainers", "demo"])
def test_help_has_examples(call, verb):
    ran = call(verb, "--help", code=0)
    assert f"  crfit {verb}" in ran.out.partition("Examples:\n")[2]
    assert "\b" not in ran.out


def test_no_verb_and_version(call):
    assert "Commands:" in call().out
    assert call("--version").out == f"crfit {crfit.__version__}\n"


@pytest.mark.parametrize("name", FORMATS)
def test_model_knows_its_format(call, recipes, name):
    model = crfit.load(recipes / f"{name}.crfit")
    assert model.input_format == name
    scores = call("eval", "-m", recipes / f"{name}.crfit", recipes / f"test.{name}", "--json", code=0)
    assert scores.json["accuracy"] > 70


def test_train_summary_for_people(call, recipes, tmp_path):
    ran = call("train", recipes / "train.columns", "-m", tmp_path / "m", "--max-iter", 2, "--l1", 1, "-q")
    assert (ran.code, ran.err) == (0, "")
    assert [line.split()[0] for line in ran.out.splitlines()] == [
        "model", "data", "weights", "scheme", "objective", "trainer", "chosen", "stopped",
    ]  # fmt: skip
    assert "nonzero" in ran.out
    assert not any(line.endswith(" ") for line in ran.out.splitlines())


def test_several_files_are_one_dataset(call, recipes, tmp_path):
    text = (recipes / "train.columns").read_text(encoding="utf-8")
    cut = text.index("\n\n", len(text) // 2) + 2
    (tmp_path / "a").write_text(text[:cut], encoding="utf-8")
    (tmp_path / "b").write_text(text[cut:].rstrip("\n"), encoding="utf-8")  # no line end at the end
    options = ["--max-iter", 5, "-q", "--json"]
    parts = call("train", tmp_path / "a", tmp_path / "b", "-m", tmp_path / "m", *options).json
    whole = call("train", recipes / "train.columns", "-m", tmp_path / "n", *options).json
    for key in ("n_sequences", "n_tokens", "n_weights", "objective"):
        assert parts[key] == whole[key]


def test_options_reach_the_objective(call, recipes, tmp_path):
    template = tmp_path / "t.template"
    template.write_text("U00:%x[0,0]\nU01:%x[0,1]\nB01:%x[0,1]\n")
    options = ["--template", template, "--boundary", "--weights", "all", "--min-count", 2, "--l2", 0.5]
    ran = call("train", recipes / "train.columns", "-m", tmp_path / "m", "--max-iter", 3, "-q", *options)
    assert ran.code == 0, ran.err
    seen = call("inspect", tmp_path / "m", "--json").json
    expected = {"boundary": True, "weights": "all", "min_count": 2, "l2": 0.5}
    expected["transitions"] = "none"  # the template has no plain B line
    assert seen["options"].items() >= expected.items()
    assert seen["n_edge_attributes"] > 0
    assert seen["groups"]["transition"]["n_weights"] == 0
    assert seen["template"] == template.read_text()


def test_threads_do_not_matter(call, recipes, tmp_path):
    weights = []
    for n in (1, 3):
        model = tmp_path / f"m{n}"
        options = ["--max-iter", 8, "-q", "--threads", n]
        call("train", recipes / "train.columns", "-m", model, *options, code=0)
        weights.append(np.array(crfit.load(model).weights))
    assert np.array_equal(*weights)


def test_order_two_trains_and_tags(call, recipes, tmp_path):
    small = tmp_path / "small.txt"
    text = (recipes / "train.columns").read_text(encoding="utf-8")
    small.write_text("\n\n".join(text.split("\n\n")[:12]) + "\n")
    model = tmp_path / "m"
    ran = call("train", small, "--dev", small, "-m", model, "--order", 2, "--max-iter", 2, code=0)
    assert "warning" not in ran.err
    assert crfit.load(model).layout.order == 2
    tagged = call("tag", "-m", model, small, code=0)
    assert len(tagged.out.split()) > 0


def test_resume_equals_uninterrupted(call, recipes, tmp_path):
    train, checkpoint = recipes / "train.columns", tmp_path / "run.ckpt"
    common = ["-q", "--json", "--trainer", "lbfgs", "-o", "memory=4", "--log", tmp_path / "log"]
    assert call("train", train, "-m", tmp_path / "a", *common, "--max-iter", 12).code == 0
    call("train", train, "-m", tmp_path / "b", *common, "--max-iter", 5, "--checkpoint", checkpoint, code=0)
    # the trainer and its options come from the checkpoint
    resumed = ["--resume", checkpoint, "--max-iter", 12, "-q", "--json", "--log", tmp_path / "log"]
    ran = call("train", train, "-m", tmp_path / "b", *resumed, code=0)
    assert ran.json["iterations"] == 12
    assert np.array_equal(crfit.load(tmp_path / "a").weights, crfit.load(tmp_path / "b").weights)
    steps = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    assert [step["iteration"] for step in steps if step["event"] == "step"] == list(range(13))


def test_training_ends_at_an_objective(call, recipes, tmp_path):
    command = ["train", recipes / "train.columns", "-m", tmp_path / "m", "--json", "-q"]
    best = call(*command).json["objective"]
    ran = call(*command, "--stop-objective", 1.1 * best, code=0)
    assert ran.json["reason"] == "converged"
    assert best < ran.json["objective"] <= 1.1 * best


def test_early_stopping_keeps_the_best(call, recipes, tmp_path):
    log = tmp_path / "log"
    options = [
        "--dev", recipes / "test.columns", "--early-stop", 2, "--stop-grad-inf", 0, "--log", log, "--json",
    ]  # fmt: skip
    ran = call("train", recipes / "train.columns", "-m", tmp_path / "m", *options, "-q", code=0)
    assert ran.json["reason"] == "held_out"
    steps = [json.loads(line) for line in log.read_text().splitlines()]
    scores = [step["extra"]["dev_f1"] for step in steps if "dev_f1" in step.get("extra", {})]
    assert ran.json["dev"]["f1"] == pytest.approx(max(scores))


@pytest.mark.parametrize("metric", ["accuracy", "sequence_accuracy"])
def test_early_stopping_by_another_metric(call, recipes, tmp_path, metric):
    arguments = [
        "train", recipes / "train.columns", "-m", tmp_path / "m", "--early-stop", 2, "--metric", metric,
        "--stop-grad-inf", 0, "--log", tmp_path / "log", "--json", "-q",
    ]  # fmt: skip
    ran = call(*arguments, "--dev", recipes / "test.columns", code=0)
    assert f"dev_{metric} has not improved for 2 scores" in ran.json["message"]
    steps = map(json.loads, (tmp_path / "log").read_text().splitlines())
    scores = [step["extra"][f"dev_{metric}"] for step in steps if f"dev_{metric}" in step.get("extra", {})]
    assert ran.json["dev"][metric] == pytest.approx(max(scores))
    ran = call("train", recipes / "train.columns", "-m", tmp_path / "m", "--max-iter", 2, "-q",
               "--dev", recipes / "test.columns", code=0)  # fmt: skip
    assert re.search(r"dev .*F1 [\d.]+, sequence accuracy [\d.]+", ran.out)
    refused = call(*arguments, code=2)
    assert "needs held-out data: add --dev FILE" in refused.err
    refused = call("train", "x", "-m", "y", "--dev", "z", "--metric", "macro_f1", code=2)
    assert "--metric macro_f1: choose f1 or accuracy or sequence_accuracy" in refused.err


def test_unknown_dev_label_is_named(call, recipes, tmp_path):
    dev = tmp_path / "dev.txt"
    dev.write_text("salt WORD B-NAME\n\nodd WORD B-ODD\nodd WORD B-STRANGE\n")
    options = ["--dev", dev, "--max-iter", 3, "-q", "--json"]
    ran = call("train", recipes / "train.columns", "-m", tmp_path / "m", *options, code=0)
    warning = f"crfit: warning: {dev}:3: label 'B-ODD', also 'B-STRANGE' not seen in training"
    assert ran.err.startswith(warning)
    assert ran.err.count("\n") == 1
    assert ran.json["dev"]["by_label"]["B-ODD"]["recall"] == 0
    scored = call("eval", "-m", tmp_path / "m", dev)
    assert scored.err.startswith(warning)


def test_input_without_known_attributes_is_told(call, recipes, tmp_path):
    strange = tmp_path / "strange.txt"
    strange.write_text("B-NAME\tzzq\tqqz\nB-NAME\txxq\txxz\n\nB-NAME\tzzzq\tqqqz\n")
    advice = "use the format and template of the training data"
    for name in ("columns", "crfsuite"):
        for verb in ("tag", "eval"):
            ran = call(verb, "-m", recipes / f"{name}.crfit", strange, code=0)
            assert ran.err.startswith("crfit: warning: none of the ")
            assert f"attributes of {strange} is in the model: {advice}" in ran.err.splitlines()[0]
            known = call(verb, "-m", recipes / f"{name}.crfit", recipes / f"test.{name}")
            assert known.err == ""
    bare = tmp_path / "bare.crfsuite"
    bare.write_text("B-NAME a\nB-UNIT b\n")
    ran = call("train", bare, "--input", "crfsuite", "-m", tmp_path / "m", "-q", code=0)
    assert ran.err.startswith(f"crfit: warning: {bare} has no attributes: ")


def test_a_checkpoint_has_the_options_of_its_run(call, recipes, tmp_path):
    train = recipes / "train.columns"
    options = "--l2 0.3 --l1 0.1 --boundary --weights all --transitions observed --min-count 2"
    begun = [*options.split(), "--template", "recipe.template", "--trainer", "lbfgs", "-o", "memory=4"]
    base = ["train", train, "-q", "-m"]
    assert call(*base, tmp_path / "a", *begun, "--max-iter", 12).code == 0
    assert call(*base, tmp_path / "b", *begun, "--max-iter", 5, "--checkpoint", tmp_path / "c").code == 0
    same = ["--l2", 0.3, "--boundary", "--template", "recipe.template", "--trainer", "lbfgs"]
    for given in ([], same):
        resumed = ["--resume", tmp_path / "c", "--max-iter", 12, *given]
        assert call(*base, tmp_path / "b", *resumed).code == 0
        assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_resume_beyond_the_limit_makes_no_iteration(call, recipes, tmp_path):
    arguments = ["train", recipes / "train.columns", "-m", tmp_path / "m", "-q", "--json"]
    first = call(*arguments, "--max-iter", 6, "--checkpoint", tmp_path / "c").json
    ran = call(*arguments, "--max-iter", 3, "--resume", tmp_path / "c", "--dev", recipes / "test.columns")
    assert ran.code == 0, ran.err
    assert (ran.json["iterations"], ran.json["objective"]) == (6, first["objective"])
    assert ran.json["dev"]["f1"] > 0


def test_long_lines(call, tmp_path):
    word = "w" * 20_000
    columns = tmp_path / "long.txt"
    columns.write_text(f"{word} X A\nb Y B\n\nb Y B\n{word} X A")  # no line end at the end
    model = tmp_path / "m"
    assert call("train", columns, "-m", model, "-q", "--max-iter", 20).code == 0
    ran = call("tag", "-m", model, columns)
    assert blocks(ran.out) == [
        [f"{word}\tX\tA\tA", "b\tY\tB\tB"], ["b\tY\tB\tB", f"{word}\tX\tA\tA"],
    ]  # fmt: skip


def test_the_model_of_a_diverged_run_can_be_looked_at(call, tmp_path):
    path = tmp_path / "huge.crfsuite"
    path.write_text("A\tw=a:1e200\nB\tw=b\n\nB\tw=b\nA\tw=a:1e-200\n")
    assert call("train", path, "-m", tmp_path / "m", "--trainer", "psa", "-q").code == 1
    seen = call("inspect", tmp_path / "m", code=0)
    assert "objective 2.7726" in seen.out, "that of the start, 4 log 2"
    assert "(diverged)" in seen.out
    model = crfit.load(tmp_path / "m")
    model.summary["objective"] = float("nan")
    model.save(tmp_path / "m")
    assert "objective nan" in call("inspect", tmp_path / "m").out
