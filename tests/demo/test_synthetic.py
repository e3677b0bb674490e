"""The built-in recipe task: repeatable, well-formed, ambiguous and noisy."""

import hashlib
from collections import Counter, defaultdict
from importlib.resources import files

import pytest

from crfit.demo import attributes, recipe_data, recipe_lines, token_class, write_columns
from crfit.demo.grammar import _inflected, _joined
from crfit.demo.vocabulary import KINDS, is_lexicalised
from crfit.errors import OptionError

TYPES = {"QTY", "UNIT", "SIZE", "NAME", "PREP", "COMMENT"}
# Of the first 1,000 lines of seed 0: equal on every platform and Python version.
DIGEST = "51cfd96b9b602ae5"


@pytest.fixture(scope="module")
def lines():
    return recipe_lines(5000, seed=3)


@pytest.fixture(scope="module")
def labels_of(lines):
    """Counts of label types by lower-cased word."""
    table = defaultdict(Counter)
    for line in lines:
        for word, label in line:
            table[word.lower()][label.partition("-")[2]] += 1
    return table


def test_lines_of_a_seed_never_change():
    text = "\n".join(f"{word} {label}" for line in recipe_lines(1000) for word, label in line)
    assert hashlib.sha256(text.encode()).hexdigest()[:16] == DIGEST


def test_shorter_data_is_the_head_of_longer_data():
    assert recipe_lines(50, seed=7) == recipe_lines(200, seed=7)[:50]


def test_seeds_differ():
    assert recipe_lines(20, seed=1) != recipe_lines(20, seed=2)


@pytest.mark.parametrize("n", [0, 1, 17])
def test_number_of_lines(n):
    assert len(recipe_lines(n)) == n


def test_negative_number_of_lines_is_refused():
    with pytest.raises(OptionError, match="n=-1"):
        recipe_lines(-1)


def test_labels_are_well_formed_iob2(lines):
    seen = set()
    for line in lines:
        previous = "O"
        for _, label in line:
            prefix, _, kind = label.partition("-")
            assert prefix in ("B", "I", "O")
            assert (kind in TYPES) != (label == "O")
            if prefix == "I":
                assert previous in (f"B-{kind}", f"I-{kind}")
            seen.add(label)
            previous = label
    assert seen == {"O"} | {f"{prefix}-{kind}" for prefix in "BI" for kind in TYPES}


def test_words_are_single_and_lines_are_not_empty(lines):
    for line in lines:
        assert 1 <= len(line) <= 40
        assert all(word and word.split() == [word] for word, _ in line)


def test_every_line_names_an_ingredient(lines):
    without = sum(not any(label.endswith("-NAME") for _, label in line) for line in lines)
    assert without < 0.01 * len(lines)


@pytest.mark.parametrize(
    ("word", "types"),
    [
        ("clove", {"UNIT", "NAME"}), ("cloves", {"UNIT", "NAME"}), ("ground", {"NAME", "PREP"}),
        ("half", {"QTY", "NAME", "UNIT"}), ("chopped", {"NAME", "PREP"}), ("or", {"", "QTY", "COMMENT"}),
        ("and", {"", "NAME", "PREP"}), ("of", {"", "NAME"}), ("small", {"SIZE", "NAME", "PREP"}),
        ("medium", {"SIZE", "UNIT"}), ("stick", {"UNIT", "NAME"}), ("packed", {"PREP", "COMMENT"}),
        ("cold", {"PREP", "NAME"}), ("cups", {"UNIT", "COMMENT"}),
    ],
)  # fmt: skip
def test_words_with_several_roles(labels_of, word, types):
    assert types <= set(labels_of[word])


def test_the_same_line_is_sometimes_labelled_in_two_ways():
    """Annotators differ: no model can be right every time. Lines that differ in numbers only count as one."""
    readings = defaultdict(Counter)
    for line in recipe_lines(20_000, seed=5):
        words = tuple("#" if token_class(word) in ("NUM", "FRAC") else word.lower() for word, _ in line)
        readings[words][tuple(label for _, label in line)] += 1
    repeated = [counts for counts in readings.values() if counts.total() > 1]
    assert 0.01 < sum(len(counts) > 1 for counts in repeated) / len(repeated) < 0.3


def test_names_have_a_long_tail(lines):
    counts = Counter(word.lower() for line in lines for word, label in line if label in ("B-NAME", "I-NAME"))
    once = sum(n == 1 for n in counts.values())
    assert once > 0.3 * len(counts)
    assert max(counts.values()) > 100
    later = [
        word.lower() for line in recipe_lines(2000, seed=4) for word, label in line if label.endswith("-NAME")
    ]
    unseen = sum(word not in counts for word in later) / len(later)
    assert 0.03 < unseen < 0.3


def test_quantities_come_in_many_forms(lines):
    quantities = {
        " ".join(word for word, label in line if label.endswith("-QTY")) for line in recipe_lines(3000)
    }
    assert {"1", "1/2", "½", "1 1/2", "1.5", "2-3", "2 to 3", "half a", "200g"} <= quantities


