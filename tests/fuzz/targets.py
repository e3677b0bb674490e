"""What is fuzzed from Python: functions of bytes that must return or raise a `CrfitError`.

`TARGETS` has a function, its seeds and how to change them. The readers written in C++ have fuzzers of their
own, `readers.cpp`, and are here for the inputs found by them.
"""

import json
import os
import random
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import crfit
from crfit.data import Dataset, annotated, items, tensor_file, text
from crfit.data.json_lines import other_members, split_texts
from crfit.data.templates import Template
from crfit.demo import recipe_data
from crfit.errors import CrfitError, DataError, ModelFileError
from crfit.features.language import parse
from crfit.files import BYTE_ORDER_MARK
from crfit.fit import FitOptions, fit_dataset
from crfit.formats import write
from crfit.trainers import LBFGS
from crfit.training.callbacks.checkpoint import Checkpoint, load_checkpoint

TEMPLATE = "U0:%x[0,0]\nU1:%x[-1,0]/%x[2,1]\nB\nB1:%x[0,1]\n"


class Target(NamedTuple):
    """A function, its seeds, and whether they are files with a header and a checksum."""

    run: Callable[[bytes], object]
    seeds: Callable[[], list[bytes]]
    with_header: bool = False


# --- texts ---


def _read(format: text.Format) -> Callable[[bytes], object]:
    template = Template(TEMPLATE) if format == "columns" else None

    def run(data: bytes) -> None:
        for labelled in (True, False):
            source = text.Input("fuzz", data)
            dataset = text.read(source, format=format, template=template, labelled=labelled, n_threads=1)
            assert dataset.n_tokens == dataset.seq_ptr[-1]

    return run


def _templates(data: bytes) -> None:
    written = data.decode("utf-8", "surrogateescape")
    for dialect in ("crfpp", "wapiti"):
        try:
            template = Template(written, dialect=dialect)  # type: ignore[arg-type]
        except CrfitError:
            continue
        if template.n_columns <= 6:
            template.expand([["Ab1", "x", "\\", "-.,", "é", "0"]] * 2)


def _items(data: bytes) -> None:
    for format in ("crfsuite", "jsonl"):
        try:
            items.read(text.Input("fuzz", data), format=format, n_threads=1)
        except CrfitError:
            continue


def _annotations(data: bytes) -> None:
    source = text.Input("fuzz", data)
    for form in (annotated.as_columns, annotated.as_json_lines):
        try:
            form(source)
        except CrfitError:
            continue


def _split(data: bytes) -> None:
    split, tokens = split_texts(data)
    try:
        dataset = text.read(text.Input("fuzz", split), format="jsonl", labelled=False, n_threads=1)
    except CrfitError:
        return
    assert dataset.n_sequences == sum(one != [] for one in tokens)
    for members in other_members(split):
        for member in members:
            json.loads("{" + member.written + "}", strict=False)


def _features(data: bytes) -> None:
    crfit.features.Features(
        *parse(data.decode("utf-8", "replace"), contents={"words.txt": b"a\t010\nb\t1101\n"})
    )


_COLUMNS = b"2 CD B-QTY\ncups NN B-UNIT\nflour NN B-NAME\n\n1 CD B-QTY\negg NN B-NAME\n"
_CRFSUITE = b"B-X\tw=a\tb\\:c:2.5\tbias\nO\tw=\\\\\n\n@weight:2\nO\tbias:-1e-3\n"
_JSONL = (
    b'{"attributes": [["a", "b"], {"n": 0.5, "b": true}], "labels": ["X", null], "weight": 2}\n'
    b'{"id": [1, {"x": "\\u00e9"}], "attributes": [["2"], ["cups"]], "labels": ["X", "Y"]}\n'
)
_TEXT = b'{"text": "2 cups flour", "id": 7}\n{"attributes": [["2"], ["cups"]]}\n'
_SPANS = (
    b'{"text": "12 Main St", "label": [[0, 2, "NUM"]]}\n',
    b'{"text": "12 Main St", "spans": [{"start": 3, "end": 10, "label": "ROAD"}]}\n',
    b'[{"id": 1, "data": {"text": "12 Main St"}, "annotations": [{"result": [{"value": '
    b'{"start": 0, "end": 2, "text": "12", "labels": ["NUM"]}}]}]}]',
    b'{"tokens": ["12", "Main", "St"], "labels": ["B-NUM", "B-ROAD", null]}\n',
)
_WAPITI = b'u:%x[-1,0]/%X[0,0]\nb\n*:%t[0,0,"^\\u"]\nu:%m[0,1,"\\d*$"] # comment\nu:%x[@-1,0]\n'
_FEATURES = (
    b"bias\nword[-1..1]\n(lower_prefix 1..3 & shape[-1])[0..1]\n"
    b"gazetteer words.txt\nclusters words.txt 4\nis digit\n"
)


