"""Scores against hand-made cases, a slow reading of conlleval's rules, and seqeval."""

import gzip
import json
from collections import Counter
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crfit.errors import DataError, OptionError
from crfit.evaluation import evaluate, evaluate_ids
from crfit.evaluation.spans import detect_scheme, split_label


def ends(previous, current):
    (p, p_type), (c, c_type) = previous, current
    if (p, c) in {("B", "B"), ("B", "O"), ("I", "B"), ("I", "O"), ("E", "E"), ("E", "I"), ("E", "O")}:
        return True
    return (p not in ("O", ".") and p_type != c_type) or p in ("[", "]")


def starts(previous, current):
    (p, p_type), (c, c_type) = previous, current
    if (p, c) in {("B", "B"), ("I", "B"), ("O", "B"), ("O", "I"), ("E", "E"), ("E", "I"), ("O", "E")}:
        return True
    return (c not in ("O", ".") and p_type != c_type) or c in ("[", "]")


def conlleval(gold, predicted):
    """Counters by type of gold, predicted and correct spans, each span looked at on its own."""
    outside = ("O", "")
    golds, guesses = [outside], [outside]  # all tokens, with an outside tag around every sequence
    for g_sequence, p_sequence in zip(gold, predicted, strict=True):
        golds += [*map(split_label, g_sequence), outside]
        guesses += [*map(split_label, p_sequence), outside]
    positions = range(1, len(golds))
    g_starts = {t for t in positions if starts(golds[t - 1], golds[t])}
    p_starts = {t for t in positions if starts(guesses[t - 1], guesses[t])}
    shared = {t for t in g_starts & p_starts if golds[t][1] == guesses[t][1]}

    def agreed(start):
        """Type of the last token of a span that both sides have; None if they part on the way."""
        for t in range(start + 1, len(golds)):
            ended = ends(golds[t - 1], golds[t]), ends(guesses[t - 1], guesses[t])
            if all(ended):
                return golds[t - 1][1]
            # A span that begins anew without an end is counted from there.
            if any(ended) or golds[t][1] != guesses[t][1] or t in shared:
                return None
        return golds[-1][1]  # still open when the input ends

    return (
        Counter(golds[t][1] for t in g_starts),
        Counter(guesses[t][1] for t in p_starts),
        Counter(kind for t in shared if (kind := agreed(t)) is not None),
    )


def counts_by_type(scores):
    return {row.name: (row.gold, row.predicted, row.correct) for row in scores.by_type}


def expected_by_type(gold, predicted):
    found_gold, found_predicted, correct = conlleval(gold, predicted)
    return {
        kind: (found_gold[kind], found_predicted[kind], correct[kind])
        for kind in set(found_gold) | set(found_predicted)
        if found_gold[kind] or found_predicted[kind]
    }


def paired(alphabet, max_sequences=5, max_length=9):
    """Two labellings of the same sequences; the second agrees with the first about half of the time."""
    equal, any_two = [(y, y) for y in alphabet], list(product(alphabet, repeat=2))
    # One draw a token: drawing is what takes the time.
    token = st.sampled_from(equal * len(alphabet) + any_two)
    sequences = st.lists(st.lists(token, max_size=max_length), max_size=max_sequences)
    return sequences.map(lambda s: ([[g for g, _ in x] for x in s], [[p for _, p in x] for x in s]))


#: Labels and the number of their spans under conlleval.
CONLL = [
    ("O O", 0), ("B-P B-P", 2), ("B-P O", 1), ("B-P I-P B-P", 2), ("B-P I-P O", 1),  # ends and starts at B
    ("I-P I-P B-P I-P", 2), ("O I-P", 1),  # IOB1: I starts a span after O, and B only between neighbours
    ("O I-P I-P O I-Q", 2), ("B-P I-Q", 2), ("I-P I-Q I-P", 3),  # lenient repair in IOB2
    ("I-P E-P I-P E-P", 2), ("E-P E-P", 2), ("I-P E-P O", 1), ("O E-P", 1),  # IOE1 and IOE2
    # neither list has E then B, nor I then E, nor B then E
    ("B-P E-P B-P", 1), ("B-P E-P B-P E-P O B-P", 2), ("B-P E-P", 1), ("B-P E-P B-Q", 2),
    ("[-P [-P ]-P", 3), ("B-P . I-P", 2), ("O .-P O", 0),  # one-token chunks and the second outside mark
    ("S-P S-P", 1), ("B-P E-P S-P", 1), ("U-P U-P", 1),  # letters conlleval does not know
    ("B-X-Y I-X-Y I-X-Z", 2),  # the type is all that follows the first hyphen
    ("B I I O B B", 3), ("I I O I", 2), ("X X", 0),  # no types
]  # fmt: skip
IOBES = [
    ("S-P S-P", 2), ("B-P E-P S-P", 2), ("B-P E-P B-P E-P", 2), ("B-P I-P E-P", 1),
    ("B-P I-P L-P U-P U-P", 3), ("B-P M-P E-P S-P", 2), ("B M E S W O B E", 4),
    # ill-formed: I and E with no open span of their type start one, B and S close what is open
    ("O I-P E-P", 1), ("O E-P", 1), ("E-P E-P", 2), ("S-P I-P", 2), ("B-P B-P", 2), ("B-P S-P", 2),
    ("B-P E-Q", 2), ("B-P I-P O", 1), ("E-P I-P", 2),
]  # fmt: skip


