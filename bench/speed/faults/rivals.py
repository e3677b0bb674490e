"""The same bad input to crfit and to other tools: damaged models, odd texts and objects.

Every input goes to a process of its own. Models are those that a tool has learned from the same lines; each
is damaged at the same places, relative to its size. Texts go to command lines, objects to Python libraries.
"""

import random
import resource
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import crfit
from bench.records import Check, Row
from bench.speed.faults.jobs import preload
from bench.speed.faults.processes import Ended, Work, in_process, limited, ran
from bench.tables import Column, markdown, table_of
from bench.tools.programs import LEARN, TEST, CrfPP, LibWapiti
from crfit import demo

OURS, CRFSUITE, WAPITI, CRFPP = "crfit", "python-crfsuite", LibWapiti.TITLE, CrfPP.TITLE
#: How a tool deals with an input, with the word for one and for several.
OUTCOMES = {
    "error": ("error", "errors"),
    "right": ("right", "right"),
    "accepted": ("**no error**", "**without an error**"),
    "crash": ("**crash**", "**crashes**"),
    "hang": ("**hangs**", "**hang**"),
}
SECONDS, MEMORY = 20.0, 8 << 30
N_LINES = 300
PATTERNS = {WAPITI: "U00:%x[0,0]\nU01:%x[-1,0]/%x[0,0]\nb\n", CRFPP: "U00:%x[0,0]\nU01:%x[-1,0]/%x[0,0]\nB\n"}
Sequences = list[list[Any]]


def rivals(folder: Path, n: int) -> Iterator[Row]:
    """Damaged models, texts, objects; a row for each tool and kind of input."""
    preload()
    yield from _models(folder, n)
    yield from _texts(folder)
    yield from _objects(folder)


def outcome(ended: Ended, right: str | None) -> str:
    """Of a process that has printed an answer; `right` is None if the input has to be refused."""
    if ended.code is None:
        return "hang"
    if ended.code != 0:
        return "crash" if ended.code < 0 else "error"
    return "right" if right is not None and ended.answer == right else "accepted"


def _row(tool: str, family: str, what: str, found: Iterable[str]) -> Row:
    count = Counter(found)
    tries = {"tries": count.total(), **{name: count[name] for name in OUTCOMES}}
    return {"tool": tool, "family": family, "what": what, **tries}


def _tried(tool: str, what: str, ended: Ended, right: str | None) -> str:
    """The outcome, noted in the log."""
    found = outcome(ended, right)
    print(f"{tool}, {what}: {found}; {ended.words}", flush=True)
    return found


def _python(work: Work) -> Ended:
    return in_process(limited(work, resource.RLIMIT_AS, MEMORY), seconds=SECONDS)


def _program(command: Iterable[object]) -> Ended:
    return ran(list(map(str, command)), seconds=SECONDS, memory=MEMORY)


# --- programs ----------------------------------------------------------------------------------------------


class Program(NamedTuple):
    """A command line that learns from a text, and one that labels one, with scores."""

    learn: Callable[[Path, Path], list[object]]
    label: Callable[[Path, Path], list[object]]


def _programs(folder: Path) -> dict[str, Program]:
    """Those that are here; they learn from words and pairs of words."""
    pattern = {name: folder / f"pattern-{i}" for i, name in enumerate(PATTERNS)}
    for name, path in pattern.items():
        path.write_text(PATTERNS[name])
    ours = [sys.executable, "-m", "crfit"]
    found = {
        OURS: Program(
            lambda text, model: [*ours, "train", text, "--template", pattern[CRFPP], "-m", model, "-q"],
            lambda text, model: [*ours, "tag", "-m", model, text, "--marginals"],
        )
    }
    if LibWapiti().absent() is None:
        theirs = LibWapiti().program()
        found[WAPITI] = Program(
            lambda text, model: [
                *(*theirs, "train", "-p", pattern[WAPITI], "-1", "0", "-2", "0.1", "-t", "2"),
                *("-i", "100", text, model),
            ],
            lambda text, model: [*theirs, "label", "-s", "-m", model, text],
        )
    if CrfPP().absent() is None:
        found[CRFPP] = Program(
            lambda text, model: [LEARN, "-c", "10", "-m", "100", pattern[CRFPP], text, model],
            lambda text, model: [TEST, "-v2", "-m", model, text],
        )
    return found


