"""Read text into shards (`crfit.data.shards`): memory for the alphabet and one shard for each thread.

    1  The text is cut into runs of whole sequences, each about one shard. Threads parse them; each run has
       alphabets of its own, which are merged in the order of the text. So ids follow the order of first
       appearance as in `crfit.data.text.read`, and counts of attributes are exact over all runs.
    2  With all counts and labels known, each run is written as a shard, without the rare attributes.

The folder is written under another name and renamed at the end, so that it is complete or not there.
"""

from __future__ import annotations

import os
import re
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, TypeVar, get_args

import numpy as np
from numpy.typing import NDArray

from crfit import _native
from crfit.checks import check_number, check_whole_number, keep
from crfit.data import annotated, tensor_file
from crfit.data.alphabet import Alphabet, Numbers
from crfit.data.dataset import ALPHABETS, Dataset
from crfit.data.label_sets import fill_unknown, hide_labels
from crfit.data.shards import (
    INDEX,
    FolderShards,
    Shard,
    Shards,
    ShardSize,
    is_index,
    shard_path,
    size_of,
    write_index,
    write_shard,
)
from crfit.data.streams import Piece, Stream
from crfit.data.templates import Template, load_template
from crfit.data.tensor_file import FileKind
from crfit.data.text import (
    Format,
    Input,
    PathLike,
    column_template,
    columns_to_require,
    common_format,
    detect_one,
    parsed,
)
from crfit.errors import CrfitWarning, DataError, ModelFileError, OptionError
from crfit.features.feature_set import Features, FeaturesOption, as_features
from crfit.files import check_folder_name, replacing_folder, unwritable_folder
from crfit.threads import resolve_threads

_In = TypeVar("_In")
_Out = TypeVar("_Out")

#: Default size of a shard.
SHARD_BYTES = 64_000_000
#: Read at a time.
BLOCK_BYTES = 1 << 16
#: Bytes of arrays for a byte of text, where the beginning of the text does not tell.
USUAL_GROWTH = 8.0

_RUN = FileKind("crfit-run", 1, "run", "crfit index")


class Indexed(NamedTuple):
    """How far it is: bytes of text, sequences and positions, shards that were read and those written."""

    n_bytes: int
    n_sequences: int
    n_tokens: int
    n_read: int
    n_written: int


_Callback: TypeAlias = Callable[[Indexed], object]


@dataclass(frozen=True)
class Reading:
    """How text becomes attributes: what all files have in common."""

    format: Format
    template: Template | None
    features: Features | None
    converted: frozenset[str]  # names of files of annotation tools
    missing: str | None = None
    label_separator: str | None = None

    def by_line(self, name: str) -> bool:
        """Whether each line of a file is a sequence."""
        return self.format == "jsonl" or name in self.converted

    def text(self, piece: Piece) -> Input:
        """A piece in the format of all."""
        if piece.text.name not in self.converted:
            return piece.text
        convert = annotated.as_json_lines if self.format == "jsonl" else annotated.as_columns
        try:
            return convert(piece.text) or piece.text
        except DataError as error:
            if error.line is None:
                raise
            raise DataError(error.message, file=error.file, line=piece.n_lines + error.line) from None


@dataclass
class _Run:
    """Sequences that become one shard: their own alphabets, counts of their attributes and edges."""

    alphabets: list[_native.Alphabet]
    counts: list[NDArray[np.int64]]
    n_sequences: int
    n_tokens: int


@dataclass
class _Whole:
    """The alphabets of all runs so far, and at how many positions each attribute and edge attribute is."""

    alphabets: list[Alphabet] = field(default_factory=lambda: [Alphabet() for _ in ALPHABETS])
    counts: list[NDArray[np.int64]] = field(default_factory=lambda: [np.zeros(0, np.int64) for _ in range(2)])

    def add(self, run: _Run) -> list[NDArray[np.int32]]:
        """Add a run; return the id in the whole of each string of its alphabets."""
        found = [
            whole.native.add_all(*part.arrays())
            for whole, part in zip(self.alphabets, run.alphabets, strict=True)
        ]
        for k, (ids, counts) in enumerate(zip((found[0], found[2]), run.counts, strict=True)):
            n, there = len(self.alphabets[2 * k]), self.counts[k]
            if n > len(there):
                self.counts[k] = np.zeros(max(n, 2 * len(there)), np.int64)
                self.counts[k][: len(there)] = there
            self.counts[k][ids] += counts
        return found


