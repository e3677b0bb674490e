"""Shards hold the data that `crfit.text.read` reads, whatever their size and the number of threads."""

import json
import os
import signal
import subprocess
import sys

import numpy as np
import pytest

from crfit import demo
from crfit.data import Dataset, indexing
from crfit.data import text as text_module
from crfit.data.alphabet import Alphabet, Numbers
from crfit.data.indexing import index_files
from crfit.data.label_sets import hide_labels
from crfit.data.shards import INDEX, Shards, shard_path
from crfit.data.templates import Template
from crfit.errors import CrfitWarning, DataError, OptionError
from crfit.features import Features
from text_helpers import TEMPLATE, random_columns, same, write_columns


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """Small files are cut into many shards."""
    monkeypatch.setattr(indexing, "BLOCK_BYTES", 300)


def write(path, data):
    path.write_text(data, encoding="utf-8")
    return path


@pytest.fixture
def columns(tmp_path):
    """Three column files of random rows."""
    return [
        write(tmp_path / f"{seed}.txt", write_columns(random_columns(40, seed, n_words=60)))
        for seed in range(3)
    ]


def check_same(shards, read):
    whole = shards.whole()
    same(whole, read)
    sets = whole.label_sets
    assert (sets is None) == (read.label_sets is None)
    if sets is not None:
        np.testing.assert_array_equal(sets.by_position(), read.label_sets.by_position())
    assert whole.plain_transitions == read.plain_transitions
    assert (whole.n_columns, whole.source) == (read.n_columns, read.source)
    assert whole.features == read.features
    assert sum(size.n_sequences for size in shards.sizes) == read.n_sequences
    assert shards.n_tokens == read.n_tokens


@pytest.mark.parametrize("min_count", [0, 3])
@pytest.mark.parametrize("n_threads", [1, 3])
def test_column_files(columns, tmp_path, min_count, n_threads):
    shards = index_files(
        columns, tmp_path / "shards", template=TEMPLATE, min_count=min_count, shard_bytes=9000,
        n_threads=n_threads,
    )  # fmt: skip
    read = text_module.read(columns, template=TEMPLATE)
    assert read.prune(3).n_attributes < read.n_attributes
    assert read.edge_ptr is not None
    assert shards.n_shards > 3
    check_same(shards, read.prune(min_count))
    assert shards.template == TEMPLATE
    assert (shards.min_count, shards.input_format) == (min_count, "columns")


def test_the_number_of_threads_does_not_change_a_byte(columns, tmp_path):
    for n_threads in (1, 3):
        index_files(columns, tmp_path / str(n_threads), shard_bytes=9000, n_threads=n_threads)
    one, three = tmp_path / "1", tmp_path / "3"
    assert sorted(os.listdir(one)) == sorted(os.listdir(three))
    for name in os.listdir(one):
        assert (one / name).read_bytes() == (three / name).read_bytes()


def test_without_a_template(columns, tmp_path):
    shards = index_files(columns, tmp_path / "shards", shard_bytes=9000)
    check_same(shards, text_module.read(columns))


def test_crfsuite_attributes_with_values_and_weights_in_some_shards(tmp_path):
    rows = ["a\tx=1\ty=2", "b\tx=2\tz:1", ""] * 100 + ["@weight:2.5\ta\tx=1:0.5\tnew", "b\tx=3", ""] * 50
    path = write(tmp_path / "train.crfsuite", "\n".join(rows) + "\n")
    shards = index_files(path, tmp_path / "shards", shard_bytes=3000)
    assert shards.load(0).dataset.attr_values is None
    assert shards.load(0).dataset.sequence_weights is None
    check_same(shards, text_module.read(path))


def test_json_lines_with_unknown_labels_also_before_any_is_known(tmp_path):
    unknown = json.dumps({"tokens": [["a"], ["b"]], "labels": [None, None]})
    known = json.dumps({"tokens": [["a"], ["c"]], "labels": ["X", None]})
    other = json.dumps({"tokens": [["a"], ["c"]], "labels": ["X", "Y"]})
    path = write(tmp_path / "train.jsonl", "\n".join([unknown] * 30 + [known] * 30 + [other] * 30))
    shards = index_files(path, tmp_path / "shards", shard_bytes=1500)
    assert shards.n_shards == 4
    check_same(shards, text_module.read(path))


def test_labels_that_mark_sets(tmp_path):
    rows = [[("w1", "X"), ("w2", "?")]] * 40 + [[("w1", "X|Y"), ("w3", "Z")]] * 40
    path = write(tmp_path / "train.txt", write_columns(rows))
    template = Template("U:%x[0,0]\nB\n")
    shards = index_files(
        path, tmp_path / "shards", template=template, missing="?", label_separator="|", shard_bytes=2000
    )
    assert shards.n_shards > 1
    read = hide_labels(text_module.read(path, template=template), "?", "|")
    assert shards.label_alphabet.strings() == ["X", "Z", "Y"]
    check_same(shards, read)