# --- damaged models ----------------------------------------------------------------------------------------


def _models(folder: Path, n: int) -> Iterator[Row]:
    lines = demo.recipe_lines(N_LINES)
    text, words = folder / "text", folder / "words"
    words.write_text("".join("".join(f"{word}\n" for word, _ in line) + "\n" for line in lines))
    text.write_text("".join("".join(f"{word}\t{y}\n" for word, y in line) + "\n" for line in lines))
    X = [demo.attributes([word for word, _ in line]) for line in lines]
    y = [[label for _, label in line] for line in lines]
    answers: dict[str, tuple[Path, Callable[[Path], Ended]]] = {}
    ours = folder / "m.crfit"
    in_process(lambda: crfit.CRF(l2=0.1).fit(X, y).model_.save(ours))
    answers[OURS] = ours, lambda model: _python(lambda: _crfit_answer(model, X))
    if _has_crfsuite():
        theirs = folder / "m.crfsuite"
        in_process(lambda: _crfsuite_train(X, y, theirs, {}))
        answers[CRFSUITE] = theirs, lambda model: _python(lambda: _crfsuite_answer(model, X))
    for name, one in _programs(folder).items():
        if name != OURS:
            model = folder / f"m.{len(answers)}"
            _program(one.learn(text, model))
            answers[name] = model, lambda model, one=one: _program(one.label(words, model))  # type: ignore[misc]
    for tool, (model, answer) in answers.items():
        right = answer(model)
        if right.code != 0 or not right.answer:
            raise RuntimeError(f"{tool}: {right.words}")
        for what, made in _damages(model, n).items():
            found = []
            for path in made(folder / "damaged"):
                found.append(_tried(tool, what, answer(path), right.answer))
            yield _row(tool, "models", what, found)


def _damages(model: Path, n: int) -> dict[str, Callable[[Path], Iterator[Path]]]:
    """Damaged copies of a model by what is done to it; each replaces the previous one."""
    data = model.read_bytes()

    def copies(change: Callable[[bytearray, random.Random], object], n: int, path: Path) -> Iterator[Path]:
        for seed in range(n):
            changed, chosen = bytearray(data), random.Random(seed)
            change(changed, chosen)
            path.write_bytes(changed)
            yield path

    def cut(changed: bytearray, chosen: random.Random) -> None:
        del changed[int(chosen.random() * len(changed)) :]

    def flip(changed: bytearray, chosen: random.Random) -> None:
        changed[int(chosen.random() * len(changed))] ^= 1 << chosen.randrange(8)

    def hole(changed: bytearray, chosen: random.Random) -> None:
        begin = int(chosen.random() * len(changed))
        changed[begin : begin + 512] = bytes(len(changed[begin : begin + 512]))

    def noise(changed: bytearray, chosen: random.Random) -> None:
        changed[:] = chosen.randbytes(5000)

    def text(changed: bytearray, _: random.Random) -> None:
        changed[:] = b"once upon a time\n" * 100

    return {
        "a model cut short": partial(copies, cut, n),
        "a model with one bit flipped": partial(copies, flip, n),
        "a model with 512 zeros in it": partial(copies, hole, n),
        "an empty file as model": partial(copies, lambda changed, _: changed.clear(), 1),
        "random bytes as model": partial(copies, noise, 5),
        "a text as model": partial(copies, text, 1),
        "a folder as model": lambda path: iter([path.parent]),
        "a missing file as model": lambda path: iter([path.with_name("missing")]),
    }


def _crfit_answer(path: Path, X: Sequences) -> None:
    model = crfit.load(path)
    labels = model.tag_many(X)
    print([(y, model.log_probability(x, y)) for x, y in zip(X, labels, strict=True)])


def _has_crfsuite() -> bool:
    try:
        import pycrfsuite  # noqa: F401
    except ImportError:
        return False
    return True


