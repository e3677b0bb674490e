"""crfit index, and crfit train on what it writes."""

import json
import re
import shutil

import pytest

from cli_helpers import FORMATS, N_TRAIN, call, program, recipes  # noqa: F401
from crfit.data import indexing
from crfit.data.shards import Shards
from crfit.model import load


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(indexing, "BLOCK_BYTES", 300)


@pytest.fixture
def shards(call, recipes, tmp_path):  # noqa: F811
    call("index", recipes / "train.columns", "-o", tmp_path / "shards", "--shard-size", 0.01, code=0)
    assert Shards.open(tmp_path / "shards").n_shards > 4
    return tmp_path / "shards"


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("how", [[], ["--min-count", "2"], ["--features", "default"]])
def test_the_model_is_that_of_training_on_the_files(call, recipes, tmp_path, name, how):  # noqa: F811
    if "--features" in how and name != "columns":
        pytest.skip("features need tokens")
    files = [recipes / f"train.{name}", recipes / f"test.{name}"]
    call("index", *files, "-o", tmp_path / "shards", "--shard-size", 0.01, "-q", *how, code=0)
    call("train", tmp_path / "shards", "-m", tmp_path / "one", "-q", code=0)
    call("train", *files, "-m", tmp_path / "other", "-q", *how, code=0)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "other").read_bytes()


def test_streamed_training_does_not_depend_on_the_memory(call, recipes, shards, tmp_path):  # noqa: F811
    dev = recipes / "test.columns"
    seen = []
    for memory in (0, 1.5):
        model = tmp_path / f"{memory}.crfit"
        ran = call(
            "train",
            shards,
            "-m",
            model,
            "--max-memory",
            memory,
            "--dev",
            dev,
            "--max-iter",
            20,
            "--json",
            code=0,
        )
        assert "read again in each pass" in ran.err
        report = ran.json
        assert report["trainer"] == "lbfgs"
        assert "shards" in report["why"]
        assert report["dev"]["f1"] > 50
        seen.append(model.read_bytes())
    assert seen[0] == seen[1]
    model = load(tmp_path / "0.crfit")
    assert model.template is not None
    assert model.options["constraints"] == {"scheme": "BIO"}
    assert call("eval", "-m", tmp_path / "0.crfit", dev, "--json", code=0).json["f1"] > 50


def test_a_streamed_run_resumes_to_the_same_bytes(call, shards, tmp_path):  # noqa: F811
    how = ["train", shards, "--max-memory", 0, "-q"]
    whole, part, resumed = (tmp_path / name for name in ("whole", "part", "resumed"))
    call(*how, "-m", whole, "--max-iter", 12, code=0)
    call(*how, "-m", part, "--max-iter", 5, "--checkpoint", tmp_path / "run.ckpt", code=0)
    call(*how, "-m", resumed, "--max-iter", 12, "--resume", tmp_path / "run.ckpt", code=0)
    assert load(resumed).weights.tobytes() == load(whole).weights.tobytes()


def test_an_old_model_to_start_from(call, recipes, shards, tmp_path):  # noqa: F811
    old, new = recipes / "columns.crfit", tmp_path / "new.crfit"
    ran = call(
        "train", shards, "-m", new, "--max-memory", 0, "--init", old, "--max-iter", 3, "--json", code=0
    )
    assert ran.json["carried_over"]["n_new"] == 0
    ran = call("train", shards, "-m", new, "--max-memory", 0, "--toward", old, code=2)
    assert "--toward" in ran.err
    assert "more memory" in ran.err
    ran = call("train", shards, "-m", new, "--toward", old, "--max-iter", 3, "-q", code=0)


@pytest.mark.parametrize("how", [[], ["--features", "default"]])
def test_shards_keep_their_own_features_and_minimum_count(call, recipes, shards, tmp_path, how):  # noqa: F811
    old, new = tmp_path / "old", tmp_path / "new"
    more = ["--l2", 0.5, "--min-count", 2, "--max-iter", 2, "-q"]
    call("train", recipes / "train.columns", "-m", old, *how, *more, code=0)
    ran = call("train", shards, "-m", new, "--init", old, "--max-iter", 2, code=0)
    assert f"from {old}: l2=0.5\n" in ran.err
    # Without the text there is nothing that a model with other features could be scored on.
    assert ("wrong before" in ran.out) == (not how)
    model = load(new)
    assert (model.options["l2"], model.options["min_count"]) == (0.5, 0)
    assert model.template is not None
    assert model.features is None