# --- files ---


def _in_file(load: Callable[[str], object]) -> Callable[[bytes], object]:
    """The function on a file with the bytes; its checksum is made right, so that what follows is reached."""

    def run(data: bytes) -> None:
        folder = "/dev/shm" if os.path.isdir("/dev/shm") else None
        with tempfile.NamedTemporaryFile(dir=folder) as file:
            file.write(with_checksum(data))
            file.flush()
            load(file.name)

    return run


def with_checksum(data: bytes) -> bytes:
    """The bytes of a tensor file with a right checksum; as they are if they are not such a file."""
    try:
        entries, start = tensor_file._header(data)
        place = tensor_file._places(entries, start, len(data))[tensor_file.CHECKSUM].bytes
    except (ModelFileError, KeyError, AttributeError):
        return data
    return data[: place.start] + tensor_file._checksum(data, place) + data[place.stop :]


def _use_model(path: str) -> None:
    model = crfit.load(path)
    if model.task == "classify":
        model.classify([["a"], ["b", "c"]])
        return
    if model.features is not None:
        model.tag(["2", "cups", "flour"])
        return
    model.tag([["a"], ["w=flour", "b"], []])
    model.marginals([["a"], ["b"]])
    model.nbest([["a"], ["b"]], 2)


def _use_dataset(path: str) -> None:
    dataset = Dataset.load(path)
    if dataset.labels is not None and dataset.n_labels * dataset.n_attributes < 1 << 20:
        crfit.make_objective(dataset, n_threads=1)


def _models(*formats: str) -> Callable[[], list[bytes]]:
    def made() -> list[bytes]:
        X, y = recipe_data(12, seed=1)
        options: dict[str, Any] = {"trainer": LBFGS(), "stop": crfit.Stop(max_iter=2)}
        if formats == ("crfsuite",):
            fitted = [crfit.CRF(**options).fit(X, y).model_]
        else:
            template = Template(TEMPLATE.rpartition("B1:")[0])
            columns = text.read(text.Input("fuzz", _COLUMNS), format="columns", template=template)
            fitted = [
                fit_dataset(columns, FitOptions(**options), template=template, input_format="columns").model
            ]
        if "crfit" in formats:
            words = [["2", "cups", "flour"], ["1", "egg"]], [["Q", "U", "N"], ["Q", "N"]]
            fitted += [
                crfit.CRF(**options, features="default").fit(*words).model_,
                crfit.CRF(**options, order=2, l1=1.0, boundary=True).fit(X, y).model_,
                crfit.LogLinear(**options).fit([["a"], ["b", "c"]], ["x", "y"]).model_,
            ]
        found = []
        with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for one in fitted:
                for format in formats:
                    path = Path(folder) / "model"
                    write(one, path, format)
                    found.append(path.read_bytes())
        return found

    return made


def _datasets() -> list[bytes]:
    X, y = recipe_data(5, seed=1)
    plain = Dataset.from_sequences(X, y)
    partial = Dataset.from_sequences([[["a"], {"b": 2.0}]], [["x", None]], sequence_weights=[2.0])
    columns = text.read(text.Input("fuzz", _COLUMNS), format="columns", template=Template(TEMPLATE))
    return [_saved(one.save) for one in (plain, partial, columns)]


def _checkpoints() -> list[bytes]:
    X, y = recipe_data(8, seed=1)
    dataset = Dataset.from_sequences(X, y)
    found = []
    for trainer in ("lbfgs", "newton_cg", "sgd"):

        def save(path: Path, trainer: str = trainer) -> None:
            objective = crfit.make_objective(dataset, n_threads=1)
            stop = crfit.Stop(max_iter=2)
            crfit.train(objective, trainer, stop=stop, callbacks=[Checkpoint(path)])

        found.append(_saved(save))
    return found


def _saved(save: Callable[[Path], object]) -> bytes:
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        save(Path(folder) / "file")
        return (Path(folder) / "file").read_bytes()