def _crfsuite_train(X: Sequences, y: Sequences, path: Path, parameters: dict[str, object]) -> None:
    import pycrfsuite

    trainer = pycrfsuite.Trainer(algorithm="lbfgs", params={"c2": 0.1, **parameters}, verbose=False)
    for one, labels in zip(X, y, strict=True):
        trainer.append(one, labels)
    trainer.train(str(path))


def _crfsuite_answer(path: Path, X: Sequences) -> None:
    import pycrfsuite

    tagger = pycrfsuite.Tagger()
    tagger.open(str(path))
    answers = []
    for x in X:
        labels = tagger.tag(x)
        answers.append((labels, tagger.probability(labels)))
    print(answers)


# --- texts -------------------------------------------------------------------------------------------------

N_COPIES = 20


def texts() -> dict[str, tuple[bytes, bool]]:
    """Texts with a word and a label per line, and whether they can be learned from."""

    def rows(one: bytes, other: bytes, end: bytes = b"\n") -> bytes:
        """Sequences in which only the words tell the labels."""
        a, b = one + b"\tX" + end, other + b"\tY" + end
        return (a + b + end + b + a + end + a + a + end + b + b + end) * N_COPIES

    good = rows(b"a", b"b")
    return {
        "an empty text": (b"", False),
        "a text of blank lines": (b"\n" * 100, False),
        "a text that ends within a line": (good + b"a\tX\nb", False),
        "random bytes as text": (random.Random(0).randbytes(20_000), False),
        "zero bytes in words": (rows(b"w\0a", b"w\0b"), True),
        "words that are not UTF-8": (rows(b"\xff\xe9", b"\xff\xe8"), True),
        "words of a million bytes": (rows(b"w" * 10**6 + b"a", b"w" * 10**6 + b"b"), True),
        "Windows line ends": (rows(b"a", b"b", b"\r\n"), True),
    }


def _texts(folder: Path) -> Iterator[Row]:
    for tool, one in _programs(folder).items():
        cases = {what: (folder / f"text-{i}", *given) for i, (what, given) in enumerate(texts().items())}
        for path, data, _ in cases.values():
            path.write_bytes(data)
        cases |= {
            "a folder as text": (folder, b"", False),
            "a missing text": (folder / "missing", b"", False),
        }
        for what, (path, data, valid) in cases.items():
            model = folder / "learned"
            model.unlink(missing_ok=True)
            ended = _program(one.learn(path, model))
            right = None
            if valid and ended.code == 0:
                ended = _program(one.label(path, model))
                ended = ended._replace(printed=_last_columns(ended.answer))
                right = _last_columns(data.decode(errors="replace"))
            yield _row(tool, "texts", what, [_tried(tool, what, ended, right)])


def _last_columns(text: str) -> str:
    """Labels, without the scores that a program adds and without lines that only have scores."""
    lines = (line.split() for line in text.split("\n") if not line.startswith("# "))
    return " ".join(words[-1].partition("/")[0] for words in lines if words)


# --- objects -----------------------------------------------------------------------------------------------


class Given(NamedTuple):
    """Sequences and labels for a library; `right` is False if it must refuse them, None if it may answer."""

    X: Sequences
    y: Sequences
    right: bool | None = True
    l2: float = 0.1
    model: str = "model"


def objects() -> dict[str, Given]:
    """Objects by what is odd about them."""

    def pairs(one: Any, other: Any, first: str = "X", second: str = "Y") -> tuple[Sequences, Sequences]:
        a, b = [one], [other]
        X = [[a, b], [b, a], [a, a], [b, b]] * N_COPIES
        return X, [[first if item is a else second for item in x] for x in X]

    X, y = pairs("a", "b")
    return {
        "fewer labels than items": Given(X, [labels[:-1] for labels in y], False),
        "no sequences": Given([], [], False),
        "sequences without items": Given([[]] * 4, [[]] * 4, False),
        "items without attributes": Given([[[], []]] * 4, [["X", "Y"]] * 4, None),
        "NaN as a value": Given([[{"a": float("nan")} for _ in x] for x in X], y, False),
        "an infinite value": Given([[{"a": float("inf")} for _ in x] for x in X], y, False),
        "a NaN penalty": Given(X, y, False, float("nan")),
        "a negative penalty": Given(X, y, False, -1.0),
        "zero bytes in attributes": Given(*pairs("w\0a", "w\0b")),
        "zero bytes in labels": Given(*pairs("a", "b", "L\0X", "L\0Y")),
        "lone surrogates in attributes": Given(*pairs("\ud800", "\udfff")),
        "empty attributes and labels": Given(*pairs("", "b", "", "Y")),
        "attributes of ten million bytes": Given(*pairs("w" * 10**7 + "a", "w" * 10**7 + "b")),
        "numbers as attributes": Given(*pairs(1, 2), None),
        "a model into a missing folder": Given(X, y, False, model="missing/model"),
        "a model over a folder": Given(X, y, False, model="."),
    }