def test_noise_is_there(lines):
    words = [[word for word, _ in line] for line in lines]
    n = len(words)
    shouted = sum(" ".join(line).isupper() for line in words) / n
    capital = sum(any(token_class(word) == "TITLE" and len(word) > 1 for word in line) for line in words) / n
    assert 0.005 < shouted < 0.05
    assert 0.02 < capital < 0.2
    all_words = {word.lower() for line in words for word in line}
    wrong = set()
    for word in ("chopped", "minced", "tablespoon", "teaspoons", "crushed", "desired"):
        for k in range(1, len(word) - 1):
            wrong |= (
                {
                    word[:k] + word[k + 1] + word[k] + word[k + 2 :],  # swapped
                    word[:k] + word[k + 1 :],  # dropped
                    word[: k + 1] + word[k:],  # doubled
                }
                - {word}
            )
    assert len(all_words & wrong) > 10
    # A preparation right after a name, with and without a comma.
    pairs = Counter()
    for line in lines:
        for (_, first), (word, second), third in zip(line, line[1:], [*line[2:], ("", "")], strict=False):
            pairs["comma"] += first.endswith("-NAME") and word == "," and third[1] == "B-PREP"
            pairs["no comma"] += first.endswith("-NAME") and second == "B-PREP"
    assert 0.05 < pairs["no comma"] / pairs.total() < 0.4


def test_vocabulary_is_large_and_without_doubles():
    for kind in KINDS.values():
        assert len(kind.names) == len(set(kind.names)) > 1000
        assert kind.name_at(0.0) == kind.names[0]
        assert kind.name_at(1.0 - 2.0**-53) == kind.names[-1]
        assert len(kind.cumulative) == len(kind.names)


def test_some_adjectives_belong_to_the_name():
    pairs = [(a, name) for kind in KINDS.values() for a in kind.adjectives for name in kind.names[:30]]
    share = sum(is_lexicalised(*pair) for pair in pairs) / len(pairs)
    assert 0.2 < share < 0.5
    assert is_lexicalised("dried", "red onion") == is_lexicalised("dried", "onion")


@pytest.mark.parametrize(
    ("name", "plural"),
    [("onion", "onions"), ("tomato", "tomatoes"), ("bay leaf", "bay leaves"), ("water", "water"), ("x", "x")],
)
def test_plural(name, plural):
    assert _inflected(name, True) == plural
    assert _inflected(name, False) == name


def test_conventions_of_annotators():
    spans = [("QTY", "1"), ("PREP", "diced"), ("NAME", "onion"), ("", "or"), ("NAME", "leek"), ("", ",")]
    rules = [("PREP", "NAME", "NAME"), ("", "NAME", "COMMENT")]
    assert _joined(rules, spans) == [("QTY", "1"), ("NAME", "diced onion"), ("COMMENT", "or leek"), ("", ",")]
    untouched = [("", ","), ("NAME", "leek")]
    assert _joined(rules, untouched) == untouched


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("2", "NUM"), ("14.5", "NUM"), ("1/2", "FRAC"), ("½", "FRAC"), ("1½", "FRAC"), ("2-3", "RANGE"),
        ("200g", "MEASURE"), ("14-ounce", "MEASURE"), ("1/2-inch", "MEASURE"), (",", "PUNCT"), ("(", "PUNCT"),
        ("&", "PUNCT"), ("SALT", "UPPER"), ("T", "TITLE"), ("Salt", "TITLE"), ("salt", "WORD"),
        ("oz.", "WORD"),
    ],
)  # fmt: skip
def test_token_class(word, expected):
    assert token_class(word) == expected


def test_attributes_of_a_line():
    words = ["2", "(", "15", "oz", ")", "Cans", "beans", ",", "drained"]
    table = attributes(words)
    assert len(table) == len(words)
    assert all(len(item) == len(set(item)) for item in table)
    assert {"w=2", "class=NUM", "w-1=<s>", "w-2=<s>", "w+1=(", "w+2=15", "position=0"} <= set(table[0])
    assert {"w=cans", "shape=Aa", "class=TITLE", "prefix=can", "suffix=ns", "w|w+1=cans|beans"} <= set(
        table[5]
    )
    assert ["in parentheses" in item for item in table] == [False, True, True, True, True] + [False] * 4
    assert ["after comma" in item for item in table] == [False] * 8 + [True]
    assert {"w+1=</s>", "w+2=</s>", "left=0", "class+1=</s>"} <= set(table[8])
    assert attributes([]) == []


def test_recipe_data_fits_recipe_lines():
    X, y = recipe_data(30, seed=9)
    lines = recipe_lines(30, seed=9)
    assert y == [[label for _, label in line] for line in lines]
    assert [attributes([word for word, _ in line]) for line in lines] == X


def test_columns_are_written_whole(tmp_path):
    path = tmp_path / "recipe.txt"
    lines = recipe_lines(40, seed=2)
    write_columns(path, lines)
    text = path.read_bytes().decode("utf-8")
    assert "\r" not in text
    blocks = text.split("\n\n")
    assert blocks.pop() == ""
    read = [[tuple(row.split(" ")) for row in block.split("\n")] for block in blocks]
    assert read == [[(word, token_class(word), label) for word, label in line] for line in lines]
    assert list(tmp_path.iterdir()) == [path]


def test_failed_writing_leaves_nothing_behind(tmp_path):
    def broken():
        yield recipe_lines(1)[0]
        raise RuntimeError("no more lines")

    with pytest.raises(RuntimeError, match="no more lines"):
        write_columns(tmp_path / "recipe.txt", broken())
    assert list(tmp_path.iterdir()) == []


def test_template_reads_only_the_columns_that_are_written():
    template = (files("crfit") / "data" / "recipe.template").read_text(encoding="utf-8")
    rows = [row for row in template.splitlines() if row and not row.startswith("#")]
    assert "B" in rows
    names = [row.partition(":")[0] for row in rows]
    assert len(names) == len(set(names))
    columns = {macro.split(",")[1].split("]")[0] for row in rows for macro in row.split("%x[")[1:]}
    assert columns == {"0", "1"}
