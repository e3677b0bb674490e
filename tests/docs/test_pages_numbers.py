"""No number on the pages about results is typed by hand.

Numbers stand in marked places, which are filled from the stored results when the site is built, in README.md
by `bench pages`; in code, links and comments, where they are commands, options and addresses; and in
names. What is left of a page without these must not have a digit.
"""

import re
from pathlib import Path

import pytest

from bench import pages

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    ROOT / "README.md",
    ROOT / "docs" / "which-trainer.md",
    ROOT / "docs" / "benchmarks.md",
    *sorted((ROOT / "docs" / "results").glob("*.md")),
]
#: What is no text: marked places, comments, code, images' and links' addresses, and lists of references.
NO_TEXT = [
    pages.MARKED,
    re.compile(r"<!--.*?-->", re.S),
    re.compile(r"^```.*?^```", re.S | re.M),
    re.compile(r"(?<=\n\n)(?: {4}.*\n|\n(?= {4}))+"),
    re.compile(r"`(?![-+]?[\d.,]*\d(?:e[-+]?\d+)? ?[a-zA-Z%]*`)[^`\n]+`"),  # a number with a unit is no code
    re.compile(r"\]\([^)]*\)"),
    re.compile(r"<https?:[^>]*>"),
    re.compile(r"<(?:img|source|/?picture)\b[^>]*>"),
    re.compile(r"^## References\n.*?(?=^## |\Z)", re.S | re.M),
    re.compile(r"^\d+\. ", re.M),  # a numbered list
]
#: Names with digits in them.
NAMES = [
    r"CoNLL-200[023]",
    r"Reuters-21578",
    r"L-BFGS\(\d+\)",
    r"OCR|IOB[12]|UTF-8|F1|[lL][12]|U[12]",
    r"(?:gamma|γ)[123]",
    r"(?:[Ff]igures?|[Tt]ables?|[Ss]ections?|[Ee]quations?|[Aa]lgorithms?) \d+(?:(?:, | and | to |-|–)\d+)*",
    r"C\+\+20|Python 3\.10|x86-64-v2|AVX2|AVX-512",
    r"\((?:19|20)\d\d\)|(?:AAAI|ICML)-\d\d",  # of a paper
]
NAME = re.compile(rf"(?<![\w.])(?:{'|'.join(NAMES)})(?![\w%]|[.,]\d)")


def typed_numbers(text: str) -> list[tuple[int, str]]:
    """Line and word of every number that somebody typed."""

    def blank(match: re.Match[str]) -> str:
        return "\n" * match[0].count("\n")  # line numbers stay

    for pattern in [*NO_TEXT, NAME]:
        text = pattern.sub(blank, text)
    lines = enumerate(text.splitlines(), 1)
    return [(number, word) for number, line in lines for word in line.split() if re.search(r"\d", word)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_no_number_on_a_page_is_typed(page):
    name = page.relative_to(ROOT).as_posix()
    found = [f"{name}:{line}: {word}" for line, word in typed_numbers(page.read_text(encoding="utf-8"))]
    remedy = "show it by a mark, <!-- table GROUP/NAME -->, from a stored run"
    assert not found, "\n".join([*found, f"numbers are not typed here: {remedy}"])


@pytest.mark.parametrize(
    "text",
    [
        "It is 8.0 times as fast.", "A table of 12 rows", "**28.9** times", "- 1e-3 of F", "| seconds | 4 |",
        "![3 curves](a.png)", "[93.79](a.md)", "about 95% of L-BFGS(50)", "l2 = 1",
        "on CoNLL-2000, 8936 sentences", "in 2011 they", "Text\n    12 more of the same paragraph",
        "# 3 results", "F1 of 93.8", "<!-- table g/t -->\n| 1 |\n<!-- end --> 7", "CoNLL-20005",
        "it takes `12.5` seconds", "it takes `12.5 s`", "U12",
    ],
)  # fmt: skip
def test_a_typed_number_is_found(text):
    assert typed_numbers(text), text


@pytest.mark.parametrize(
    "text",
    [
        "L-BFGS(50) on CoNLL-2000, CoNLL-2002 and CoNLL-2003, Reuters-21578: F1 with l2, U1, U2 and γ3.",
        "C++20, Python 3.10 or later; Figure 3, table 2, figures 8 and 9 and Tables 1-3, by Tsuboi (2011).",
        "1. first\n2. second",
        "`--stop-gap 0.1` and [a page](docs/7.md#4), ![curves](figure4.png)",
        "text\n\n    crfit train -o memory=3\n\n    crfit train -o memory=4\n\nmore",
        "text\n\n```python\nx = 1\n\ny = 2\n```\n\nmore",
        "<!-- table g/t -->\n\n| 1.5 |\n\n<!-- end -->",
        "<!-- rules -->\n\n| 50 |\n\n<!-- end -->",
        "<!-- measured in 2026 -->",
        "## References\n\n- A. Author. JMLR 9, 1775-1822.\n\n## After",
    ],
)
def test_names_code_links_and_marked_places_pass(text):
    assert typed_numbers(text) == []


def test_line_and_word_are_told():
    text = "<!-- table g/t -->\n| 1 |\n\n<!-- end -->\n\nabout 40,000 sentences\n\n    x = 3\n\nand 7"
    assert typed_numbers(text) == [(6, "40,000"), (10, "7")]