def index_files(
    paths: PathLike | Sequence[PathLike],
    folder: str | os.PathLike[str],
    *,
    format: Format | None = None,
    template: Template | str | os.PathLike[str] | None = None,
    features: FeaturesOption = None,
    min_count: int = 0,
    missing: str | None = None,
    label_separator: str | None = None,
    shard_bytes: float = SHARD_BYTES,
    n_threads: int | None = None,
    overwrite: bool = False,
    callback: _Callback | None = None,
) -> FolderShards:
    """Read labelled text files into a folder of shards, for data that does not fit into memory.

    Training on the shards gives the same model as training on the files.

    Parameters
    ----------
    paths : path, or a sequence of paths
        Column files, CRFsuite attributes, JSON lines, or JSON lines of annotation tools, compressed or not; -
        is standard input.
    folder : path
        Where to write the shards. A folder that is there already must be empty, or an index and `overwrite`.
    format, template, features
        As in `crfit.text.read`.
    min_count : int, default=0
        Drop attributes that occur at fewer positions than this in all files together.
    missing, label_separator : str, optional
        Labels that stand for unknown ones, see `crfit.data.label_sets.hide_labels`.
    shard_bytes : float, default=64e6
        About how large a shard is. Reading takes several times as much memory for each thread.
    n_threads : int, optional
        Number of threads; None uses all cores. The result does not depend on it.
    overwrite : bool, default=False
        Whether to replace an index.
    callback : callable, optional
        Called with an `Indexed` after each shard.

    Returns
    -------
    FolderShards
        The shards that were written.

    Raises
    ------
    DataError
        A file cannot be read or is invalid; the message names the file and line.
    OptionError
        An option is invalid, or the folder cannot be written.
    """
    check_whole_number("min_count", min_count, at_least=0)
    check_number("shard_bytes", shard_bytes, at_least=1.0)
    check_target(folder, overwrite)
    names = [paths] if paths is None or isinstance(paths, str | os.PathLike) else list(paths)
    if not names:
        raise OptionError("paths", names, "give at least one file, or - for standard input")
    if isinstance(template, str | os.PathLike):
        template = load_template(template)
    begun, first = _begin(names)
    reading = _reading(begun, first, format, template, as_features(features), missing, label_separator)
    source = ", ".join(one.name for one in begun)
    size = max(1.0, float(shard_bytes) / _growth(first, reading))
    n_threads = resolve_threads(n_threads)
    try:
        with replacing_folder(folder) as unfinished:
            work = _Indexing(unfinished, reading, source, n_threads, callback or (lambda indexed: None))
            work.write(_runs(begun, reading, size), int(min_count))
    except ModelFileError as error:
        raise DataError(str(error)) from None
    except OSError as error:
        raise unwritable_folder(os.fspath(folder), "an index", error.strerror or str(error)) from None
    return Shards.open(folder)


def check_target(folder: str | os.PathLike[str], overwrite: bool) -> None:
    """Raise OptionError if a folder is not writable or would lose files; creates nothing."""
    name = check_folder_name(folder, "an index")
    there = os.listdir(name) if os.path.isdir(name) else []
    if os.path.isdir(name) and Path(os.path.realpath(os.curdir)).is_relative_to(os.path.realpath(name)):
        remedy = "is the working folder, or one above it, and would be replaced: go to another folder first"
        raise OptionError("out", name, remedy)
    if not there:
        return
    if not is_index(name):
        raise OptionError("out", name, "this folder has other files: name another folder")
    others = [one for one in there if not _is_ours(Path(name, one))]
    if others:
        raise OptionError("out", name, f"this folder also has {min(others)}: name another folder")
    if not overwrite:
        raise OptionError(
            "out",
            name,
            "has an index already: replace it with --overwrite (overwrite=True), or name another folder",
        )


def _is_ours(path: Path) -> bool:
    return path.is_file() and (path.name == INDEX or re.fullmatch(r"shard-\d{5,}", path.name) is not None)


class _Begun(NamedTuple):
    """A file, its stream if it can be read only once, and what its beginning looks like."""

    path: PathLike
    stream: Stream | None
    name: str
    format: Format
    annotated: bool  # by a tool
    is_list: bool  # which cannot be cut