@pytest.mark.parametrize(
    ("scheme", "labels", "n"), [*(("conll", *row) for row in CONLL), *(("iobes", *row) for row in IOBES)]
)
def test_number_of_spans(scheme, labels, n):
    sequence = labels.split()
    assert evaluate([sequence], [sequence], scheme).overall.gold == n


def test_spans_do_not_cross_sequences():
    gold = [["B-P", "I-P"], ["I-P", "I-P"]]
    assert evaluate(gold, gold).overall.gold == 2


def one(gold, predicted, scheme="auto"):
    overall = evaluate([gold.split()], [predicted.split()], scheme).overall
    return overall.gold, overall.predicted, overall.correct


@pytest.mark.parametrize(
    ("gold", "predicted", "counts"),
    [
        ("B-P I-P O", "B-P I-P O", (1, 1, 1)),
        ("B-P I-P O", "B-P O O", (1, 1, 0)),  # ends too early
        ("B-P O O", "B-P I-P O", (1, 1, 0)),  # ends too late
        ("O B-P", "B-P I-P", (1, 1, 0)),  # starts too early
        ("B-P I-P", "B-Q I-Q", (1, 1, 0)),  # other type
        ("B-P I-P I-P", "B-P I-P I-Q", (1, 2, 0)),  # types part inside
        ("B-P I-P", "I-P I-P", (1, 1, 1)),  # other prefix, same span
        ("O B-P", "O I-P", (1, 1, 1)),  # open at the end of the input
        ("B-P B-P", "B-P I-P", (2, 1, 0)),
        ("B-P B-P", "B-P B-Q", (2, 2, 1)),  # first ends on both sides though the next types differ
        ("O O", "B-P O", (0, 1, 0)),
        ("B-P O", "O O", (1, 0, 0)),
        ("B-P E-P B-P", "B-P I-P I-P", (1, 1, 1)),  # one span each, as conlleval has it
    ],
)
def test_correct_spans(gold, predicted, counts):
    assert one(gold, predicted) == counts


def test_figures_are_micro_averaged_percentages():
    gold = [["B-P", "I-P", "O", "B-Q"], ["B-P", "O"]]
    predicted = [["B-P", "I-P", "B-Q", "B-Q"], ["O", "O"]]
    scores = evaluate(gold, predicted)
    assert scores.accuracy == pytest.approx(100 * 4 / 6)
    assert scores.sequence_accuracy == 0.0
    assert (scores.precision, scores.recall, scores.f1) == pytest.approx([100 * 2 / 3] * 3)
    assert counts_by_type(scores) == {"P": (2, 1, 1), "Q": (1, 2, 1)}
    p, q = scores.by_type
    assert (p.precision, p.recall, p.f1) == pytest.approx((100.0, 50.0, 200 / 3))
    assert (q.precision, q.recall, q.f1) == pytest.approx((50.0, 100.0, 200 / 3))
    assert scores.macro_f1 == pytest.approx(200 / 3)


def test_nothing_found_gives_zero_and_not_an_error():
    scores = evaluate([["O", "O"]], [["O", "O"]])
    assert (scores.scheme, scores.accuracy, scores.sequence_accuracy) == ("conll", 100.0, 100.0)
    assert (scores.precision, scores.recall, scores.f1, scores.macro_f1) == (0.0, 0.0, 0.0, 0.0)
    empty = evaluate([], [])
    assert (empty.accuracy, empty.sequence_accuracy, empty.f1, empty.n_tokens) == (0.0, 0.0, 0.0, 0)


