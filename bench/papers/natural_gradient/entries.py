"""The trainers with their options, as ``crfit race`` takes them, and the paper's scores.

U1 multiplies the residual u of a weight by g'(u), U2 replaces it by g(u), with g = arctan, erf or gd.
"""

import math

from bench.records import Entry

SMALL, LARGE = "conll2000-crfsuite-observed", "conll2000-crfsuite-all"
#: The paper's feature sets and their numbers of weights.
PROBLEMS = {SMALL: "small", LARGE: "large"}
WEIGHTS = {SMALL: 452_755, LARGE: 7_385_312}
#: Seeds of the entries whose differences are judged, of the others, and of the slopes.
PAIRED, SEEDS, FEW = 12, 10, 5
ALPHA, ROOT = 5 * math.sqrt(math.pi), math.sqrt(10.0)  # erf(alpha u) has slope 10 at 0


def _ngd(potential: str, parameter: float, update: str = "U2") -> str:
    return f"ngd:update={update}:potential={potential}:parameter={parameter!r}"


#: Notes are the paper's accuracies of tokens, with their deviations, on the small and on the large set.
SGD, PA, LBFGS, U1, ARCTAN_1, ARCTAN_2, ERF, GD, ADAGRAD, PERCEPTRON, AROW = (
    Entry(key, title, text, seeds=seeds, notes=dict(zip(PROBLEMS, paper, strict=False)))
    for key, title, text, seeds, *paper in (
        ("sgd", "SGD", "sgd:schedule=bottou:calibration=crfsuite", PAIRED, (95.98, 0.02), (96.02, 0.01)),
        ("pa", "PA", "pa", SEEDS, (95.82, 0.04), (95.90, 0.03)),
        ("lbfgs", "L-BFGS", "lbfgs:memory=6", 1, (96.00, math.nan), (96.01, math.nan)),
        ("u1", "U1 arctan", _ngd("arctan", 0.1, "U1"), PAIRED, (95.99, 0.02), (96.06, 0.03)),
        ("arctan-1", "U2 arctan(3.16 u)", _ngd("arctan", ROOT), PAIRED, (96.02, 0.02), (96.06, 0.02)),
        ("arctan-2", "U2 arctan(10 u)", _ngd("arctan", 10.0), PAIRED, (96.03, 0.01), (96.06, 0.03)),
        ("erf", "U2 erf(8.86 u)", _ngd("erf", ALPHA), SEEDS, (96.03, 0.02), (96.06, 0.02)),
        ("gd", "U2 gd(10 u)", _ngd("gd", 10.0), SEEDS, (96.02, 0.02), (96.06, 0.02)),
        ("adagrad", "AdaGrad", "adagrad", PAIRED),
        ("perceptron", "perceptron", "perceptron", SEEDS),
        ("arow", "AROW", "arow", SEEDS),
    )
)
SIGMOIDS = (ARCTAN_1, ARCTAN_2, ERF, GD)
NATURAL = (U1, *SIGMOIDS)
#: In the order of the paper's Table 2, and trainers that it does not compare with.
PAPER = (SGD, PA, LBFGS, *NATURAL)
BESIDE = (ADAGRAD, PERCEPTRON, AROW)
#: Trainers that learn from wrong best paths, without a likelihood.
MARGIN = (PA, PERCEPTRON, AROW)
QUICK_ENTRIES = (SGD, PA, LBFGS, ARCTAN_1, ARCTAN_2, ADAGRAD)


def _slope(name: str, slope: float, parameter: float) -> Entry:
    title, text = f"U2 {name}, slope {slope:g}", _ngd(name, parameter)
    return Entry(f"{name}-slope-{slope:g}", title, text, seeds=FEW)


#: Entries of each sigmoid by slope at 0; the paper uses about 3 and 10.
BY_SLOPE = {
    "arctan": {ROOT: ARCTAN_1, 10.0: ARCTAN_2, 30.0: _slope("arctan", 30.0, 30.0)},
    "erf": {3.0: _slope("erf", 3.0, 0.3 * ALPHA), 10.0: ERF, 30.0: _slope("erf", 30.0, 3.0 * ALPHA)},
    "gd": {3.0: _slope("gd", 3.0, 3.0), 10.0: GD, 30.0: _slope("gd", 30.0, 30.0)},
}
SLOPES = tuple(entry for some in BY_SLOPE.values() for entry in some.values() if entry not in SIGMOIDS)

#: Natural gradients timed with the transform computed (``-exact``) and from a lookup table (``-table``).
POTENTIALS = (U1, ARCTAN_2, ERF, GD)
#: `ngd` with the identity as transform: the cost of `ngd` without that of a transform.
QUADRATIC = Entry("quadratic", "U2 quadratic", "ngd:update=U2:potential=quadratic")
_HOW = {("exact", "computed"): "false", ("table", "lookup table"): "true"}
#: Entries whose epochs are timed, with the number of threads.
TIMED = {
    **dict.fromkeys((SGD, QUADRATIC), 1),
    **{
        Entry(f"{entry.key}-{how}", f"{entry.title}, {words}", f"{entry.text}:table={table}"): 1
        for entry in POTENTIALS
        for (how, words), table in _HOW.items()
    },
    **dict.fromkeys((ADAGRAD, PA, PERCEPTRON, AROW), 1),
    **{
        Entry(f"{entry.key}-batch-{n}", f"{entry.title}, mini-batch 8, {words}", f"{entry.text}:batch=8"): n
        for entry in (SGD, ARCTAN_2)
        for n, words in ((1, "1 thread"), (2, "2 threads"))
    },
}
#: CRFsuite's algorithms, by their names in rows.
RIVAL, RIVAL_KEYS = "python_crfsuite", {name: f"crfsuite-{name}" for name in ("l2sgd", "pa", "lbfgs")}
RIVAL_TIMED = ("l2sgd", "pa")
#: CRFsuite's algorithms that are scored, and the entries whose published scores they check.
RIVAL_SCORES = {"lbfgs": (LBFGS, SGD), "pa": (PA,)}
