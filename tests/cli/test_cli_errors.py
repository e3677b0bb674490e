"""The command line: bad input and bad use end in one line, the right exit code and no half-written file."""

import errno
import gzip
import os

import pytest

from cli_helpers import Ran
from crfit.data import tensor_file
from crfit.training.callbacks import checkpoint

BAD_FILES = {
    "ragged": ("a X L\nb L\n", ":2: 2 columns"),
    "empty": ("", "the file is empty"),
    "blank": ("\n\n \n", "the file is empty or has only blank lines"),
    "one column": ("L\nM\n", "one column"),
    "bad.crfsuite": ("L\ta:nan\n", ":1: 'nan' is not a finite number"),
    "bad.jsonl": ('{"tokens": [["a"]], "labels": ["L"]}\n{"tokens": [["a"]]}\n', ':2: no "labels"'),
    "cut.gz": (gzip.compress(b"a X L\n" * 100)[:20], "truncated or damaged"),
}


OLD_LINE_ENDS = {
    "attributes": '{"tokens": [["a"]], "labels": ["L"]}',
    "tokens": '{"tokens": ["a"], "labels": ["L"]}',
    "text": '{"text": "a", "spans": [[0, 1, "L"]]}',
    "classify": '{"attributes": ["a"], "label": "L"}',
}


def check_error(ran: Ran, code: int, message: str) -> None:
    assert ran.code == code, ran.err
    lines = ran.err.splitlines()
    assert lines[-1].startswith("crfit: error: ")
    assert sum(line.startswith("crfit: error") for line in lines) == 1
    assert message in lines[-1]
    assert "Traceback" not in ran.err
    assert ran.out == ""


@pytest.mark.parametrize("name", BAD_FILES)
def test_bad_files(call, tmp_path, name):
    content, message = BAD_FILES[name]
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    ran = call("train", path, "-m", tmp_path / "m", "-q")
    check_error(ran, 2, message)
    assert ran.err.count("\n") == 1
    assert str(path) in ran.err
    assert os.listdir(tmp_path) == [name]


@pytest.mark.parametrize("form", OLD_LINE_ENDS)
def test_json_lines_that_end_with_cr_alone(call, tmp_path, form):
    path = tmp_path / "old.jsonl"
    path.write_bytes(f"{OLD_LINE_ENDS[form]}\r".encode() * 2)
    task = ["--task", "classify"] if form == "classify" else []
    message = f"{path}: lines end with CR alone, as on very old systems: convert them to LF"
    check_error(call("train", path, "-m", tmp_path / "m", "-q", *task), 2, message)
    path.write_bytes(OLD_LINE_ENDS[form].replace(" ", "\r").encode())  # white space within the only line
    assert "CR" not in call("train", path, "-m", tmp_path / "m", "-q", *task).err


def test_texts_to_tag_whose_lines_end_with_cr_alone(call, recipes, tmp_path):
    model, path = tmp_path / "m", tmp_path / "old.jsonl"
    call("train", recipes / "train.columns", "-m", model, "-q", "--features", "default", code=0)
    path.write_bytes(b'{"text": "2 cups"}\r{"text": "3 eggs"}\r')
    ran = call("tag", "-m", model, path, code=2)
    assert f"{path}: lines end with CR alone" in ran.err