def test_sequence_accuracy_counts_whole_sequences():
    gold = [["B-P"], [], ["O", "B-P"], ["O"]]
    predicted = [["B-P"], [], ["O", "O"], ["O"]]
    scores = evaluate(gold, predicted)
    assert (scores.n_sequences, scores.n_correct_sequences, scores.sequence_accuracy) == (4, 3, 75.0)


def test_gold_label_that_is_never_predicted():
    scores = evaluate_ids([0, 1, 2], [0, 1, 1], [0, 3], ["O", "B-P", "B-NEW"])
    assert counts_by_type(scores) == {"NEW": (1, 0, 0), "P": (1, 2, 1)}
    assert scores.accuracy == pytest.approx(200 / 3)


def test_labels_that_do_not_occur_are_left_out_of_the_tables():
    scores = evaluate_ids([0, 2], [0, 0], [0, 2], ["O", "B-P", "B-Q", "I-Q"])
    assert scores.labels == ("O", "B-Q")
    assert [row.name for row in scores.by_type] == ["Q"]
    assert scores.to_dict()["labels"] == 2


def test_labels_without_prefixes_are_scored_by_token():
    gold = [["DT", "NN", "VB-HL"], ["NN"]]
    predicted = [["DT", "NN", "NN"], ["NN"]]
    scores = evaluate(gold, predicted)
    assert scores.scheme == "tokens"
    assert scores.by_type == ()
    assert (scores.precision, scores.recall, scores.f1, scores.accuracy) == (75.0, 75.0, 75.0, 75.0)
    assert {row.name: (row.gold, row.predicted, row.correct) for row in scores.by_label} == {
        "DT": (1, 1, 1),
        "NN": (2, 3, 2),
        "VB-HL": (1, 0, 0),
    }


def test_outside_tokens_are_no_spans_under_tokens():
    assert one("PER PER O O", "PER O O LOC") == (2, 2, 1)


@given(paired(["DT", "NN", "B-HL", "O", "-LRB-"]))
def test_tokens_are_conlleval_on_raw_labels(case):
    gold, predicted = case
    as_chunks = [[["O" if y == "O" else f"B-{y}" for y in x] for x in side] for side in case]
    scores, expected = evaluate(gold, predicted, "tokens"), evaluate(*as_chunks, "conll")
    for name in ("gold", "predicted", "correct"):
        assert getattr(scores.overall, name) == getattr(expected.overall, name)


@given(paired(["O", "B-P", "I-P", "B-Q"]))
def test_confusion_matrix_and_top_confusions(case):
    gold, predicted = case
    pairs = Counter((g, p) for x, y in zip(gold, predicted, strict=True) for g, p in zip(x, y, strict=True))
    scores = evaluate(gold, predicted)
    matrix = scores.confusion()
    for i, g in enumerate(scores.labels):
        for j, p in enumerate(scores.labels):
            assert matrix[i, j] == pairs[g, p]
    assert matrix.sum() == scores.n_tokens
    errors = {pair: n for pair, n in pairs.items() if pair[0] != pair[1]}
    top = scores.top_confusions(len(errors) + 1)
    assert {(c.gold, c.predicted): c.count for c in top} == errors
    assert [c.count for c in top] == sorted(errors.values(), reverse=True)


@pytest.mark.parametrize(
    ("names", "scheme"),
    [
        *((["O", "B-P", "I-P"], "conll"), (["O", "I-P", "E-P"], "conll"), (["O"], "conll"), ([], "conll")),
        *((["B", "I", "O"], "conll"), (["I", "O"], "conll"), (["B", "M", "E", "S"], "iobes")),
        *((["O", "B-P", "I-P", "E-P", "S-P"], "iobes"), (["O", "B-P", "I-P", "L-P", "U-P"], "iobes")),
        *((["NN", "DT", "VB"], "tokens"), (["NN", "NN-HL", "DT-HL", "B-HL"], "tokens")),
        *((["-LRB-", "NN", "O"], "tokens"), (["N-N", "D-G", "M-D", "ES"], "tokens")),
        (["M", "I", "S", "L", "O", "A", "C"], "tokens"),  # single letters, but not only chunk letters
        (["S", "E"], "tokens"),  # no B or I
        *((["a", "b", "i", "o"], "tokens"), (["O", "PER", "LOC"], "tokens"), (["B-", "I-"], "tokens")),
        (["O", "B-P", "I-P", "B-Q", "-X-"], "conll"),  # one stray label
    ],
)
def test_detected_scheme(names, scheme):
    assert detect_scheme(names) == scheme