def _begin(paths: Sequence[PathLike]) -> tuple[list[_Begun], Input]:
    """Open all files; also the beginning of the first."""
    begun, first = list[_Begun](), Input("", b"")
    for path in paths:
        stream = Stream(path, BLOCK_BYTES)
        sample = stream.sample()
        first = first if begun else sample
        looks = detect_one(sample), annotated.recognised(sample), annotated.is_list(sample)
        begun.append(_Begun(path, stream if stream.piped else None, sample.name, *looks))
    return begun, first


def _reading(
    begun: Sequence[_Begun],
    first: Input,
    format: Format | None,
    template: Template | None,
    features: Features | None,
    missing: str | None,
    label_separator: str | None,
) -> Reading:
    """How to read the files, as `crfit train` would; `first` is the beginning of the first one."""
    if template is not None and features is not None:
        raise OptionError("features", "given", "make the attributes: leave out the template")
    if format is not None and format not in get_args(Format):
        raise OptionError("format", format, f"choose {', '.join(get_args(Format))}")
    converted = frozenset(one.name for one in begun if one.annotated)
    if converted:
        format = "jsonl" if features is not None and all(one.annotated for one in begun) else "columns"
    elif format is None:
        looks = [(one.name, one.format) for one in begun]
        format = "columns" if template is not None else common_format(looks)
    if template is not None and format != "columns":
        raise OptionError("template", template.name, f"templates work only with column files, not {format}")
    if features is not None and format == "crfsuite":
        message = "looks like CRFsuite attributes, but features need tokens: give columns or JSON lines"
        raise DataError(message, file=begun[0].name)
    if template is None and features is None and format == "columns":
        # Annotated texts become a column of tokens and one of labels.
        template = column_template([Input(first.name, b"token label") if begun[0].annotated else first])
    return Reading(format, template, features, converted, missing, label_separator)


def _growth(sample: Input, reading: Reading) -> float:
    """Bytes of arrays for a byte of text, from the beginning of a file."""
    by_line = reading.by_line(sample.name)
    end = sample.data.rfind(b"\n" if by_line else b"\n\n")
    piece = Piece(Input(sample.name, sample.data[: end + 1] if end > 0 else sample.data), 0)
    if not piece.text.data.strip():
        return USUAL_GROWTH
    try:
        arrays, *_ = parsed(
            [reading.text(piece)], reading.format, reading.template, True, None, 1, reading.features
        )
    except DataError:  # what is wrong is said when the file is read
        return USUAL_GROWTH
    n_bytes = sum(array.nbytes for array in arrays.values() if array is not None)
    return float(n_bytes / len(piece.text.data))


def _runs(begun: Sequence[_Begun], reading: Reading, size: float) -> Iterator[list[Piece]]:
    """Yield the text of one run after the other, about `size` bytes each."""
    run, n_bytes = list[Piece](), 0

    def left() -> int:
        return int(size) - n_bytes

    for one in begun:
        stream = one.stream or Stream(one.path, BLOCK_BYTES)
        pieces = stream.pieces(by_line=reading.by_line(one.name), at_least=left)
        if one.is_list and one.annotated:
            whole = b"".join(piece.text.data for piece in pieces)
            pieces = iter([Piece(Input(one.name, whole), 0)])
        for piece in pieces:
            run.append(piece)
            n_bytes += len(piece.text.data)
            if n_bytes >= size:
                yield run
                run, n_bytes = [], 0
    if run:
        yield run


class _Task(NamedTuple):
    """The text of a run; rows before it have `n_columns`, 0 if it is the first."""

    number: int
    pieces: list[Piece]
    n_columns: int