BAD_OPTIONS = {
    "--trainer lbfg": "--trainer lbfg: unknown, did you mean lbfgs? Choose one of lbfgs, ",
    "--trainer foo": "--trainer foo: unknown; choose one of lbfgs, ",
    "--trainer lbfgs -o mem=3": "its options: memory, wolfe_decrease",
    "--trainer lbfgs -o c2=0.2": "c2='0.2': is CRFsuite's penalty: use l2=0.4 (--l2 0.4)",
    "-o c1=0.1": "c1='0.1': is CRFsuite's penalty: use l1=0.1 (--l1 0.1)",
    "--trainer lbfgs -o memory=0": "memory=0: must be at least 1",
    "--trainer lbfgs -o memory": "OPTION=VALUE",
    "--trainer psa -o eta0=inf": "eta0=inf: must be a finite number",
    "--trainer psa -o batch=2000000": "batch=2000000: must be below 1,048,576",
    "-o memory=3": "auto has no options; name a trainer, e.g. --trainer lbfgs -o memory=3",
    "--order 9": "--order 9: ",
    "--order 0": "--order 0: ",
    "--l2 -1": "--l2 -1.0: ",
    "--l1 nan": "--l1 nan: ",
    "--threads 0": "--threads 0: give 1 to 1024, or -1 for all cores",
    "--device gpu": "'--device': 'gpu' is not one of 'cpu', 'reference'",
    "--stop-grad-inf -1": "--stop-grad-inf -1.0: ",
    "--max-iter x": "'--max-iter'",
    "--early-stop 3": "--dev FILE",
    "--template none.template": "the built-in templates are chunking.template",
    "--resume none.ckpt": "none.ckpt: cannot be read: No such file",
    "--frobnicate": "--frobnicate",
    "--weights some": "'--weights'",
    "--dev missing.txt": "missing.txt: cannot be read",
    "--input crfsuite --template chunking.template": "templates work only with column files",
}


@pytest.mark.parametrize("options", BAD_OPTIONS)
def test_bad_options(call, recipes, tmp_path, options):
    ran = call("train", recipes / "train.columns", "-m", tmp_path / "m", "-q", *options.split())
    check_error(ran, 2, BAD_OPTIONS[options])
    assert ran.err.count("\n") == 1
    assert os.listdir(tmp_path) == []


def test_missing_arguments(call, recipes, tmp_path):
    check_error(call("train", "-m", tmp_path / "m"), 2, "TRAIN...")
    check_error(call("train", recipes / "train.columns"), 2, "'--model'")
    check_error(call("train", tmp_path / "none", "-m", tmp_path / "m"), 2, "none: cannot be read")
    check_error(call("frobnicate"), 2, "frobnicate")
    check_error(call("tag", "-m", tmp_path / "none"), 2, "none: cannot be read")
    check_error(call("trainers", "none"), 2, "lbfgs")
    unknown = call("inspect", recipes / "columns.crfit", "--label", "X")
    check_error(unknown, 2, "--label X: choose one of the model's labels")
    check_error(call("train", "-", "-m", tmp_path / "m", "--dev", "-"), 2, "only once")


@pytest.mark.parametrize("option", ["-m", "--log", "--checkpoint"])
def test_unwritable_output(call, recipes, tmp_path, option):
    outputs = {"-m": tmp_path / "m"} | {option: tmp_path / "none" / "file"}
    arguments = [part for pair in outputs.items() for part in pair]
    check_error(call("train", recipes / "train.columns", *arguments, "-q"), 1, "there is no folder")
    outputs[option] = tmp_path
    arguments = [part for pair in outputs.items() for part in pair]
    check_error(call("train", recipes / "train.columns", *arguments, "-q"), 1, "is a folder")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("name", "message"),
    [("", "the file name is empty"), ("x" * 256, "File name too long"), ("link", "there is no folder")],
)
def test_bad_model_name_is_told_before_the_data_is_read(call, tmp_path, monkeypatch, name, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "link").symlink_to(tmp_path / "absent" / "m")
    check_error(call("train", "absent.txt", "-m", name, "-q"), 1, message)


@pytest.mark.parametrize("n", ["0", "1.5", "x", "10001", "9" * 30])
def test_bad_nbest(call, recipes, n):
    ran = call("tag", "-m", recipes / "columns.crfit", recipes / "test.columns", "--nbest", n)
    check_error(ran, 2, "nbest")


def test_input_is_never_overwritten(call, recipes):
    before = (recipes / "train.columns").read_bytes()
    test, train = recipes / "test.columns", recipes / "train.columns"
    ran = call("train", test, train, "-m", train, "-q")
    check_error(ran, 2, "this file is also an input")
    assert (recipes / "train.columns").read_bytes() == before


@pytest.mark.parametrize("old", ["--init", "--toward"])
@pytest.mark.parametrize("output", ["--checkpoint", "--log"])
def test_old_models_are_not_overwritten_by_checkpoints_and_logs(call, recipes, tmp_path, old, output):
    model = tmp_path / "old.crfit"
    before = (recipes / "columns.crfit").read_bytes()
    model.write_bytes(before)
    ran = call("train", recipes / "train.columns", "-m", tmp_path / "m", old, model, output, model, "-q")
    check_error(ran, 2, f"{output} {model}: this file is also an input: name another")
    assert model.read_bytes() == before