def test_unknown_scheme_is_refused():
    with pytest.raises(OptionError, match=r"scheme='bio'.*auto, conll, iobes, tokens"):
        evaluate([["O"]], [["O"]], "bio")


TYPED = ["O", "B-P", "I-P", "E-P", "B-Q", "I-Q", "E-Q"]
UNUSUAL = ["S-P", "U-Q", "[-P", "]-Q", ".", ".-P", "B", "I", "E", "X", "NN", "-X-", "O-P", "B-X-Y", "I-X-Y"]


@given(paired(TYPED))
@settings(max_examples=300)
def test_auto_is_conlleval_for_b_i_o_e(case):
    assert counts_by_type(evaluate(*case, "conll")) == expected_by_type(*case)
    if any(label != "O" for side in case for x in side for label in x):
        assert counts_by_type(evaluate(*case)) == expected_by_type(*case)


@given(paired(TYPED + UNUSUAL))
@settings(max_examples=500)
def test_conll_is_conlleval_for_any_label(case):
    assert counts_by_type(evaluate(*case, "conll")) == expected_by_type(*case)


def seqeval_figures(gold, predicted):
    seqeval = pytest.importorskip("seqeval.metrics.sequence_labeling")
    precision, recall, f1, _ = seqeval.precision_recall_fscore_support(
        gold, predicted, average="micro", zero_division=0, warn_for=()
    )
    return [100 * float(x) for x in (precision, recall, f1)]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("scheme", "alphabet"),
    [
        ("auto", ["O", "B-P", "I-P", "B-Q", "I-Q"]),
        ("iobes", ["O", "B-P", "I-P", "E-P", "S-P", "B-Q", "I-Q", "E-Q", "S-Q"]),
    ],
)
def test_random_labels_against_seqeval(scheme, alphabet):
    rng = np.random.default_rng(3)
    for _ in range(40):
        lengths = rng.integers(1, 12, size=30)
        gold = [[alphabet[i] for i in rng.integers(0, len(alphabet), n)] for n in lengths]
        predicted = [
            [alphabet[rng.integers(0, len(alphabet))] if rng.random() < 0.2 else y for y in x] for x in gold
        ]
        scores = evaluate(gold, predicted, scheme)
        assert [scores.precision, scores.recall, scores.f1] == pytest.approx(seqeval_figures(gold, predicted))


def to_iobes(labels, *, letters="BIES"):
    """IOBES (or, with other letters, BILOU) of well-formed IOB2 labels."""
    begin, inside, end, single = letters
    out = []
    for label, following in zip(labels, [*labels[1:], "O"], strict=False):
        prefix, kind = split_label(label)
        if prefix == "O":
            out.append("O")
            continue
        goes_on = following == f"I-{kind}"
        letter = {("B", True): begin, ("B", False): single, ("I", True): inside, ("I", False): end}
        out.append(f"{letter[prefix, goes_on]}-{kind}")
    return out


@st.composite
def well_formed(draw):
    """Two well-formed IOB2 labellings of sequences of the same lengths."""
    sides = ([], [])
    for length in draw(st.lists(st.integers(0, 8), max_size=4)):
        for side in sides:
            labels, kind = [], None
            for _ in range(length):
                choice = draw(st.sampled_from(["O", "B-P", "B-Q", "I"]))
                labels.append(f"I-{kind}" if choice == "I" and kind else "O" if choice == "I" else choice)
                kind = split_label(labels[-1])[1] or None
            side.append(labels)
    return sides


@given(well_formed(), st.sampled_from(["BIES", "BILU", "BMES", "BMEW"]))
@settings(max_examples=200)
def test_iobes_and_bilou_count_as_their_iob2_form(case, letters):
    gold, predicted = case
    converted = [[to_iobes(x, letters=letters) for x in side] for side in case]
    assert counts_by_type(evaluate(*converted, "iobes")) == expected_by_type(gold, predicted)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "name", ["conll2000/test", "conll2002/esp.testb", "conll2003/eng.testb", "jnlpba/test"]
)
def test_corpora_against_seqeval(corpus, name):
    gold, sentence = [], []
    with gzip.open(corpus(f"{name}.txt.gz"), "rt", encoding="utf-8") as lines:
        for line in lines:
            if line.strip():
                sentence.append(line.split()[-1])
            elif sentence:
                gold.append(sentence)
                sentence = []
    gold = gold[:1500]
    names = sorted({y for x in gold for y in x})
    rng = np.random.default_rng(11)
    predicted = [[names[rng.integers(0, len(names))] if rng.random() < 0.08 else y for y in x] for x in gold]
    scores = evaluate(gold, predicted)
    assert scores.scheme == "conll"
    assert counts_by_type(scores) == expected_by_type(gold, predicted)
    assert [scores.precision, scores.recall, scores.f1] == pytest.approx(seqeval_figures(gold, predicted))


