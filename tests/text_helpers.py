"""What the tests of the text readers share: short ways to read, and datasets as plain Python lists."""

import numpy as np

from crfit.data.templates import Template
from crfit.data.text import Input

TEMPLATE = Template("U0:%x[0,0]\nU1:%x[-1,0]/%x[1,1]\nB\nB0:%x[0,1]\n")
WORD = Template("U0:%x[0,0]\nB\n")


def bag(data):
    return Input("input", data if isinstance(data, bytes) else data.encode("utf-8", "surrogateescape"))


def attributes(dataset):
    """Attributes of each position of each sequence as (name, value) pairs."""
    names = dataset.attribute_alphabet.strings()
    values = np.ones(len(dataset.attr_ids)) if dataset.attr_values is None else dataset.attr_values
    occurrences = [(names[i], v) for i, v in zip(dataset.attr_ids, values, strict=True)]
    positions = [occurrences[a:b] for a, b in pairs(dataset.attr_ptr)]
    return [positions[a:b] for a, b in pairs(dataset.seq_ptr)]


def labels(dataset):
    names = dataset.label_alphabet.strings()
    return [[names[i] for i in dataset.labels[a:b]] for a, b in pairs(dataset.seq_ptr)]


def pairs(ptr):
    return zip(ptr[:-1].tolist(), ptr[1:].tolist(), strict=True)


def names_only(dataset):
    return [[[name for name, _ in position] for position in sequence] for sequence in attributes(dataset)]


def same(a, b):
    """The same arrays and alphabets."""
    arrays = ["seq_ptr", "attr_ptr", "attr_ids", "attr_values", "labels", "edge_ptr", "edge_ids"]
    for name in [*arrays, "sequence_weights", "line_numbers"]:
        mine, other = getattr(a, name), getattr(b, name)
        assert (mine is None) == (other is None), name
        if mine is not None:
            assert mine.dtype == other.dtype
            np.testing.assert_array_equal(mine, other, err_msg=name)
    for name in ("attribute_alphabet", "label_alphabet", "edge_alphabet"):
        assert getattr(a, name) == getattr(b, name)


def random_columns(n_sequences, seed=0, n_words=2000):
    rng = np.random.default_rng(seed)
    return [
        [
            (f"w{rng.zipf(1.3) % n_words}", f"T{rng.integers(9)}", f"L{rng.integers(5)}")
            for _ in range(rng.integers(1, 12))
        ]
        for _ in range(n_sequences)
    ]


def write_columns(sequences, separator=" ", end="\n"):
    return "".join("".join(separator.join(row) + end for row in rows) + end for rows in sequences)