def test_features_and_tokens_of_annotation_tools(tmp_path):
    lines = [
        json.dumps({"text": f"take {i} cups now", "label": [[5, 5 + len(str(i)), "NUM"]]}) for i in range(60)
    ]
    path = write(tmp_path / "train.jsonl", "\n".join(lines) + "\n")
    features = Features.parse("lower\nsuffix 2\n", "test")
    for own in (features, None):
        shards = index_files(path, tmp_path / "shards", features=own, shard_bytes=1500, overwrite=True)
        assert shards.n_shards > 2
        sources, format = indexing.annotated.readable(text_module.load(path), features=own is not None)
        read = text_module.read(sources, format=format, features=own)
        whole = shards.whole()
        assert shards.input_format == format
        assert whole.attribute_alphabet == read.attribute_alphabet
        np.testing.assert_array_equal(whole.attr_ids, read.attr_ids)
        np.testing.assert_array_equal(whole.labels, read.labels)
        assert whole.features == own


def test_a_list_of_tasks_is_one_shard(tmp_path):
    tasks = [
        {"data": {"text": f"{i} cups"}, "annotations": [{"result": [{"value": {"start": 0, "end": 1,
         "labels": ["NUM"]}}]}]} for i in range(9)
    ]  # fmt: skip
    path = write(tmp_path / "export.json", json.dumps(tasks * 100))  # longer than its sample
    shards = index_files(path, tmp_path / "shards", shard_bytes=10)
    assert (shards.n_shards, shards.n_sequences) == (1, 900)


def test_a_shard_has_ids_of_its_own_and_no_names(columns, tmp_path):
    shards = index_files(columns, tmp_path / "shards", template=TEMPLATE, shard_bytes=9000)
    read = text_module.read(columns, template=TEMPLATE)
    first = 0
    for i in range(shards.n_shards):
        data, attributes, edges = shards.load(i)
        part = read.subset(np.arange(first, first + data.n_sequences))
        first += data.n_sequences
        np.testing.assert_array_equal(attributes[data.attr_ids], part.attr_ids)
        np.testing.assert_array_equal(edges[data.edge_ids], part.edge_ids)
        np.testing.assert_array_equal(np.unique(data.attr_ids), np.arange(len(attributes)))
        assert (np.diff(attributes) > 0).all()
        assert isinstance(data.attribute_alphabet, Numbers)
        assert data.label_alphabet == read.label_alphabet
        np.testing.assert_array_equal(data.line_numbers, part.line_numbers)


def test_shards_in_memory_are_those_of_the_dataset(columns):
    read = text_module.read(columns, template=TEMPLATE)
    shards = Shards.of(read, 5)
    assert shards.n_shards == 5
    assert shards.whole() is read
    same(indexing.Dataset(**vars(read)), read)
    parts = [shards.load(i) for i in range(5)]
    ids = np.concatenate([attributes[data.attr_ids] for data, attributes, _ in parts])
    np.testing.assert_array_equal(ids, read.attr_ids)
    with pytest.raises(OptionError, match="5 shards"):
        shards.load(5)
    assert Shards.of(read, 10**4).n_shards <= read.n_sequences


def test_numbers_are_an_alphabet_of_their_decimal_digits():
    numbers = Numbers(12)
    assert len(numbers) == 12
    assert numbers == Numbers(12)
    assert numbers != Numbers(11)
    assert numbers == Alphabet(map(str, range(12)))
    assert numbers[11] == "11"
    assert numbers.get("7") == 7
    assert numbers.get("07") == -1


