"""Streaming: the generated text, the table and the checks, and the quick version."""

import pytest
from made_results import checks, lines_of, results_of

from bench.setting import Setting
from bench.speed import streaming
from crfit.data import text
from crfit.data.templates import Template


def row(what, limit, seconds, **facts):
    sizes = {"shards_mb": 1200.0, "limit_mb": limit, "allocated_mb": 250.0, "resident_mb": 400.0}
    return {"problem": "chains-made", "what": what, "seconds": 60.0, **sizes, **facts} | (
        {} if seconds is None else {"training_seconds": seconds, "passes": 20.0, "gap": 5e-4}
    )


def made(gap=5e-4, allocated=250.0, seconds=60.0):
    index, memory = row("index", 300.0, None), row("memory", None, 20.0)
    return results_of(
        [index, memory, row("streaming", 300.0, seconds, allocated_mb=allocated) | {"gap": gap}]
    )


def test_the_table():
    first, second, third = lines_of(streaming.tables(made())["passes"])
    assert first == ["`crfit index`", "1,200", "300", "250", "400", "60", "", "", ""]
    assert second[6:] == ["20", "1.00", "5e-04"]
    assert third[2:] == ["300", "250", "400", "60", "20", "3.00", "5e-04"]


@pytest.mark.parametrize(
    ("results", "failed"),
    [
        (made(), []),
        (made(gap=2e-3), ["trains"]),
        (made(allocated=301.0), ["memory"]),
        (made(seconds=120.0), ["passes"]),
    ],
)
def test_what_we_say_of_streaming(results, failed):
    assert [name for name, check in checks(streaming, results).items() if not check.holds] == failed


def test_the_text_has_sentences_of_tokens_and_labels(tmp_path):
    path = tmp_path / "text"
    streaming.write_text(path, 5000)
    data = text.read(path, template=Template(streaming.template_text()))
    assert data.n_tokens == 5000
    assert data.n_labels == streaming.N_LABELS
    assert data.n_sequences > 100
    assert data.lengths.max() <= 40
    assert data.attr_ids.size == pytest.approx(10 * 5000, rel=0.01)


def test_a_program_that_fails_is_an_error():
    with pytest.raises(RuntimeError, match="there-is-no-such-folder: cannot be read"):
        streaming.crfit("train", "there-is-no-such-folder", "-m", "model")
    assert streaming.tasks(quick=True)[0].settings == streaming.QUICK
    assert Setting(quick=True).quick
