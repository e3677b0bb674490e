"""Built-in data: labelled recipe ingredient lines, generated in any number from a seed.

    2    ( 14.5 oz ) cans  diced tomatoes  ,  drained
    QTY  O SIZE    O UNIT  NAME            O  PREP

The labels are IOB2 over QTY, UNIT, SIZE, NAME, PREP and COMMENT. The task can be learned well but not
perfectly: words like "clove", "ground" or "half" have several roles; whether an adjective belongs to the name
depends on the pair; names have a long tail; there are typos, missing commas and odd capitals; and annotators
follow different conventions and make mistakes.

Only ``Random.random`` is used, whose sequence is the same in every Python version: a seed gives the same
lines everywhere, and the first n lines do not depend on how many are generated.
"""

import os
from collections.abc import Iterable, Sequence
from random import Random

from crfit.demo.grammar import Line, LineWriter
from crfit.errors import OptionError
from crfit.files import replacing

_FRACTION_SIGNS = frozenset("½¼¾⅓⅔⅛")


def recipe_lines(n: int, seed: int = 0) -> list[Line]:
    """Generate labelled ingredient lines.

    Parameters
    ----------
    n : int
        Number of lines.
    seed : int
        Random seed. Different seeds give different lines with the same grammar and vocabulary.

    Returns
    -------
    list of list of (str, str)
        The words of each line with their IOB2 labels.

    Examples
    --------
    >>> len(recipe_lines(3)), recipe_lines(3) == recipe_lines(5)[:3]
    (3, True)
    """
    if n < 0:
        raise OptionError("n", n, "give a number of lines, 0 or more")
    writer = LineWriter(Random(seed).random)
    return [writer.line() for _ in range(n)]


def recipe_data(n: int, seed: int = 0) -> tuple[list[list[list[str]]], list[list[str]]]:
    """Generate X and y for `crfit.CRF`: the attributes of each word of each line, and the labels.

    Parameters
    ----------
    n : int
        Number of lines.
    seed : int
        Random seed, as in `recipe_lines`.
    """
    lines = recipe_lines(n, seed)
    X = [attributes([word for word, _ in line]) for line in lines]
    return X, [[label for _, label in line] for line in lines]


def token_class(word: str) -> str:
    """Return the coarse class of a word: NUM, FRAC, RANGE, MEASURE, PUNCT, UPPER, TITLE or WORD.

    ``MEASURE`` is a number and letters in one word, like ``200g`` or ``14-ounce``.
    """
    if not any(letter.isalnum() for letter in word):
        return "PUNCT"
    if word[0].isdigit() or word[0] in _FRACTION_SIGNS:
        if any(letter.isalpha() for letter in word):
            return "MEASURE"
        if "/" in word or word[-1] in _FRACTION_SIGNS:
            return "FRAC"
        return "RANGE" if "-" in word else "NUM"
    if word.isupper() and len(word) > 1:
        return "UPPER"
    return "TITLE" if word[0].isupper() else "WORD"


def _shape(word: str) -> str:
    """Upper-case letters, lower-case letters and digits as A, a and 0; runs shortened to one."""
    shape = ""
    for letter in word:
        sign = "A" if letter.isupper() else "a" if letter.islower() else "0" if letter.isdigit() else letter
        if not shape.endswith(sign):
            shape += sign
    return shape


def attributes(words: Sequence[str]) -> list[list[str]]:
    """Return the attributes of each word of a line: the word, its form, its neighbours and its position."""
    lower = ["<s>", "<s>", *(word.lower() for word in words), "</s>", "</s>"]
    classes = ["<s>", *(token_class(word) for word in words), "</s>"]
    n_open = n_commas = 0
    table = []
    for t, word in enumerate(words):
        before2, before, this, after, after2 = lower[t : t + 5]
        n_open += (this == "(") - (before == ")")
        n_commas += before == ","
        item = [
            "bias",
            f"w={this}",
            f"shape={_shape(word)}",
            f"class={classes[t + 1]}",
            f"w-2={before2}",
            f"w-1={before}",
            f"w+1={after}",
            f"w+2={after2}",
            f"w-1|w={before}|{this}",
            f"w|w+1={this}|{after}",
            f"class-1={classes[t]}",
            f"class+1={classes[t + 2]}",
            f"class-1|class={classes[t]}|{classes[t + 1]}",
            f"class|class+1={classes[t + 1]}|{classes[t + 2]}",
            f"position={min(t, 5)}",
            f"left={min(len(words) - 1 - t, 3)}",
        ]
        item += [f"prefix={this[:k]}" for k in (2, 3) if len(this) > k]
        item += [f"suffix={this[-k:]}" for k in (1, 2, 3, 4) if len(this) > k]
        if n_open:
            item.append("in parentheses")
        if n_commas:
            item.append("after comma")
        table.append(item)
    return table


def write_columns(path: str | os.PathLike[str], lines: Iterable[Line]) -> None:
    """Write a column file with word, token class and label, for the template ``recipe.template``.

    Parameters
    ----------
    path : path-like
        File to write, UTF-8.
    lines : iterable of list of (str, str)
        Words and labels, as from `recipe_lines`.
    """
    with replacing(path) as unfinished, unfinished.open("w", encoding="utf-8", newline="\n") as file:
        for line in lines:
            file.writelines(f"{word} {token_class(word)} {label}\n" for word, label in line)
            file.write("\n")
