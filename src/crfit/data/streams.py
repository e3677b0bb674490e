"""Text as it comes: whole sequences of a pipe as soon as they are there, and of a file block by block.

A piece is what has arrived since the last one, cut after the last sequence that is complete. Memory holds one
piece and the beginning of the next sequence, however long the input is. Labels and probabilities of a
sequence do not depend on the other sequences of its piece, so it does not matter where pieces end.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from itertools import chain, islice
from typing import NamedTuple, TypeVar

from crfit.data.text import SAMPLE_BYTES, Input
from crfit.errors import DataError
from crfit.files import BYTE_ORDER_MARK, read_blocks

__all__ = ["Piece", "Stream", "until_error"]

_Answer = TypeVar("_Answer")
#: Read at a time.
BLOCK_BYTES = 1 << 22
_WHITE = b" \t\r\n"
_TEXT = re.compile(rb"[^ \t\r\n]")


class Piece(NamedTuple):
    """Whole sequences, after `n_lines` lines of the input."""

    text: Input
    n_lines: int

    def before(self, line: int, *, by_line: bool) -> Piece:
        """The sequences before the one that has a line; lines of the piece count from 1."""
        lines = self.text.data.split(b"\n")[: line - 1]
        while not by_line and lines and lines[-1].strip(_WHITE):
            lines.pop()
        data = b"".join(line + b"\n" for line in lines)
        return Piece(Input(self.text.name, data), self.n_lines)


class Stream:
    """A file, or standard input (None or ``-``), that is read as it comes, decompressed on the way.

    `block_bytes` are read at a time. `piped`: whether it can be read only once.
    """

    def __init__(self, path: str | os.PathLike[str] | None, block_bytes: int | None = None) -> None:
        self.name, self._blocks = read_blocks(path, block_bytes or BLOCK_BYTES)
        self.piped = not os.path.isfile(self.name)

    def sample(self, *, by_line: bool = False) -> Input:
        """The beginning of the text, which tells its format: of a pipe the first sequence or JSON object.

        With `by_line` a line is enough. The first line is always complete.
        """
        seen, data, end_of_line = list[bytes](), bytearray(), -1
        for block in self._blocks:
            seen.append(block)
            data += block
            if self.piped and (end := _first_end(data, by_line)) is not None:
                data = data[:end]
                break
            if end_of_line < 0:
                end_of_line = data.find(b"\n", len(data) - len(block))
            if len(data) > SAMPLE_BYTES and end_of_line >= 0:
                break
        self._blocks = chain(seen, self._blocks)
        return Input(self.name, bytes(data[: max(SAMPLE_BYTES, end_of_line) + 1]))

    def pieces(self, *, by_line: bool, at_least: Callable[[], int] = lambda: 0) -> Iterator[Piece]:
        """Yield whole sequences as soon as they are there, or one empty piece if the text has no sequence.

        With `by_line` each line is a sequence, as in JSON lines. Otherwise a blank line ends one. Pieces have
        ``at_least()`` bytes, called before each; the last one has what is left.
        """
        n_lines, found = 0, False
        for data in self._cut(by_line, at_least):
            if _TEXT.search(data.removeprefix(BYTE_ORDER_MARK) if n_lines == 0 else data):
                found = True
                if data.startswith(BYTE_ORDER_MARK) and n_lines:
                    data, n_lines = b"\n" + data, n_lines - 1  # a mark only at the start of the text
                yield Piece(Input(self.name, data), n_lines)
            n_lines += data.count(b"\n")
        if not found:
            yield Piece(Input(self.name, b""), 0)

    def _cut(self, by_line: bool, at_least: Callable[[], int]) -> Iterator[bytes]:
        """Blocks that end where a sequence does."""
        parts, size, blank = list[bytes](), 0, True
        for block in self._blocks:
            end = block.rfind(b"\n") + 1 if by_line else _last_end(block, blank)
            if end > 0 and size + end >= at_least():
                yield b"".join([*parts, block[:end]])
                parts, size = [], 0
            else:
                end = 0
            parts.append(block[end:])
            size += len(parts[-1])
            # Whether the line that the next block continues is blank so far.
            start = block.rfind(b"\n") + 1
            blank = not block[start:].strip(_WHITE) and (blank or start > 0)
        yield b"".join(parts)


def _last_end(block: bytes, blank: bool) -> int:
    """The end of the last blank line, or 0; `blank` tells whether what comes before the block is white."""
    end = block.rfind(b"\n")
    while end >= 0:
        start = block.rfind(b"\n", 0, end)
        if not block[start + 1 : end].strip(_WHITE) and (start >= 0 or blank):
            return end + 1
        end = start
    return 0


def _first_end(data: bytes | bytearray, by_line: bool) -> int | None:
    """The end of the first JSON object on a line of its own, or of the lines up to a blank one."""
    start = 0
    seen = False
    while (end := data.find(b"\n", start)) >= 0:
        line = data[start:end].removeprefix(BYTE_ORDER_MARK).strip(_WHITE)
        start = end + 1
        if line.startswith(b"{") or (line and by_line) or (seen and not line):
            return start
        seen = seen or bool(line)
    return None


def until_error(
    piece: Piece, answer: Callable[[Piece], Iterator[_Answer]], *, by_line: bool
) -> Iterator[_Answer]:
    """Yield the answers to all sequences before the first wrong one, then raise its error.

    `answer` yields one answer for each sequence of a piece. The error names the line of the whole input.
    """
    n_answered = 0
    try:
        for one in answer(piece):
            n_answered += 1
            yield one
    except DataError as error:
        if error.line is None:
            raise
        before = piece.before(error.line, by_line=by_line)
        if before.text.data.strip(_WHITE):
            yield from islice(until_error(before, answer, by_line=by_line), n_answered, None)
        raise DataError(error.message, file=error.file, line=piece.n_lines + error.line) from None