def _objects(folder: Path) -> Iterator[Row]:
    for tool in (OURS, *([CRFSUITE] if _has_crfsuite() else [])):
        for what, given in objects().items():
            model = folder / given.model
            if model.is_file():
                model.unlink()
            ended = _python(partial(_learn, tool, given, model))
            right = None
            if given.right is not False and ended.code == 0:
                ended = _python(partial(_tag, tool, given, model))
                right = str(given.y) if given.right else ended.answer
            yield _row(tool, "objects", what, [_tried(tool, what, ended, right)])


def _learn(tool: str, given: Given, model: Path) -> None:
    if tool == CRFSUITE:
        _crfsuite_train(given.X, given.y, model, {"c2": given.l2})
    else:
        crfit.CRF(l2=given.l2).fit(given.X, given.y).model_.save(model)


def _tag(tool: str, given: Given, model: Path) -> None:
    if tool == CRFSUITE:
        import pycrfsuite

        tagger = pycrfsuite.Tagger()
        tagger.open(str(model))
        print([tagger.tag(x) for x in given.X])
    else:
        print(crfit.load(model).tag_many(given.X))


# --- what follows ------------------------------------------------------------------------------------------


def tables(rows: list[Row]) -> dict[str, str]:
    """Outcomes by tool, and of each kind of input."""
    tools = list(dict.fromkeys(row["tool"] for row in rows))
    by_tool = [
        {"tool": tool} | {name: sum(row[name] for row in rows if row["tool"] == tool) for name in COUNTED}
        for tool in tools
    ]
    columns: list[Column[Row]] = [
        Column("", lambda row: row["tool"]),
        Column("bad inputs", lambda row: row["tries"], ",d"),
        Column("error message", lambda row: row["error"], ",d"),
        Column("right answer", lambda row: row["right"], ",d"),
        Column("no error", lambda row: row["accepted"], ",d"),
        Column("crash", lambda row: row["crash"], ",d"),
        Column("hangs", lambda row: row["hang"], ",d"),
    ]
    cells = {(row["what"], row["tool"]): _words(row) for row in rows}
    lines = [
        [what, *(cells.get((what, tool), "") for tool in tools)]
        for what in dict.fromkeys(row["what"] for row in rows)
    ]
    made = {"rivals": table_of(by_tool, *columns)}
    return {**made, "bad-input": markdown(["input", *tools], lines, words=True) if lines else ""}


COUNTED = ("tries", *OUTCOMES)


def _words(row: Row) -> str:
    """The outcomes of a row, as in "58 errors, 2 right"."""
    found = {name: row[name] for name in OUTCOMES if row[name]}
    if row["tries"] == 1:
        return OUTCOMES[next(iter(found))][0]
    return ", ".join(f"{n} {OUTCOMES[name][n > 1]}" for name, n in found.items())


def checks(rows: list[Row]) -> list[Check]:
    """What we say of crfit."""
    ours = [row for row in rows if row["tool"] == OURS]
    count = {name: sum(row[name] for row in ours) for name in COUNTED}
    text = f"{count['tries']:,} bad inputs: {count['error']:,} errors, {count['right']:,} right answers, "
    text += f"{count['accepted']} without an error, {count['crash']} crashes, {count['hang']} hangs."
    return [Check("bad-input", text, count["error"] + count["right"] == count["tries"] > 0)]
