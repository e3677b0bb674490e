"""A check of wording, for `make lint`: phrases we do not write, and sentences that are too long.

    python -m docs.make.wording            the whole tree: pages, help, messages, docstrings and comments
    python -m docs.make.wording PATH...    some files

The phrases, with what to write instead, are lines of docs/wording.txt. Code, links and references are
left out.
"""

from __future__ import annotations

import ast
import io
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
PHRASES = ROOT / "docs" / "wording.txt"
LONGEST = 45  # words of a sentence on a page
CHECKED = (
    *("*.md", "src/*.py", "bench/*.py", "bench/papers/*.json", "docs/*.py", "native/*.hpp", "native/*.cpp"),
    *("src/*.js", "src/*.html", "Makefile", "pyproject.toml"),
)
#: What is not prose on a page: comments, code, addresses, tables of numbers, references.
NOT_PROSE = [
    re.compile(r"<!--.*?-->", re.S),
    re.compile(r"^```.*?^```", re.S | re.M),
    re.compile(r"(?<=\n\n)(?: {4}.*\n|\n(?= {4}))+"),
    re.compile(r"`[^`\n]+`"),
    re.compile(r"\]\([^)]*\)"),
    re.compile(r"^## References\n.*?(?=^## |\Z)", re.S | re.M),
]


class Piece(NamedTuple):
    """Some prose and the line where it begins."""

    line: int
    text: str


class Finding(NamedTuple):
    """Something to reword, and where."""

    path: str
    line: int
    message: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.message}"


def phrases(path: Path = PHRASES) -> list[tuple[re.Pattern[str], str]]:
    """Patterns, with what to write instead."""
    lines = path.read_text(encoding="utf-8").splitlines()
    pairs = [line.partition("\t") for line in lines if line and not line.startswith("#")]
    return [(re.compile(pattern.replace(" ", r"\s+"), re.I), advice) for pattern, _, advice in pairs]


def markdown_prose(text: str) -> Piece:
    """A page without what is not prose; lines keep their numbers."""
    for pattern in NOT_PROSE:
        text = pattern.sub(lambda match: "\n" * match[0].count("\n") or "x", text)
    return Piece(1, text)


def python_prose(text: str) -> Iterator[Piece]:
    """Docstrings (without references), messages and comments; strings without a space are names."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            yield Piece(node.lineno, node.value.partition("\nReferences\n---")[0])
    comments = [
        (token.start[0], token.string)
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type == tokenize.COMMENT
    ]
    yield from _joined(comments)


def cpp_prose(text: str) -> Iterator[Piece]:
    """Messages and comments of a C++ file; adjacent literals are one message."""
    for found in re.finditer(r'"(?:\\.|[^"\\\n])*"(?:\s*"(?:\\.|[^"\\\n])*")*', text):
        yield Piece(text.count("\n", 0, found.start()) + 1, re.sub(r'"(\s*)"', r"\1", found[0]))
    lines = enumerate(text.splitlines(), 1)
    yield from _joined((number, line.partition("//")[2]) for number, line in lines if "//" in line)


def _joined(comments: Iterable[tuple[int, str]]) -> Iterator[Piece]:
    """Comments on lines that follow each other are one text."""
    begin, lines = 0, list[str]()
    for number, comment in comments:
        if lines and number != begin + len(lines):
            yield Piece(begin, "\n".join(lines))
            lines = []
        begin = begin if lines else number
        lines.append(comment.lstrip("#/:! "))
    if lines:
        yield Piece(begin, "\n".join(lines))


def long_sentences(piece: Piece) -> Iterator[tuple[int, int]]:
    """Line and number of words of sentences above the limit, outside tables, lists being sentences."""
    for paragraph in re.finditer(r"(?:(?!\n\s*\n|\n\s*[-*|#]|\n\s*\d+\. ).)+", piece.text, re.S):
        if paragraph[0].lstrip().startswith("|"):
            continue
        for sentence in re.finditer(r"\S.*?(?:[.!?:](?=\s)|\Z)", paragraph[0], re.S):
            if (words := len(re.findall(r"\S*\w\S*", sentence[0]))) > LONGEST:
                yield piece.line + piece.text.count("\n", 0, paragraph.start() + sentence.start()), words


def prose(path: Path) -> list[Piece]:
    """The prose in a file, by its type."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        return [markdown_prose(text)]
    if path.suffix == ".py":
        return list(python_prose(text))
    if path.suffix in (".hpp", ".cpp"):
        return list(cpp_prose(text))
    return [Piece(1, text)]


def check(path: Path, avoided: list[tuple[re.Pattern[str], str]]) -> list[Finding]:
    """What to reword in a file, by line."""
    name = path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else str(path)
    found = []
    for piece in prose(path):
        for pattern, advice in avoided:
            for match in pattern.finditer(piece.text):
                line = piece.line + piece.text.count("\n", 0, match.start())
                words = " ".join(match[0].split())
                found.append(Finding(name, line, f"'{words}'" + (f": write {advice}" if advice else "")))
        if path.suffix == ".md":
            found += [Finding(name, *_too_long(*one)) for one in long_sentences(piece)]
    return sorted(found)


def _too_long(line: int, words: int) -> tuple[int, str]:
    return line, f"a sentence of {words} words: split it (at most {LONGEST})"


def tracked() -> list[Path]:
    """Files of the repository that hold prose."""
    names = subprocess.run(
        ["git", "ls-files", *CHECKED], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return [ROOT / name for name in names.stdout.splitlines() if (ROOT / name).exists()]


def main(arguments: list[str]) -> int:
    """Print what to reword in the files named, or in the whole tree; 1 if there is anything."""
    avoided = phrases()
    paths = [Path(name).resolve() for name in arguments] or tracked()
    found = [finding for path in paths for finding in check(path, avoided)]
    print(*found, sep="\n", end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