@pytest.mark.parametrize("verb", ["train", "tune"])
def test_lists_of_features_are_inputs(call, recipes, tmp_path, verb):
    (tmp_path / "f.txt").write_text("lower\ngazetteer foods.txt\n")
    foods = tmp_path / "foods.txt"
    foods.write_text("salt\n")
    ran = call(verb, recipes / "train.columns", "-m", foods, "--features", tmp_path / "f.txt", "-q")
    check_error(ran, 2, f"-m {foods}: this file is also an input: name another")
    assert foods.read_text() == "salt\n"


def test_lists_of_features_are_given_again_to_resume(call, recipes, tmp_path):
    (tmp_path / "f.txt").write_text("lower\ngazetteer foods.txt\n")
    (tmp_path / "foods.txt").write_text("salt\n")
    checkpoint = tmp_path / "c"
    arguments = ["train", recipes / "train.columns", "-m", tmp_path / "m", "-q"]
    stop = ["--trainer", "lbfgs", "--max-iter", 1, "--checkpoint", checkpoint]
    assert call(*arguments, *stop, "--features", tmp_path / "f.txt").code == 0
    ran = call(*arguments, "--resume", checkpoint)
    check_error(ran, 2, f"--resume {checkpoint}: the run uses lists of words: give --features again")


def test_threshold_is_a_number(call, recipes):
    ran = call("tag", "-m", recipes / "columns.crfit", recipes / "test.columns", "--threshold", "nan")
    check_error(ran, 2, "--threshold nan: give a probability from 0 to 1")


PAIRS = [("-m", "--log"), ("-m", "--checkpoint"), ("--log", "--checkpoint")]


@pytest.mark.parametrize("pair", PAIRS)
def test_outputs_do_not_overwrite_each_other(call, recipes, tmp_path, monkeypatch, pair):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "link").symlink_to(tmp_path)
    for second in ("out", tmp_path / "out", "link/out", "./out"):
        outputs = {"-m": "m", pair[0]: "out", pair[1]: second}
        arguments = [part for option in outputs.items() for part in option]
        ran = call("train", recipes / "train.columns", *arguments, "-q")
        check_error(ran, 2, f"{pair[1]} {second}: the ")
        assert "goes to this file too: name another" in ran.err
    assert os.listdir(tmp_path) == ["link"]


def test_hard_link_of_an_input_is_an_input(call, recipes, tmp_path):
    (tmp_path / "train").write_bytes((recipes / "train.columns").read_bytes())
    os.link(tmp_path / "train", tmp_path / "other")
    ran = call("train", tmp_path / "train", "-m", tmp_path / "other", "-q")
    check_error(ran, 2, "this file is also an input")


@pytest.mark.parametrize("option", ["-m", "--log", "--checkpoint"])
def test_outputs_do_not_go_to_standard_output(call, recipes, tmp_path, monkeypatch, option):
    monkeypatch.chdir(tmp_path)
    outputs = {"-m": "m", option: "-"}
    arguments = [part for pair in outputs.items() for part in pair]
    ran = call("train", recipes / "train.columns", *arguments, "-q")
    check_error(ran, 2, f"{option} -: standard output is for the report: name a file")
    assert os.listdir(tmp_path) == []


def test_checkpoint_may_be_the_one_that_is_resumed(call, recipes, tmp_path):
    arguments = [recipes / "train.columns", "-m", tmp_path / "m", "-q", "--checkpoint", tmp_path / "c"]
    assert call("train", *arguments, "--max-iter", 2).code == 0
    ran = call("train", *arguments, "--max-iter", 4, "--resume", tmp_path / "c", "--json", code=0)
    assert ran.json["iterations"] == 4


