"""The check of wording finds phrases and long sentences in prose, and nothing in code."""

import re
from pathlib import Path

import pytest

from docs.make import wording

ROOT = Path(__file__).resolve().parents[2]
AVOIDED = [(re.compile(r"go(?:ne)?\s+on\s+with", re.I), "resume")]


def found(tmp_path, name, text):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return [(one.line, one.message) for one in wording.check(path, AVOIDED)]


@pytest.mark.parametrize(
    ("name", "text", "line"),
    [
        ("page.md", "# Title\n\nA run can be gone\non with.\n", 3),
        ("page.md", "| a |\n|---|\n| Go on with it |\n", 3),
        ("code.py", '"""First line.\n\nA run can be gone on with.\n"""\n', 3),
        ("code.py", "x = 1\n# It can be gone\n# on with.\n", 2),
        ("code.py", 'raise ValueError(f"{x} cannot be gone on with")\n', 1),
        ("code.cpp", "int x;  // gone on with\n", 1),
        ("code.cpp", 'throw Error("cannot be gone "\n            "on with");\n', 1),
        ("claims.json", '{"text": "gone on with"}', 1),
    ],
)
def test_phrases_are_found_in_prose(tmp_path, name, text, line):
    ((at, message),) = found(tmp_path, name, text)
    assert at == line
    assert message in ("'gone on with': write resume", "'Go on with': write resume")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (
            "page.md",
            "Type `gone on with`.\n\n    gone on with\n\n```\ngone on with\n```\n[x](gone%20on%20with.md)\n",
        ),
        ("page.md", "## References\n\n- A. Author. What is gone on with.\n"),
        ("code.py", "gone_on_with = 1\n"),
        ("code.cpp", "auto gone = on(with);\n"),
    ],
)
def test_code_links_and_references_are_not_prose(tmp_path, name, text):
    assert found(tmp_path, name, text) == []


def test_long_sentences_are_found_on_pages(tmp_path):
    long, short = " ".join(["word"] * 46), " ".join(["word"] * 45)
    text = f"# Title\n\n{short}. {short}.\n\n- {short}\n- {short}\n\n{long}.\n\n| {long} |\n"
    assert found(tmp_path, "page.md", text) == [(8, "a sentence of 46 words: split it (at most 45)")]
    assert found(tmp_path, "code.py", f'"""{long}."""\n') == []


def test_the_list_has_advice_and_finds_its_examples():
    avoided = wording.phrases()
    assert len(avoided) > 50
    assert [pattern.pattern for pattern, advice in avoided if not advice] == []
    examples = ["know no penalty", "it is told from names", "Refuse what is no number", "can be gone on with",
                "changes by 1e-6 of itself", "online and on-line", "in order to"]  # fmt: skip
    assert [text for text in examples if not any(pattern.search(text) for pattern, _ in avoided)] == []


def test_the_whole_tree_is_checked():
    paths = {path.relative_to(ROOT).as_posix() for path in wording.tracked()}
    expected = {"README.md", "CHANGELOG.md", "docs/index.md", "src/crfit/cli/train.py", "bench/README.md",
                "bench/papers/newton_cg/claims.json", "native/lattice/decoder.hpp", "Makefile",
                "src/crfit/racing/page.js"}  # fmt: skip
    assert expected - paths == set()


def test_findings_are_printed_and_fail(tmp_path, capsys):
    (tmp_path / "page.md").write_text("Refuse what is no number.\n", encoding="utf-8")
    assert wording.main([str(tmp_path / "page.md")]) == 1
    assert "page.md:1: 'what is no'" in capsys.readouterr().out


def test_the_readme_is_short():
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 130