class _Indexing:
    """One call of `index_files`."""

    def __init__(
        self, folder: Path, reading: Reading, source: str, n_threads: int, callback: _Callback
    ) -> None:
        self.folder, self.reading, self.source = folder, reading, source
        self.n_threads, self.callback = n_threads, callback
        self.n_bytes, self.n_columns = 0, None if reading.format != "columns" else 0

    def write(self, runs: Iterator[list[Piece]], min_count: int) -> None:
        """Write the runs as shards, and the index."""
        whole, n_runs, n_sequences, n_tokens = _Whole(), 0, 0, 0
        shards = list[_Written]()
        with ThreadPoolExecutor(self.n_threads) as pool:
            try:
                for run in _in_order(pool, self.n_threads, self._read, self._tasks(runs)):
                    for name, ids in zip(ALPHABETS, whole.add(run), strict=True):
                        ids.tofile(self._path(n_runs, name))
                    n_runs, n_sequences = n_runs + 1, n_sequences + run.n_sequences
                    n_tokens += run.n_tokens
                    self.callback(Indexed(self.n_bytes, n_sequences, n_tokens, n_runs, 0))
                final = _Final(whole, min_count)
                for shard in _in_order(pool, self.n_threads, lambda i: self._write(i, final), range(n_runs)):
                    shards.append(shard)
                    self.callback(Indexed(self.n_bytes, n_sequences, n_tokens, n_runs, len(shards)))
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise
        template = self.reading.template
        header = {
            "template": None
            if template is None
            else {name: getattr(template, name) for name in ("text", "name", "dialect")},
            "plain_transitions": template is None or template.plain_transitions,
            "input_format": self.reading.format,
            "n_columns": self.n_columns,
            "min_count": min_count,
            "source": self.source,
        }
        alphabets = final.alphabets | {"label_alphabet": shards[0].label_alphabet}
        sizes, checksums = [shard.size for shard in shards], [shard.checksum for shard in shards]
        write_index(self.folder, sizes, checksums, alphabets, self.reading.features, header)

    def _path(self, number: int, name: str) -> Path:
        """Where a run is until it is written as a shard: its arrays, or the ids of one of its alphabets."""
        return self.folder / f"run-{number}.{name}"

    def _tasks(self, runs: Iterator[list[Piece]]) -> Iterator[_Task]:
        """Yield a task for each run. Sets: bytes so far, and the number of columns of all rows."""
        reading = self.reading
        for number, pieces in enumerate(runs):
            self.n_bytes += sum(len(piece.text.data) for piece in pieces)
            before = self.n_columns or 0
            if reading.format == "columns" and not before:
                texts = (reading.text(piece) for piece in pieces)
                counts = (columns_to_require([text], reading.format, reading.template) for text in texts)
                self.n_columns = next(filter(None, counts), 0)
            yield _Task(number, pieces, before)

    def _read(self, task: _Task) -> _Run:
        """Parse a run and write its arrays."""
        reading = self.reading
        arrays, attributes, labels, edges, _ = parsed(
            [reading.text(piece) for piece in task.pieces],
            reading.format,
            reading.template,
            True,
            None,
            1,
            reading.features,
            n_columns=task.n_columns,
            lines_before=[piece.n_lines for piece in task.pieces],
        )
        none = np.zeros(0, np.int64)
        edge_ptr = arrays["edge_ptr"]
        counts = [
            _native.count_positions(arrays["attr_ptr"], arrays["attr_ids"], len(attributes)),
            none if edge_ptr is None else _native.count_positions(edge_ptr, arrays["edge_ids"], len(edges)),
        ]
        names = dict.fromkeys(piece.text.name for piece in task.pieces)
        header = {"format": _RUN.format, "version": _RUN.version, "source": ", ".join(names)}
        tensors = {name: array for name, array in arrays.items() if array is not None}
        tensor_file.write(self._path(task.number, "arrays"), tensors, header)
        n_sequences, n_tokens = len(arrays["seq_ptr"]) - 1, len(arrays["attr_ptr"]) - 1
        return _Run([attributes, labels, edges], counts, n_sequences, n_tokens)

    def _write(self, i: int, final: _Final) -> _Written:
        """Write a run as a shard."""
        reading, path = self.reading, self._path(i, "arrays")
        header, arrays = tensor_file.read(path, _RUN, tensor_file.MAPPED)
        ids = {name: np.fromfile(self._path(i, name), np.int32) for name in ALPHABETS}
        source = header["source"]
        labels = np.append(ids["label_alphabet"], np.int32(-1))[arrays["labels"]]  # -1: not known
        labels, label_sets = fill_unknown(labels, len(final.alphabets["label_alphabet"]), source)
        changes: dict[str, Any] = {"labels": labels, "label_sets": label_sets}
        attributes = final.new_ids("attribute_alphabet", ids)
        own = _own_ids(arrays["attr_ptr"], arrays["attr_ids"], attributes)
        changes |= {"attr_ptr": own.ptr, "attr_ids": own.ids, "attribute_alphabet": Numbers(len(own.known))}
        if own.kept is not None and "attr_values" in arrays:
            changes["attr_values"] = arrays["attr_values"][own.kept]
        edges = None
        if "edge_ptr" in arrays:
            edge = _own_ids(arrays["edge_ptr"], arrays["edge_ids"], final.new_ids("edge_alphabet", ids))
            edges = edge.known
            changes |= {"edge_ptr": edge.ptr, "edge_ids": edge.ids, "edge_alphabet": Numbers(len(edges))}
        dataset = Dataset(
            **(arrays | changes),
            label_alphabet=final.alphabets["label_alphabet"],
            source=source,
            plain_transitions=reading.template is None or reading.template.plain_transitions,
            n_columns=self.n_columns,
        )
        dataset = hide_labels(annotated.hide_unknown(dataset), reading.missing, reading.label_separator)
        checksum = write_shard(shard_path(self.folder, i), Shard(dataset, own.known, edges))
        for name in ("arrays", *ALPHABETS):
            self._path(i, name).unlink()
        return _Written(size_of(dataset), checksum, dataset.label_alphabet)