def test_resume_with_other_options_of_the_trainer(call, recipes, tmp_path):
    arguments = ["train", recipes / "train.columns", "-m", tmp_path / "m", "-q"]
    begin = ["--trainer", "sgd", "-o", "epochs=1", "-o", "eta0=0.1", "--checkpoint", tmp_path / "c"]
    assert call(*arguments, *begin).code == 0
    resumed = [*arguments, "--resume", tmp_path / "c"]
    for other, message in {
        "-o eta0=0.2": "eta0=0.2: the run to resume has 0.1: leave the option out, or start a new run",
        "-o batch=2": "batch=2: the run to resume has 1",
        "--seed 5": "--seed 5: the run to resume has 0",
        "--trainer asgd": "--trainer asgd: means schedule='power', but the run to resume has 'inverse'",
    }.items():
        check_error(call(*resumed, *other.split()), 2, message)
    ran = call(*resumed, "-o", "epochs=3", "-o", "report=2", "--seed", 0, "--json", code=0)
    assert ran.json["iterations"] == 5


@pytest.mark.parametrize(
    "problem",
    [
        {"costs": "x"}, {"costs": 1e18}, {"costs": [["A", "B"]]}, {"task": ""}, {"task": [1]},
        {"template": {"a": 1}}, {"features": {"text": "word"}}, {"l2_by_group": 1}, {"weights": "x"},
    ],
)  # fmt: skip
def test_a_checkpoint_with_wrong_options_of_the_problem_is_damaged(call, recipes, tmp_path, problem):
    arguments = ["train", recipes / "train.columns", "-m", tmp_path / "m", "-q", "--trainer", "lbfgs"]
    call(*arguments, "--max-iter", 1, "--checkpoint", tmp_path / "c", code=0)
    header, tensors = tensor_file.read(tmp_path / "c", checkpoint.KIND, mapped=False)
    tensor_file.write(tmp_path / "wrong", tensors, header | {"problem": header["problem"] | problem})
    ran = call(*arguments, "--resume", tmp_path / "wrong")
    (name,) = problem
    check_error(ran, 2, f"{tmp_path / 'wrong'}: is damaged: ")
    assert name in ran.err or name == "features"


def test_a_wrong_template_in_a_checkpoint_names_the_file(call, recipes, tmp_path):
    arguments = ["train", recipes / "train.columns", "-m", tmp_path / "m", "-q"]
    call(*arguments, "--max-iter", 1, "--checkpoint", tmp_path / "c", code=0)
    header, tensors = tensor_file.read(tmp_path / "c", checkpoint.KIND, mapped=False)
    tensor_file.write(
        tmp_path / "wrong", tensors, header | {"problem": header["problem"] | {"template": "U%x["}}
    )
    check_error(call(*arguments, "--resume", tmp_path / "wrong"), 2, f"{tmp_path / 'wrong'}:1: bad reference")


@pytest.mark.parametrize("text", ["bogus(", "", "lower\ngazetteer foods.txt"])
def test_wrong_features_in_a_checkpoint_name_the_file(call, recipes, tmp_path, text):
    arguments = ["train", recipes / "train.columns", "-m", tmp_path / "m", "-q"]
    first = ["--features", "default", "--max-iter", 1, "--checkpoint", tmp_path / "c"]
    call(*arguments, *first, code=0)
    header, tensors = tensor_file.read(tmp_path / "c", checkpoint.KIND, mapped=False)
    header["problem"]["features"]["text"] = text
    tensor_file.write(tmp_path / "c", tensors, header)
    ran = call(*arguments, "--resume", tmp_path / "c", code=2)
    assert ran.err.startswith(f"crfit: error: {tmp_path / 'c'}: is damaged: ")
    assert ran.err.endswith("copy the original again, or create it again\n")


def test_a_wrong_state_in_a_checkpoint_shows_no_signatures(call, recipes, tmp_path):
    arguments = ["train", recipes / "train.columns", "-m", tmp_path / "m", "-q", "--trainer", "newton_cg"]
    call(*arguments, "--max-iter", 1, "--checkpoint", tmp_path / "c", code=0)
    header, tensors = tensor_file.read(tmp_path / "c", checkpoint.KIND, mapped=False)
    tensor_file.write(tmp_path / "wrong", tensors, header | {"state": header["state"] | {"k": 2**70}})
    ran = call(*arguments, "--resume", tmp_path / "wrong")
    check_error(ran, 2, "cannot resume from it: a value is out of range or of another type; start a new run")


