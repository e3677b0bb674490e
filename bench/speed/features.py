"""Attributes from tokens: how fast crfit makes them, and how good the default set is.

The rival is the usual Python code, `word2features` of sklearn-crfsuite's tutorial [1] without tags: a dict
for each token. `SAME` is the same information in the language of crfit.features. Speed: from tokens to an
encoded dataset, with new and with known attributes, and from tokens to labels, one sentence at a time; in
turns, the fastest round counts, one thread. Scores: models of the default trainer on the test part of each
corpus, with the tutorial's attributes (for recipe lines those written for them) and with `default`.

References
----------
[1] sklearn-crfsuite: "Tutorial", section "Features". The code here is our own.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, TypeAlias

from bench import corpora, problems
from bench.records import Check, Results, Row, Task
from bench.setting import THREADS, Setting, seconds_of
from bench.tables import Column, table_of
from crfit import CRF, Dataset, Stop, evaluate
from crfit.data.text import Input
from crfit.demo.recipes import attributes as recipe_attributes
from crfit.features import Features, default

TITLE = "attributes from tokens against Python code, and test scores of the default set"

#: Sequences of tokens, or of labels.
Words: TypeAlias = "list[list[str]]"
#: Makes the attributes of a sentence.
ByHand: TypeAlias = Callable[[Sequence[str]], "list[Any]"]

QUICK, SPEED = "recipes-few", "conll2002-es-observed"
PROBLEMS = {
    "conll2002-es-observed": "CoNLL-2002 Spanish names",
    "conll2002-nl-all": "CoNLL-2002 Dutch names",
    "conll2003-observed": "CoNLL-2003 English names",
    "jnlpba-observed": "JNLPBA biomedical names",
    "ewt-xpos-observed": "EWT parts of speech",
    "recipes-few": "recipe lines",
}
#: Problems whose score is the accuracy.
TAGS = {"ewt-xpos-observed"}
#: What `word2features` makes, in the language of crfit.features.
SAME = "bias\nlower[-1..1]\nsuffix 2..3\nis digit\nis title upper[-1..1]\nfirst\nlast\n"
#: Test sentences that are tagged, and iterations of the models that tag them.
TAGGED, ITERATIONS = 1500, 30
#: From tokens to this, crfit is at least so many times as fast with the same information.
FASTER = {"new": 5.0, "known": 5.0, "labels": 4.0}


def tasks(quick: bool) -> list[Task]:
    facts = {"what": "speed", "rounds": 2 if quick else 7}
    names = [QUICK] if quick else PROBLEMS
    return [
        Task("speed", QUICK if quick else SPEED, facts),
        *(Task(f"{name}/scores", name, {"what": "scores"}, 1800.0) for name in names),
    ]


def word2features(sentence: Sequence[str], i: int) -> dict[str, Any]:
    """Attributes of a token as in [1]."""
    word = sentence[i]
    found = {
        "bias": 1.0,
        "word.lower()": word.lower(),
        "word[-3:]": word[-3:],
        "word[-2:]": word[-2:],
        "word.isupper()": word.isupper(),
        "word.istitle()": word.istitle(),
        "word.isdigit()": word.isdigit(),
    }
    if i > 0:
        before = sentence[i - 1]
        found["-1:word.lower()"] = before.lower()
        found["-1:word.istitle()"] = before.istitle()
        found["-1:word.isupper()"] = before.isupper()
    else:
        found["BOS"] = True
    if i < len(sentence) - 1:
        after = sentence[i + 1]
        found["+1:word.lower()"] = after.lower()
        found["+1:word.istitle()"] = after.istitle()
        found["+1:word.isupper()"] = after.isupper()
    else:
        found["EOS"] = True
    return found


def sentence_features(sentence: Sequence[str]) -> list[dict[str, Any]]:
    return [word2features(sentence, i) for i in range(len(sentence))]


def measure(task: Task, setting: Setting) -> Iterator[Row]:
    asked = problems.problem(task.problem)
    texts = corpora.load(asked.corpus, asked.chosen_variant, setting.data)
    X, y = words(texts["train"])
    if asked.n_train is not None:
        X, y = X[: asked.n_train], y[: asked.n_train]
    test = words(texts["test"])
    if task.settings["what"] == "speed":
        yield from _speed(task.settings["rounds"], X, y, test[0][:TAGGED])
        return
    by_hand = recipe_attributes if asked.corpus == "recipes" else sentence_features
    for made_by in ("hand", "default"):
        yield _scores(made_by, by_hand, X, y, *test)


def words(text: Input) -> tuple[Words, Words]:
    """Tokens and labels of a column text: the first and the last column."""
    blocks = text.data.decode("utf-8").split("\n\n")
    rows = [[line.split() for line in block.split("\n") if line] for block in blocks]
    sentences = [block for block in rows if block]
    return [[row[0] for row in s] for s in sentences], [[row[-1] for row in s] for s in sentences]


def _speed(rounds: int, X: Words, y: Words, test: Words) -> Iterator[Row]:
    sets = {"same": Features.parse(SAME), "default": default()}
    dicts = [sentence_features(x) for x in X]
    known = {name: Dataset.from_sequences(X, features=one) for name, one in sets.items()}
    known_dicts = Dataset.from_sequences(dicts)
    options: dict[str, Any] = {"stop": Stop(max_iter=ITERATIONS), "trainer": "lbfgs", "n_threads": THREADS}
    models = {name: CRF(features=one, **options).fit(X, y).model_ for name, one in sets.items()}
    plain = CRF(**options).fit(dicts, y).model_
    encode = partial(Dataset.from_sequences, n_threads=1)
    works: dict[tuple[str, str], Callable[[], object]] = {
        ("word2features", "attributes"): lambda: [sentence_features(x) for x in X],
        ("word2features", "new"): lambda: encode([sentence_features(x) for x in X]),
        ("word2features", "known"): lambda: encode(
            [sentence_features(x) for x in X], alphabets_of=known_dicts
        ),
        ("word2features", "labels"): lambda: [plain.tag(sentence_features(x)) for x in test],
    }
    for name, one in sets.items():
        works[name, "new"] = partial(encode, X, features=one)
        works[name, "known"] = partial(encode, X, alphabets_of=known[name])
        works[name, "labels"] = partial(_tag_all, models[name].tag, test)
    n_tokens = {"attributes": sum(map(len, X)), "labels": sum(map(len, test))}
    for _ in range(rounds):
        for (made_by, step), work in works.items():
            n = n_tokens.get(step, n_tokens["attributes"])
            yield {"made_by": made_by, "step": step, "seconds": seconds_of(work), "n_tokens": n}


def _tag_all(tag: Callable[[Any], object], X: Words) -> None:
    for x in X:
        tag(x)


def _scores(made_by: str, by_hand: ByHand, X: Words, y: Words, X_test: Words, y_test: Words) -> Row:
    given = made_by == "hand"
    crf = CRF(features=None if given else "default", n_threads=THREADS)
    begin = time.perf_counter()
    crf.fit([by_hand(x) for x in X] if given else X, y)
    seconds = time.perf_counter() - begin
    found = evaluate(y_test, crf.predict([by_hand(x) for x in X_test] if given else X_test))
    return {
        "made_by": made_by,
        "f1": found.f1,
        "accuracy": found.accuracy,
        "fit_seconds": seconds,
        "n_attributes": crf.model_.layout.n_attributes,
        "n_sequences": len(X),
    }


# --- what follows ------------------------------------------------------------------------------------------

STEPS = {
    "attributes": "dicts of attributes",
    "new": "encoded, new attributes",
    "known": "encoded, known attributes",
    "labels": "labels, one sentence at a time",
}
SETS = ("word2features", "same", "default")


def speeds(results: Results) -> list[Row]:
    """Nanoseconds per token of each step for each set, and how many times as fast crfit is."""
    found = []
    for step in STEPS:
        row: Row = {"step": step}
        for made_by in SETS:
            rows = results.where(what="speed", made_by=made_by, step=step)
            row[made_by] = min((1e9 * one["seconds"] / one["n_tokens"] for one in rows), default=None)
        for made_by in SETS[1:]:
            both = row["word2features"] is not None and row[made_by] is not None
            row[f"{made_by} ratio"] = row["word2features"] / row[made_by] if both else None
        found.append(row)
    return [row for row in found if row["word2features"] is not None]


def scores(results: Results) -> list[Row]:
    """Scores of each corpus by hand and with the default set."""
    found = []
    for name, title in PROBLEMS.items():
        rows = {row["made_by"]: row for row in results.where(problem=name, what="scores")}
        if len(rows) == 2:
            metric = "accuracy" if name in TAGS else "f1"
            row: Row = {"name": name, "title": title, "metric": "accuracy" if name in TAGS else "F1"}
            for made_by, one in rows.items():
                row |= {made_by: one[metric], f"{made_by} attributes": one["n_attributes"]}
                row[f"{made_by} seconds"] = one["fit_seconds"]
            found.append(row)
    return found


def tables(results: Results) -> dict[str, str]:
    speed: list[Column[Any]] = [
        Column("from tokens to", lambda row: STEPS[row["step"]]),
        Column("`word2features`, ns per token", lambda row: row["word2features"], ",.0f", none=""),
        Column("crfit, same information", lambda row: row["same"], ",.0f", none=""),
        Column("times as fast", lambda row: row["same ratio"], ".1f", none=""),
        Column("crfit, `default`", lambda row: row["default"], ",.0f", none=""),
        Column("times as fast", lambda row: row["default ratio"], ".1f", none=""),
    ]
    quality: list[Column[Any]] = [
        Column("corpus", lambda row: row["title"]),
        Column("", lambda row: row["metric"]),
        Column("by hand", lambda row: row["hand"], ".2f"),
        Column("`default`", lambda row: row["default"], ".2f"),
        Column("attributes by hand", lambda row: row["hand attributes"], ","),
        Column("`default`", lambda row: row["default attributes"], ","),
    ]
    return {"speed": table_of(speeds(results), *speed), "scores": table_of(scores(results), *quality)}


def checks(results: Results) -> list[Check]:
    made = [
        Check(
            f"speed-{row['step']}",
            f"From tokens to {STEPS[row['step']]}: {row['same ratio']:.1f} times as fast as word2features "
            f"with the same information, at least {FASTER[row['step']]:g}.",
            row["same ratio"] >= FASTER[row["step"]] * results.slack,
        )
        for row in speeds(results)
        if row["same ratio"] is not None
    ]
    return made + [
        Check(
            f"scores-{row['name']}",
            f"{row['title']}: {row['metric']} {row['default']:.2f} with the default set, "
            f"{row['hand']:.2f} with attributes written by hand.",
            row["default"] >= row["hand"] - 0.5,
        )
        for row in scores(results)
    ]
