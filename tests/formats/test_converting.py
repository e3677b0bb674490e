"""`crfit.load` and the command line on models of other tools, and `crfit convert` between them."""

import json
import os

import pytest
from click.testing import CliRunner

import crfit
from crfit import formats
from crfit.cli import cli, main
from crfit.errors import OptionError
from crfit.formats.dialects import in_dialect
from crfit.inspection.weights import state_weights, transition_weights
from format_helpers import column_model, same

TEMPLATE = "U0:%x[0,0]\nU1:%x[-1,0]/%x[0,1]\nB\nB1:%x[0,1]\n"
PLAIN = "U0:%x[0,0]\nU1:%x[-1,0]/%x[0,1]\nB\n"
ROWS = "a P X\nb Q Y\n\nd Q Z\nc P X\na P Y\n"
SUFFIXES = (".crfit", ".crfsuite", ".crfpp", ".crfpp.txt", ".wapiti")


def run(*arguments):
    result = CliRunner().invoke(cli, [str(a) for a in arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """One model in every format, under the names model.*, and data for it."""
    folder = tmp_path_factory.mktemp("formats")
    model = column_model(PLAIN, weights="all")
    model.save(folder / "model.crfit")
    for suffix in SUFFIXES[1:]:
        formats.write(model, folder / f"model{suffix}")
    (folder / "rows.txt").write_text(ROWS)
    attributes, _ = model.template.expand([line.split()[:2] for line in ROWS.split("\n\n")[0].split("\n")])
    escaped = [[name.replace(":", r"\:") for name in x] for x in attributes]
    lines = ["\t".join([label, *x]) for label, x in zip("XY", escaped, strict=True)]
    (folder / "rows.crfsuite").write_text("\n".join(lines) + "\n")
    (folder / "rows.jsonl").write_text(json.dumps({"tokens": attributes, "labels": ["X", "Y"]}) + "\n")
    return folder


def comparable(path):
    """A model with the names of CRF++'s dialect, as the others have them."""
    model = crfit.load(path)
    return in_dialect(model, "crfpp") if model.template is not None else model


@pytest.mark.parametrize("source", SUFFIXES)
@pytest.mark.parametrize("target", SUFFIXES)
def test_every_pair(folder, source, target, tmp_path):
    if source == ".crfsuite" and target not in (".crfit", ".crfsuite"):
        assert main(["convert", str(folder / f"model{source}"), str(tmp_path / f"new{target}")]) == 2
        assert os.listdir(tmp_path) == []
        return
    said = run("convert", folder / f"model{source}", tmp_path / f"new{target}")
    assert said.startswith(
        f"{tmp_path / f'new{target}'}: {formats.named('x' + target).title} model, 3 labels"
    )
    old, new = comparable(folder / f"model{source}"), comparable(tmp_path / f"new{target}")
    if target == ".crfpp":
        assert new.labels == old.labels
        assert state_weights(new) == pytest.approx(state_weights(old), rel=1e-6)
    elif target == ".crfsuite":
        old = crfit.load(folder / f"model{source}")  # keeps the names of the dialect
        assert (state_weights(new), transition_weights(new)) == (state_weights(old), transition_weights(old))
    else:
        assert same(new, old)


def test_formats_are_detected_by_content(folder, tmp_path):
    for suffix in SUFFIXES:
        (tmp_path / "any").write_bytes((folder / f"model{suffix}").read_bytes())
        assert formats.detect(tmp_path / "any") is formats.named(f"x{suffix}")
        assert same(crfit.load(tmp_path / "any"), crfit.load(folder / f"model{suffix}"))


@pytest.mark.parametrize("suffix", [".crfpp", ".crfpp.txt", ".wapiti"])
def test_tag_eval_and_inspect(folder, suffix):
    own, other = folder / "model.crfit", folder / f"model{suffix}"
    rows = folder / "rows.txt"
    for command in (["tag", "--marginals", rows], ["eval", "--json", rows]):
        assert run(command[0], "-m", other, *command[1:]) == run(command[0], "-m", own, *command[1:])
    tool = formats.named(other).title.split()[0]
    assert f"unknown, read from a {tool} file" in run("inspect", other)
    template = PLAIN.lower() if suffix == ".wapiti" else PLAIN
    assert json.loads(run("inspect", other, "--json"))["template"] == template


def test_extra_columns_are_accepted(folder, tmp_path):
    (tmp_path / "wide.txt").write_text("a P more X\nb Q more Y\n")
    tagged = run("tag", "-m", folder / "model.wapiti", tmp_path / "wide.txt").split("\n")
    assert [line.split("\t")[:3] for line in tagged[:2]] == [["a", "P", "more"], ["b", "Q", "more"]]
    converted = crfit.load(folder / "model.wapiti")
    converted.save(tmp_path / "again.crfit")
    assert run("tag", "-m", tmp_path / "again.crfit", tmp_path / "wide.txt").split("\n") == tagged
    assert main(["tag", "-m", str(folder / "model.crfit"), str(tmp_path / "wide.txt")]) == 2
    (tmp_path / "narrow.txt").write_text("a\n")
    assert main(["tag", "-m", str(folder / "model.wapiti"), str(tmp_path / "narrow.txt")]) == 2


@pytest.mark.parametrize("data", ["rows.crfsuite", "rows.jsonl"])
def test_a_crfsuite_model_reads_attributes(folder, data):
    accuracy = json.loads(run("eval", "-m", folder / "model.crfsuite", folder / data, "--json"))["accuracy"]
    (folder / "first.txt").write_text(ROWS.partition("\n\n")[0])
    own = json.loads(run("eval", "-m", folder / "model.crfit", folder / "first.txt", "--json"))
    assert accuracy == own["accuracy"]
    assert run("tag", "-m", folder / "model.crfsuite", folder / data)


def test_bad_use(folder, tmp_path, capsys):
    model = str(folder / "model.crfit")
    for arguments, words in (
        ([model, str(tmp_path / "x.txt")], "does not tell the format"),
        ([model, model], "the same file"),
        ([str(tmp_path / "none"), str(tmp_path / "x.crfit")], "No such file"),
        ([model, str(tmp_path / "x"), "--to", "pickle"], "'pickle' is not one of"),
        ([model, str(tmp_path / "none" / "x.crfsuite")], "there is no folder"),
    ):
        assert main(["convert", *arguments]) == 2
        assert words in capsys.readouterr().err
    with pytest.raises(OptionError, match="or give the format"):
        formats.write(crfit.load(model), tmp_path / "x")
    with pytest.raises(OptionError, match="choose crfit, crfsuite, crfpp, crfpp-text, wapiti"):
        formats.write(crfit.load(model), tmp_path / "x", "pickle")


def test_what_is_lost_is_said(folder, tmp_path, capsys):
    for to, words in (("crfsuite", "CRFsuite has no templates"), ("crfpp", "rounded to float32")):
        assert main(["convert", str(folder / "model.crfit"), str(tmp_path / "x"), "--to", to]) == 0
        assert words in capsys.readouterr().err


def test_edge_attributes(tmp_path, capsys):
    model = column_model(TEMPLATE)
    for suffix in (".crfpp.txt", ".wapiti"):
        formats.write(model, tmp_path / f"x{suffix}")
        assert same(comparable(tmp_path / f"x{suffix}"), model)
    model.save(tmp_path / "x.crfit")
    assert main(["convert", str(tmp_path / "x.crfit"), str(tmp_path / "y.crfsuite")]) == 2
    assert "does not support attributes on transitions" in capsys.readouterr().err