#: Targets by name. Those of `readers.cpp` have the same names there.
TARGETS = {
    "columns": Target(_read("columns"), lambda: [_COLUMNS, BYTE_ORDER_MARK + _COLUMNS]),
    "crfsuite": Target(_read("crfsuite"), lambda: [_CRFSUITE]),
    "jsonl": Target(_read("jsonl"), lambda: [_JSONL, *_JSONL.splitlines(keepends=True)]),
    "templates": Target(_templates, lambda: [TEMPLATE.encode(), _WAPITI]),
    "items": Target(
        _items, lambda: [_CRFSUITE.replace(b"\n\n", b"\n"), b'{"attributes": ["a"], "label": "x"}\n']
    ),
    "annotations": Target(_annotations, lambda: list(_SPANS)),
    "texts": Target(_split, lambda: [_JSONL, _TEXT, *_SPANS[:2]]),
    "features": Target(_features, lambda: [_FEATURES]),
    "models": Target(_in_file(_use_model), _models("crfit"), with_header=True),
    "crfsuite_models": Target(_in_file(_use_model), _models("crfsuite")),
    "crfpp_models": Target(_in_file(_use_model), _models("crfpp", "crfpp-text")),
    "wapiti_models": Target(_in_file(_use_model), _models("wapiti")),
    "datasets": Target(_in_file(_use_dataset), _datasets, with_header=True),
    "checkpoints": Target(_in_file(load_checkpoint), _checkpoints, with_header=True),
}


def run(name: str, data: bytes) -> None:
    """Run a target; errors of crfit are what is expected of bad input, warnings are not looked at."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            TARGETS[name].run(data)
        except CrfitError as error:
            if not str(error) or (isinstance(error, DataError) and "\n" in str(error)):
                raise AssertionError("an error is one line of text") from error


# --- changes ---

_VALUES = [
    None, True, False, 0, 1, -1, 2, 25, 13.0, 1e300, -0.5, 2**31, 2**63, 10**30, "", "x", "\x1b[31m", "cpu",
    "1.0", [], [0], [None], ["x"], {}, {"x": 1}, {"kind": "BIO"}, [[]], [{}],
]  # fmt: skip
_BITS = [
    b"\n",
    b"\t",
    b":",
    b"\\",
    b'"',
    b"{",
    b"}",
    b"[",
    b"]",
    b"\r",
    b"\x00",
    b"\xff",
    b"%x[",
    b"1e999",
    b" ",
    b"@",
]


def changed(data: bytes, with_header: bool, chance: random.Random) -> bytes:
    """The data with one to three changes: of values in its header, or of bytes."""
    for _ in range(chance.choice([1, 1, 2, 3])):
        if with_header and chance.random() < 0.8:
            data = _change_header(data, chance)
        elif data:
            at = chance.randrange(len(data))
            kind = chance.randrange(4)
            if kind == 0:
                data = data[:at] + bytes([chance.randrange(256)]) + data[at + 1 :]
            elif kind == 1:
                data = data[:at] + data[at + chance.randint(1, 12) :]
            elif kind == 2:
                data = data[:at] + chance.choice(_BITS) + data[at:]
            else:
                other = chance.randrange(len(data))
                data = data[:at] + data[other : other + chance.randint(1, 30)] + data[at:]
    return data


def _change_header(data: bytes, chance: random.Random) -> bytes:
    """The file with another value somewhere in the JSON of its header, tensors and description."""
    length = int.from_bytes(data[:8], "little")
    try:
        entries = json.loads(data[8 : 8 + length])
        own = json.loads(entries["__metadata__"]["crfit"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return data
    _change_value(own if chance.random() < 0.85 else entries, chance)
    if isinstance(entries.get("__metadata__"), dict):
        entries["__metadata__"]["crfit"] = json.dumps(own)
    header = json.dumps(entries).encode()
    header += b" " * (-len(header) % 8)
    return len(header).to_bytes(8, "little") + header + data[8 + length :]


def _change_value(node: Any, chance: random.Random) -> None:
    """Change a value somewhere below a list or dictionary: another one, none, or one more."""
    while isinstance(node, dict | list) and node:
        key = chance.choice(list(node) if isinstance(node, dict) else range(len(node)))
        below = node[key]
        if isinstance(below, dict | list) and below and chance.random() < 0.75:
            node = below
            continue
        if chance.random() < 0.2:
            del node[key]
        else:
            node[key] = chance.choice(_VALUES)
        return
