"""crfit explain, and what crfit inspect shows of one attribute, of hostile names, and as a page."""

import json
import re

import pytest

import crfit
from cli_helpers import FORMATS, N_TEST, N_TRAIN
from crfit import demo


def records(ran):
    return [json.loads(line) for line in ran.out.splitlines()]


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_explains_its_errors(call, recipes, name):
    model, file = recipes / f"{name}.crfit", recipes / f"test.{name}"
    loaded = crfit.load(model)
    data = loaded.read(file)
    predicted = loaded.tag_dataset(data)
    ran = call("explain", "-m", model, file, "--errors", "--max", 10_000, "--json", code=0)
    found = records(ran)
    names, sequences = loaded.labels, data.seq_ptr.tolist()
    assert len(found) == int((predicted != data.labels).sum()) > 0
    for record in found:
        token = sequences[record["sequence"]] + record["position"]
        assert names[predicted[token]] == record["predicted"] == record["label"] != record["gold"]
        assert record["gold"] == record["against"] == data.label_alphabet[int(data.labels[token])]
        assert record["line"] == int(data.line_numbers[token])
        sides = [record[side] for side in ("before", "after") if record[side] is not None]
        assert record["log_odds"] == pytest.approx(
            sum(part["log_odds"] for part in (*record["attributes"], *sides))
        )


def test_text_shows_token_context_and_labels(call, recipes):
    ran = call("explain", "-m", recipes / "columns.crfit", recipes / "test.columns", "--errors", "--max", 1)
    record = records(
        call(
            "explain",
            "-m",
            recipes / "columns.crfit",
            recipes / "test.columns",
            "--errors",
            "--max",
            1,
            "--json",
        )
    )[0]
    assert f"test.columns:{record['line']}: sequence {record['sequence']}, position" in ran.out
    words = [word for word, _ in demo.recipe_lines(N_TRAIN + N_TEST)[N_TRAIN + record["sequence"]]]
    assert f"[{words[record['position']]}]" in ran.out
    assert f"predicted {record['predicted']}, right {record['gold']}" in ran.out
    assert "attributes of this token" in ran.out
    assert ran.err.startswith("crfit: explaining 1 of ")


def test_selection(call, recipes):
    model, file = recipes / "columns.crfit", recipes / "test.columns"
    command = ["explain", "-m", model, file, "--json"]
    found = records(call(*command, "--sequence", 3, "--max", 1000))
    assert {record["sequence"] for record in found} == {3}
    assert [record["position"] for record in found] == list(range(len(found)))
    (one,) = records(call(*command, "--sequence", 3, "--position", 1))
    assert one == found[1]
    doubtful = records(call(*command, "--below", 0.6, "--max", 1000))
    assert doubtful
    assert all(record["probability"] < 0.6 for record in doubtful)
    assert len(records(call(*command))) == 20
    named = records(call(*command, "--label", "B-NAME", "--against", "O", "--max", 2))
    assert {(record["label"], record["against"]) for record in named} == {("B-NAME", "O")}


def test_unlabelled_input_and_standard_input(call, recipes, tmp_path):
    words = tmp_path / "new.columns"
    rows = (recipes / "test.columns").read_text().splitlines()[:3]
    words.write_text("\n".join(row.rsplit(maxsplit=1)[0] for row in rows) + "\n")
    found = records(call("explain", "-m", recipes / "columns.crfit", words, "--json", code=0))
    assert [record["gold"] for record in found] == [None] * 3
    crfsuite = tmp_path / "new.crfsuite"
    crfsuite.write_text("?\tw=flour\tnever seen\n")
    ran = call("explain", "-m", recipes / "crfsuite.crfit", crfsuite, code=0)
    assert "unknown to the model: never seen" in ran.out
    assert "right" not in ran.out


def test_texts_are_split_into_tokens(call, recipes, tmp_path):
    model, file = tmp_path / "words.crfit", tmp_path / "new.jsonl"
    training = recipes / "test.columns"
    call("train", training, "-m", model, "--features", "default", "--max-passes", 5, code=0)
    file.write_text('{"text": ""}\n{"id": 7, "text": "2 cups flour"}\n')
    found = records(call("explain", "-m", model, file, "--json", code=0))
    assert [(record["sequence"], record["position"], record["line"]) for record in found] == [
        (0, 0, 2),
        (0, 1, 2),
        (0, 2, 2),
    ]
    assert [record["token"] for record in found] == ["2", "cups", "flour"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--sequence", 4000], "--sequence 4000: the file has 40"),
        (["--position", 4000], "--position 4000: no such position"),
        (["--label", "NO"], "--label NO: choose one of the model's labels"),
        (["--against", "NO"], "--against NO: choose one of the model's labels"),
        (["--below", 2], "--below"),
        (["--json", "--html", "x.html"], "--html x.html: leave out --json"),
    ],
)
def test_wrong_options(call, recipes, options, message):
    ran = call("explain", "-m", recipes / "columns.crfit", recipes / "test.columns", *options, code=2)
    assert message in ran.err
    assert len(ran.err.splitlines()) == 1