def test_the_report(call, recipes, tmp_path):  # noqa: F811
    ran = call("index", recipes / "train.columns", "-o", tmp_path / "a")
    assert "no --template: using a window of five tokens over 2 columns" in ran.err
    assert re.search(r"read \d+ MB, [\d,]+ tokens in [\d.]+ s; wrote 1 of 1 shards", ran.err)
    assert f"{N_TRAIN} sequences" in ran.out
    report = call("index", recipes / "train.jsonl", "-o", tmp_path / "b", "-q", "--json", code=0).json
    assert report["n_sequences"] == N_TRAIN
    assert report["input_format"] == "jsonl"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--min-count", "3"], "--min-count 3: the shards in"),
        (["--template", "x"], "give it to crfit index"),
        (["--features", "default"], "--features default: the shards in"),
        (["--input", "columns"], "give it to crfit index"),
        (["--missing", "?"], "give it to crfit index"),
        (["--task", "classify"], "shards hold sequences, not items"),
        (["--trainer", "sgd", "--max-memory", "0"], "sgd"),
        (["--merge", "--max-memory", "0"], "--merge: equal attributes may be in different shards"),
        (["--max-memory", "-1"], "--max-memory"),
    ],
)
def test_options_that_shards_do_not_have(call, shards, tmp_path, options, message):  # noqa: F811
    ran = call("train", shards, "-m", tmp_path / "model", "-q", *options, code=2)
    assert message in ran.err
    assert not (tmp_path / "model").exists()


def test_what_is_given_to_train(call, recipes, shards, tmp_path):  # noqa: F811
    model = tmp_path / "model"
    assert (
        "index all files together"
        in call("train", shards, recipes / "train.columns", "-m", model, code=2).err
    )
    assert "no index in this folder" in call("train", recipes, "-m", model, code=2).err
    assert (
        "is for training on"
        in call("train", recipes / "train.columns", "-m", model, "--max-memory", 5, code=2).err
    )
    (shards / "shard-00002").unlink()
    ran = call("train", shards, "-m", model, code=2)
    assert ran.err.count("\n") == 1
    assert "shard-00002: is missing" in ran.err


@pytest.mark.parametrize("option", ["-m", "--checkpoint", "--log"])
def test_outputs_do_not_replace_the_data(call, shards, tmp_path, option):  # noqa: F811
    model = () if option == "-m" else ("-m", tmp_path / "model")
    for name in ("index", "shard-00001", "new"):
        ran = call("train", shards, option, shards / name, *model, code=2)
        assert "this file is in the folder of the training data: name another" in ran.err
    call("train", shards, "-m", tmp_path / "model", "--max-iter", 1, "-q", code=0)


def test_what_index_refuses(call, recipes, shards, tmp_path):  # noqa: F811
    train = recipes / "train.columns"
    assert "-o" in call("index", train, "-o", shards, code=2).err
    assert "has an index already" in call("index", train, "-o", shards, code=2).err
    call("index", train, "-o", shards, "--overwrite", "-q", code=0)
    shutil.copy(train, shards / "train.txt")
    ran = call("index", shards / "train.txt", "-o", shards, "--overwrite", code=2)
    assert "train.txt" in ran.err
    assert "is a file" in call("index", train, "-o", train, code=2).err
    wrong = tmp_path / "wrong.txt"
    wrong.write_text("a b X\n\na X\n")
    ran = call("index", wrong, "-o", tmp_path / "new", code=2)
    assert "wrong.txt:3: 2 columns where the first row has 3" in ran.err
    assert ran.err.count("\n") == 1
    assert "--shard-size" in call("index", train, "-o", tmp_path / "new", "--shard-size", 0, code=2).err
    for size in ("nan", "1e-9"):
        ran = call("index", train, "-o", tmp_path / "new", "--shard-size", size, code=2)
        assert f"--shard-size {size}: give a number, 1e-06 or more".replace("1e-9", "1e-09") in ran.err
    assert "leave out --template" in call(
        "index", train, "-o", tmp_path / "new", "--features", "default", "--template", "x", code=2
    ).err  # fmt: skip
    assert not (tmp_path / "new").exists()


def test_standard_input(recipes, tmp_path):  # noqa: F811
    folder = tmp_path / "shards"
    text = (recipes / "train.columns").read_bytes()
    ran = program("index", "-", "-o", folder, "--json", "-q", input=text, code=0)
    assert json.loads(ran.stdout)["n_sequences"] == N_TRAIN
    assert Shards.open(folder).source == "<stdin>"