def test_errors_name_the_file_and_line(columns, tmp_path):
    lines = columns[1].read_text().split("\n")
    at = next(i for i in range(len(lines) // 2, len(lines)) if lines[i])
    lines[at] = "only two"
    columns[1].write_text("\n".join(lines))
    with pytest.raises(DataError, match=f"1.txt:{at + 1}: 2 columns where the first row has 3"):
        index_files(columns, tmp_path / "shards", shard_bytes=5000)
    assert not (tmp_path / "shards").exists()
    assert not list(tmp_path.glob(".crfit*"))


def test_files_with_other_columns_are_refused_at_their_first_row(tmp_path):
    one = write(tmp_path / "a.txt", "a b X\n\n" * 100)
    other = write(tmp_path / "b.txt", "\n\na X\n\n" * 100)
    for size in (10, 10**6):
        with pytest.raises(DataError, match=r"b\.txt:3: 2 columns where the first row has 3"):
            index_files([one, other], tmp_path / "shards", shard_bytes=size)


def test_files_of_different_formats_are_refused(columns, tmp_path):
    other = write(tmp_path / "b.jsonl", json.dumps({"tokens": [["a"]], "labels": ["X"]}) + "\n")
    with pytest.raises(DataError, match=r"b\.jsonl: looks like jsonl, but .*0\.txt like columns"):
        index_files([columns[0], other], tmp_path / "shards")
    with pytest.raises(OptionError, match="leave out the template"):
        index_files(columns, tmp_path / "shards", template=TEMPLATE, features="default")


def test_an_empty_file_is_an_error(columns, tmp_path):
    empty = write(tmp_path / "empty.txt", "\n \n")
    with pytest.raises(DataError, match=r"empty\.txt: the file is empty"):
        index_files([columns[0], empty], tmp_path / "shards", shard_bytes=5000)


def test_min_count_beyond_all_warns(columns, tmp_path):
    with pytest.warns(CrfitWarning, match="no attribute occurs that often"):
        shards = index_files(columns, tmp_path / "shards", min_count=10**6)
    assert shards.n_attributes == 0
    assert shards.whole().n_tokens == shards.n_tokens


def test_the_working_folder_is_not_replaced(columns, tmp_path, monkeypatch):
    folder = tmp_path / "here"
    (folder / "below").mkdir(parents=True)
    for place, target in ((folder, "."), (folder / "below", "..")):
        monkeypatch.chdir(place)
        with pytest.raises(OptionError, match="is the working folder, or one above it"):
            index_files(columns[0], target, overwrite=True)
    assert place.is_dir()


def test_a_folder_with_other_files_is_left_alone(columns, tmp_path):
    folder = tmp_path / "mine"
    folder.mkdir()
    index_files(columns[0], folder)
    with pytest.raises(OptionError, match="has an index already"):
        index_files(columns[0], folder)
    before = Shards.open(folder).n_tokens
    assert index_files(columns, folder, overwrite=True).n_tokens > before
    write(folder / "notes.txt", "mine")
    with pytest.raises(OptionError, match=r"also has notes.txt"):
        index_files(columns[0], folder, overwrite=True)
    (folder / "notes.txt").unlink()
    (folder / "shard-00009").mkdir()  # no shard
    with pytest.raises(OptionError, match=r"also has shard-00009"):
        index_files(columns[0], folder, overwrite=True)
    other = tmp_path / "other"
    other.mkdir()
    write(other / "notes.txt", "mine")
    with pytest.raises(OptionError, match="has other files"):
        index_files(columns[0], other, overwrite=True)
    with pytest.raises(OptionError, match="is a file"):
        index_files(columns[0], other / "notes.txt")


def test_missing_and_damaged_shards_are_errors_that_name_the_file(columns, tmp_path):
    folder = tmp_path / "shards"
    shards = index_files(columns, folder, shard_bytes=9000)
    second = shard_path(folder, 1)
    good = second.read_bytes()

    def damaged(data, match):
        second.write_bytes(data)
        with pytest.raises(DataError, match=match) as caught:
            Shards.open(folder).load(1)
        assert "shard-00001" in str(caught.value)

    damaged(good[:-5], "truncated")
    damaged(good[:-5] + b"x" + good[-4:], "checksum")
    damaged(shard_path(folder, 0).read_bytes(), "another file")
    damaged(b"", "bytes")
    # A shard that changes after its first load is checked again.
    second.write_bytes(good)
    opened = Shards.open(folder)
    opened.load(1)
    second.write_bytes(good[:-5] + b"x" + good[-4:])
    os.utime(second, ns=(1, 1))
    with pytest.raises(DataError, match="checksum"):
        opened.load(1)
    second.unlink()
    with pytest.raises(DataError, match="shard-00001: is missing"):
        shards.load(1)
    (folder / INDEX).write_bytes(b"\0" * 100)
    with pytest.raises(DataError, match=INDEX):
        Shards.open(folder)
    with pytest.raises(DataError, match="is not a folder that crfit index wrote"):
        Shards.open(tmp_path / "nothing")
    with pytest.raises(DataError, match="there is no index in this folder"):
        Shards.open(tmp_path)


def test_every_altered_byte_of_an_index_is_found(columns, tmp_path):
    folder = tmp_path / "shards"
    index_files(columns[0], folder)
    path = folder / INDEX
    good = path.read_bytes()
    for at in np.random.default_rng(0).integers(0, len(good), 60):
        path.write_bytes(good[:at] + bytes([good[at] ^ 1]) + good[at + 1 :])
        with pytest.raises(DataError):
            Shards.open(folder)


def test_a_killed_index_leaves_nothing_half_and_the_next_one_cleans_up(tmp_path):
    folder = tmp_path / "shards"
    path = tmp_path / "train.txt"
    demo.write_columns(path, demo.recipe_lines(500))
    code = (
        "import sys, os\nfrom crfit.data import indexing\nindexing.BLOCK_BYTES = 300\n"
        "def tell(indexed):\n    print(indexed.n_read, flush=True)\n"
        f"while True:\n    indexing.index_files({str(path)!r}, {str(folder)!r}, shard_bytes=9000, "
        "callback=tell, overwrite=True)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    for _ in range(8):
        process.stdout.readline()
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    assert not folder.exists() or Shards.open(folder).whole().n_sequences == 500
    index_files(path, folder, overwrite=True)
    assert Shards.open(folder).whole().n_sequences == 500
    assert sorted(os.listdir(tmp_path)) == ["shards", "train.txt"]


def test_a_dataset_file_is_no_shard(tmp_path, columns):
    folder = tmp_path / "shards"
    index_files(columns[0], folder)
    text_module.read(columns[0]).save(shard_path(folder, 0))
    with pytest.raises(DataError, match="crfit-dataset file, not a shard"):
        Shards.open(folder).load(0)
    with pytest.raises(DataError, match="not a dataset"):
        Dataset.load(folder / INDEX)