def test_errors_need_labels(call, recipes, tmp_path):
    path = tmp_path / "new.crfsuite"
    path.write_text("?\tw=flour\n")
    ran = call("explain", "-m", recipes / "crfsuite.crfit", path, "--errors", code=2)
    assert "none of the labels" in ran.err


def test_pages(call, recipes, tmp_path):
    model, file = recipes / "columns.crfit", recipes / "test.columns"
    assert call("explain", "-m", model, file, "--errors", "--html", tmp_path / "e.html", code=0).out == ""
    assert "Explanations: test.columns" in (tmp_path / "e.html").read_text()
    ran = call("inspect", model, "--html", tmp_path / "r.html", "--data", file, code=0)
    assert (
        ran.err
        == f"crfit: wrote {tmp_path / 'r.html'}, {(tmp_path / 'r.html').stat().st_size / 1e6:.1f} MB\n"
    )
    text = (tmp_path / "r.html").read_text()
    assert "Errors in context" in text
    assert "Training curve" in text
    call("inspect", model, "--html", tmp_path / "r.html", code=0)
    assert "Errors in context" not in (tmp_path / "r.html").read_text()
    kept = file.read_bytes()
    assert "overwrite" in call("explain", "-m", model, file, "--html", file, code=2).err
    assert "overwrite" in call("inspect", model, "--html", file, "--data", file, code=2).err
    assert "--html" in call("inspect", model, "--data", file, code=2).err
    assert file.read_bytes() == kept


def test_classifiers(call, tmp_path):
    path = tmp_path / "mail.crfsuite"
    path.write_text("spam\tw=cheap\tw=pills\nham\tw=see\tlength:0.5\nspam\tw=cheap\nham\tw=cheap\n")
    model = tmp_path / "m"
    call("train", path, "--task", "classify", "-m", model, "-q", code=0)
    found = records(call("explain", "-m", model, path, "--json", code=0))
    assert [record["gold"] for record in found] == ["spam", "ham", "spam", "ham"]
    assert found[0]["before"] is found[0]["after"] is None
    assert "(intercept)" in [part["name"] for part in found[0]["attributes"]]
    (wrong,) = records(call("explain", "-m", model, path, "--errors", "--json", code=0))
    assert (wrong["label"], wrong["against"]) == ("spam", "ham")
    call("inspect", model, "--html", tmp_path / "r.html", "--data", path, code=0)
    assert "classes" in (tmp_path / "r.html").read_text()


# --- one attribute, and names that are not for a terminal --------------------------------------------------

HOSTILE = "evil\x1b[2J\u202e\x07"


@pytest.fixture
def hostile(tmp_path):
    X = [[[HOSTILE, "w=London"], ["w=other", "w=Paris"]]]
    crfit.CRF().fit(X, [[f"A{HOSTILE}", "B"]]).model_.save(tmp_path / "m")
    return tmp_path / "m"


def test_no_control_character_reaches_the_terminal(call, hostile):
    for options in (
        [],
        ["--top", 5],
        ["--transitions"],
        ["--attribute", HOSTILE],
        ["--attribute", "evil"],
        ["--label", "B"],
    ):
        ran = call("inspect", hostile, *options)
        shown = (ran.out + ran.err).replace("\n", "")
        assert not re.search("[\x00-\x1f\x7f-\x9f\u202a-\u202e]", shown), options
        if options != ["--label", "B"]:
            assert "evil\\x1b[2J\\u202e\\x07" in shown, options


def test_weights_of_one_attribute(call, recipes):
    model = crfit.load(recipes / "columns.crfit")
    name = model.attribute_alphabet[3]
    found = call("inspect", recipes / "columns.crfit", "--attribute", name, "--json", code=0).json
    from crfit.inspection.weights import state_weights

    expected = {label: w for (attribute, label), w in state_weights(model).items() if attribute == name}
    assert found == {"attribute": name, "labels": expected, "edges": []}
    text = call("inspect", recipes / "columns.crfit", "--attribute", name, code=0).out
    assert text.splitlines()[0] == name
    values = [float(line.split()[0]) for line in text.splitlines()[1:]]
    assert values == sorted(values, reverse=True)


def test_options_that_would_be_ignored_are_refused(call, recipes, tmp_path):
    model, page = recipes / "columns.crfit", tmp_path / "r.html"
    for options, message in (
        (["--html", page, "--top", 3], "leave out --top"),
        (["--html", page, "--json"], "leave out --json"),
        (["--attribute", "x", "--transitions"], "leave out --transitions"),
    ):
        assert message in call("inspect", model, *options, code=2).err
    assert not page.exists()


def test_similar_names_are_suggested(call, hostile):
    ran = call("inspect", hostile, "--attribute", "w=Londn", code=2)
    assert ran.err.startswith("crfit: error: --attribute w=Londn: the model has no such attribute; similar")
    assert "w=London" in ran.err
    assert "w=Paris" not in ran.err
    assert "no name is similar" in call("inspect", hostile, "--attribute", "zzzz", code=2).err