class _Written(NamedTuple):
    """A shard that was written."""

    size: ShardSize
    checksum: int
    label_alphabet: Alphabet


class _Final:
    """The alphabets without rare attributes, and the new ids."""

    def __init__(self, whole: _Whole, min_count: int) -> None:
        self.alphabets = dict(zip(ALPHABETS, whole.alphabets, strict=True))
        self._new_ids: dict[str, NDArray[np.int32]] = {}
        for name, counts in zip(("attribute_alphabet", "edge_alphabet"), whole.counts, strict=True):
            alphabet = self.alphabets[name]
            if min_count > 0:
                frequent = counts[: len(alphabet)] >= min_count
                new = np.cumsum(frequent, dtype=np.int32) - np.int32(1)
                self._new_ids[name] = np.where(frequent, new, np.int32(-1))
                self.alphabets[name] = alphabet.subset(frequent)
            if name == "attribute_alphabet" and len(alphabet) and not len(self.alphabets[name]):
                warnings.warn(
                    f"min_count={min_count}: no attribute occurs that often, so all {len(alphabet):,} are "
                    "dropped and a model learns only from labels; give a smaller number",
                    CrfitWarning,
                    stacklevel=4,
                )
        self.alphabets["label_alphabet"].lock()

    def new_ids(self, name: str, ids: dict[str, NDArray[np.int32]]) -> NDArray[np.int32]:
        """New id of each string of a run, -1 if it is rare."""
        new = self._new_ids.get(name)
        return ids[name] if new is None else new[ids[name]]


class _Own(NamedTuple):
    """Attributes with ids of their own: offsets, ids, the id in the whole of each, entries that were kept."""

    ptr: NDArray[np.int64]
    ids: NDArray[np.int32]
    known: NDArray[np.int64]
    kept: NDArray[np.bool_] | None


def _own_ids(ptr: NDArray[np.int64], ids: NDArray[np.int32], new: NDArray[np.int32]) -> _Own:
    """Number the attributes that are left by their ids in the whole; `new` has these, -1 for rare ones."""
    kept = None
    if (new < 0).any():
        kept = new[ids] >= 0
        ptr, ids = keep(ptr, kept), ids[kept]
    order = np.argsort(new, kind="stable")[np.count_nonzero(new < 0) :]
    place = np.full(len(new), -1, dtype=np.int32)
    place[order] = np.arange(len(order), dtype=np.int32)
    return _Own(ptr, place[ids], new[order].astype(np.int64), kept)


def _in_order(
    pool: ThreadPoolExecutor, n: int, work: Callable[[_In], _Out], tasks: Iterable[_In]
) -> Iterator[_Out]:
    """Yield the results of `work` on the tasks in their order; at most `n` tasks are in work at a time."""
    waiting = deque[Future[_Out]]()
    for task in tasks:
        waiting.append(pool.submit(work, task))
        del task  # its text
        if len(waiting) >= n:
            yield waiting.popleft().result()
    while waiting:
        yield waiting.popleft().result()
