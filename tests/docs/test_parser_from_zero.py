"""The guide "A parser from zero", run from its first block to its last."""

import shutil
from pathlib import Path

import pytest
from guide_runner import Runner, blocks, check_shown

PAGE = Path(__file__).resolve().parents[2] / "docs" / "parser-from-zero.md"
PROGRAMS = ("crfit", "curl", "echo")


@pytest.mark.skipif(shutil.which("sh") is None, reason="its commands are for a shell")
def test_the_guide_runs_and_prints_what_it_shows(tmp_path, monkeypatch):
    pytest.importorskip("uvicorn", reason="no uvicorn: pip install 'crfit[serve]'")
    monkeypatch.chdir(tmp_path)
    runner = Runner(tmp_path)
    n_commands = n_shown = 0
    try:
        for kind, text in blocks(PAGE):
            if kind == "python":
                runner.python(text)
            elif kind == "text":
                check_shown(text, runner.printed)
                n_shown += 1
            else:
                for line in text.splitlines():
                    if line.startswith(PROGRAMS):
                        runner.command(line)
                        n_commands += 1
    finally:
        runner.stop()
    assert n_commands >= 9
    assert n_shown >= 8
    for name in ("parser.crfit", "new.crfit", "best.crfit"):
        assert (tmp_path / name).stat().st_size > 0
    next_lines = (tmp_path / "label-next.jsonl").read_text(encoding="utf-8").splitlines()
    assert len(next_lines) == 10


def test_what_is_not_printed_is_found():
    check_shown("a 1.00\nc", "a 1.01\nb\nc\n")
    for shown in ("c\na 1.00", "a 1.10", "a", "a 1.00 2"):
        with pytest.raises(AssertionError):
            check_shown(shown, "a 1.01\nb\nc\n")