def test_failed_save_leaves_the_old_model(call, recipes, tmp_path, monkeypatch):
    model = tmp_path / "m"
    model.write_bytes((recipes / "columns.crfit").read_bytes())

    def full(*_, **__):
        raise OSError(28, "No space left on device", str(model))

    monkeypatch.setattr("os.replace", full)
    ran = call("train", recipes / "train.columns", "-m", model, "-q", "--max-iter", 1)
    check_error(ran, 1, "No space left")
    assert model.read_bytes() == (recipes / "columns.crfit").read_bytes()
    assert os.listdir(tmp_path) == ["m"]


def test_cut_and_foreign_models(call, recipes, tmp_path):
    whole = (recipes / "columns.crfit").read_bytes()
    for size in (0, 5, 1000, len(whole) - 1):
        (tmp_path / "cut").write_bytes(whole[:size])
        for verb in (["tag"], ["eval"]):
            check_error(call(*verb, "-m", tmp_path / "cut", recipes / "test.columns"), 2, "cut")
    check_error(call("inspect", recipes / "test.columns"), 2, "test.columns")


@pytest.mark.parametrize("trainer", ["lbfgs", "newton_cg"])
def test_foreign_checkpoint(trainer, call, recipes, tmp_path):
    checkpoint = tmp_path / "c"
    base = [recipes / "train.columns", "-m", tmp_path / "m", "-q", "--trainer", trainer, "--max-iter", 1]
    assert call("train", *base, "--checkpoint", checkpoint).code == 0
    arguments = [recipes / "train.columns", "-m", tmp_path / "n", "-q", "--resume"]
    others = {
        "--min-count 3": "0", "--boundary": "False", "--l2 50.0": "1.0", "--l1 1.0": "0.0",
        "--weights all": "observed", "--order 2": "1", "--task classify": "tag",
        "--template recipe.template": "another template",
    }  # fmt: skip
    for other, stored in others.items():
        ran = call("train", *arguments, checkpoint, *other.split())
        check_error(ran, 2, f"{other}: the run to resume has {stored}: ")
    relabelled = tmp_path / "relabelled"
    text = (recipes / "train.columns").read_text(encoding="utf-8")
    relabelled.write_text(text.replace("B-PREP", "I-PREP", 1), encoding="utf-8")
    changed = [relabelled, "-m", tmp_path / "n", "-q", "--weights", "all", "--resume", checkpoint]
    assert call("train", *base, "--weights", "all", "--checkpoint", checkpoint).code == 0
    check_error(call("train", *changed), 2, "the data and options of that run")
    relabelled.unlink()
    check_error(call("train", *arguments, tmp_path / "m"), 2, "checkpoint")
    assert sorted(os.listdir(tmp_path)) == ["c", "m"]


def test_debug_shows_a_traceback(call, tmp_path):
    for arguments in (["--debug", "tag"], ["tag", "--debug"]):
        ran = call(*arguments, "-m", tmp_path / "none", code=2)
        assert "Traceback" in ran.err
        assert ran.err.splitlines()[-1].startswith("crfit: error: ")


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (MemoryError("std::bad_alloc"), "out of memory: free some, raise its limit"),
        (MemoryError("Unable to allocate 2 GiB"), "out of memory (Unable to allocate 2 GiB): free some"),
        (RuntimeError("can't start new thread"), "out of memory (can't start new thread): free some"),
        (OSError(errno.ENOMEM, "Cannot allocate memory"), "use --threads 1 or less data"),
    ],
)
def test_too_little_memory_has_a_remedy(call, recipes, monkeypatch, error, message):
    def broken(*_, **__):
        raise error

    monkeypatch.setattr("crfit.cli.tag.load", broken)
    check_error(call("tag", "-m", "m", recipes / "test.columns"), 1, message)


def test_unexpected_errors_exit_with_1(call, recipes, monkeypatch):
    def broken(*_, **__):
        raise RuntimeError("something\nbroke")

    monkeypatch.setattr("crfit.cli.tag.load", broken)
    check_error(call("tag", "-m", "m", recipes / "test.columns"), 1, "RuntimeError: something broke")