@given(paired(TYPED))
@settings(max_examples=50)
def test_ids_and_strings_agree(case):
    gold, predicted = case
    names = ["I-UNUSED", *reversed(TYPED)]
    flat = [[names.index(y) for x in side for y in x] for side in case]
    seq_ptr = np.cumsum([0, *map(len, gold)])
    by_ids, by_strings = evaluate_ids(*flat, seq_ptr, names, "conll"), evaluate(gold, predicted, "conll")
    a, b = by_ids.to_dict(), by_strings.to_dict()
    a.pop("confusions"), b.pop("confusions")  # equally frequent ones come in label order
    assert a == b


def test_dict_is_json_and_has_the_promised_keys():
    scores = evaluate([["B-P", "O"]], [["B-P", "B-P"]])
    stored = json.loads(json.dumps(scores.to_dict()))
    for key in ("accuracy", "precision", "recall", "f1", "labels", "sequences", "tokens"):
        assert isinstance(stored[key], int | float)
    assert (stored["labels"], stored["sequences"], stored["tokens"]) == (2, 1, 2)
    assert stored["by_type"]["P"] == {
        "precision": 50.0, "recall": 100.0, "f1": pytest.approx(200 / 3), "gold": 1, "predicted": 2,
        "correct": 1,
    }  # fmt: skip
    assert stored["confusions"] == [{"gold": "O", "predicted": "B-P", "count": 1}]


def test_text_opens_with_conllevals_two_lines():
    text = evaluate([["B-P", "O", "B-LONGER"]], [["B-P", "B-P", "O"]]).to_text(n_confusions=5)
    lines = text.splitlines()
    assert lines[0] == "processed 3 tokens with 2 phrases; found: 2 phrases; correct: 1."
    assert lines[1] == "accuracy:  33.33%; precision:  50.00%; recall:  50.00%; FB1:  50.00"
    table = [line for line in lines if line.startswith(("type", "P ", "LONGER"))]
    assert len(table) == 3
    assert len({len(line) for line in table}) == 1
    assert "O         B-P             1" in lines


def test_text_of_tagging_lists_labels():
    text = evaluate([["NN", "VB"]], [["NN", "NN"]]).to_text()
    assert "phrases" not in text
    assert any(line.split()[0] == "VB" for line in text.splitlines() if line)
    assert "label" not in evaluate([["B-P"]], [["B-P"]]).to_text()
    assert "B-P" in evaluate([["B-P"]], [["B-P"]]).to_text(labels=True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0, 1], [0], [0, 2], ["O", "B-P"]), "2 gold labels but 1"),
        (([0, 2], [0, 0], [0, 2], ["O", "B-P"]), "gold label id 2 at token 1"),
        (([0, 0], [0, -1], [0, 2], ["O", "B-P"]), "predicted label id -1 at token 1"),
        (([0, 0], [0, 0], [0, 1], ["O", "B-P"]), "seq_ptr"),
        (([0, 0], [0, 0], [0, 3, 2], ["O", "B-P"]), "seq_ptr"),
        (([0, 0], [0, 0], [], ["O", "B-P"]), "seq_ptr"),
        (([0, 0], [0, 0], [0, 2], ["O", "O"]), "'O' has two ids"),
        (([0.5, 0], [0, 0], [0, 2], ["O", "B-P"]), "label ids"),
    ],
)
def test_bad_input_is_refused(arguments, message):
    with pytest.raises((DataError, OptionError), match=message):
        evaluate_ids(*arguments)


def test_sequences_that_do_not_match_are_named():
    with pytest.raises(DataError, match="1 gold sequences but 2"):
        evaluate([["O"]], [["O"], ["O"]])
    with pytest.raises(DataError, match="sequence 1: 2 gold labels but 1 predicted"):
        evaluate([["O"], ["O", "O"]], [["O"], ["O"]])
