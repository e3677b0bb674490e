"""Entries, problems, and the numbers of the paper that are known.

The paper's ridge 1/sigma^2 is crfit's l2. It reports the best F1 at 1e-7; 1 is crfit's default.
"""

import json
from pathlib import Path

from bench.corpora.reuters21578 import N_WORDS, TOPICS
from bench.records import Entry

PLAIN = Entry("lbfgs", "L-BFGS", "lbfgs")
CLUSTERED = Entry("clustered", "clustered L-BFGS", "clustered_lbfgs")
AFFINE = Entry("affine", "clustered, affine", "clustered_lbfgs:coarse=affine")
FIFTY = Entry("lbfgs-50", "L-BFGS(50)", "lbfgs:memory=50")
DIAGONAL = Entry("diagonal", "L-BFGS, diagonal scaling", "lbfgs:scaling=diagonal")
NEWTON = Entry("newton_cg", "crfit (default)", "newton_cg")
#: With as many stored pairs as the paper (3 to 7).
FIVE = Entry("lbfgs-5", "L-BFGS(5)", "lbfgs:memory=5")
CLUSTERED_FIVE = Entry("clustered-5", "clustered L-BFGS(5)", "clustered_lbfgs:memory=5")
#: Clusters of whole attributes, which keep the layout of a chain's weights.
ROWS = Entry("rows", "clustered, rows", "clustered_lbfgs:clustering=rows")
BFGS, IIS, FIS = Entry("bfgs", "BFGS", "bfgs"), Entry("iis", "IIS", "iis"), Entry("fis", "FIS", "fis")
#: The paper's policy for BFGS. With a stored pair per step, L-BFGS is BFGS.
DENSE_CLUSTERED = Entry(
    "dense-clustered",
    "clustered BFGS",
    f"clustered_lbfgs:clustering=kmeans:cluster_factor=15:rounds=1:memory={N_WORDS}",
)
#: Entries on a topic, in the sweep over l2, with few words for a dense matrix, and on names.
FIELD = (PLAIN, CLUSTERED, AFFINE, FIVE, CLUSTERED_FIVE, FIFTY, DIAGONAL, NEWTON)
SWEEP = (PLAIN, CLUSTERED)
DENSE = (BFGS, DENSE_CLUSTERED, PLAIN, IIS, FIS)
NAMES_FIELD = (PLAIN, CLUSTERED, AFFINE, ROWS, FIFTY, DIAGONAL, NEWTON)
QUICK_NAMES_FIELD = (PLAIN, CLUSTERED, ROWS, NEWTON)

#: Settings of the clustering. The paper finds the largest size too large.
ROUNDS, FACTORS = (1, 2, 3), (2, 5, 10, 15, 50)
METHODS = ("chunks", "kmeans", "temporal", "rows")


def policy(clustering: str = "chunks", factor: int = 10, rounds: int = 2, aggregate: str = "auto") -> Entry:
    """Clustered L-BFGS; `aggregate`: sum the features once per clustering (auto: if that is faster)."""
    options = f"clustering={clustering}:cluster_factor={factor}:rounds={rounds}:aggregate={aggregate}"
    title = f"{clustering}, factor {factor}, {rounds} rounds"
    return Entry(f"{clustering}-{factor}-{rounds}-{aggregate}", title, f"clustered_lbfgs:{options}")


#: Policies with rounds and factors only, and all of Tables II and V.
FEW_POLICIES = tuple(
    dict.fromkeys(
        [policy(rounds=n) for n in ROUNDS]
        + [policy(factor=n, aggregate=on) for n in FACTORS for on in ("true", "false")]
    )
)
POLICIES = tuple(dict.fromkeys([*FEW_POLICIES, *(policy(how, n) for how in METHODS for n in FACTORS)]))

RIDGES = tuple(float(f"1e{power}") for power in range(-9, 3))
SMALL_RIDGE, RIDGE = 1e-7, 1.0
#: A large and a medium topic, both mentioned in the paper.
SHOWN_TOPICS = ("earn", "money-fx")
DENSE_TOPICS = ("earn", "acq", "money-fx")
NAMES, MERGED = "conll2003-three", "conll2000-all"
#: Of the quick version: a classifier and a chain without files.
QUICK, QUICK_NAMES = "rows-small", "recipes-few"


def topic_problem(topic: str, *, dense: bool = False) -> str:
    """The problem of a topic against the rest, with all words or with few."""
    return f"reuters-apte-{N_WORDS}-{topic}" if dense else f"reuters-apte-{topic}"


TITLES = {
    **{topic_problem(topic): topic for topic in TOPICS},
    **{topic_problem(topic, dense=True): f"{topic}, {N_WORDS} words" for topic in TOPICS},
    NAMES: "CoNLL-2003 names",
    MERGED: "CoNLL-2000",
    QUICK: "generated rows",
    QUICK_NAMES: "recipe lines",
}

# --- the paper ---------------------------------------------------------------------------------------------

#: How many times as fast as L-BFGS: for classifiers (abstract, conclusions), and for names (section IV-C).
SPEED, NAMES_SPEED = (2.0, 9.0), 2.0

# --- the classifier's race ---------------------------------------------------------------------------------

OURS = "crfit_loglinear"
_LISTED = json.loads(Path(__file__).with_name("races.json").read_text(encoding="utf-8"))
#: Title of each problem, seconds that a training may take, rounds; tools that train once more to the end.
RACES: dict[str, tuple[str, float, int]] = {name: tuple(one) for name, one in _LISTED["problems"].items()}
ENDS = {name: [(tool, variant) for tool, variant in some] for name, some in _LISTED["ends"].items()}
#: Labels of the race by tool and variant.
RACERS: dict[tuple[str, str], str] = {(tool, variant): title for tool, variant, title, _ in _LISTED["racers"]}


def _noted(word: str) -> tuple[tuple[str, str], ...]:
    return tuple((tool, variant) for tool, variant, _, notes in _LISTED["racers"] if word in notes.split())


#: On the interactive page only, not among the eight of a picture; in the short version.
PAGE_ONLY, QUICK_RACERS = _noted("page"), _noted("quick")
#: Tools that report every iteration; they run to a gap that shows that all minimise the same function.
WATCHED = _noted("watched")
#: Tools that report nothing while training need a separate training per point, four times the work. On large
#: problems they have so many seconds, enough to see whether one of them is the fastest.
UNWATCHED = _noted("unwatched")
UNWATCHED_SECONDS = {"rows-ten": 15.0, "rows-binary": 12.0, "reuters-apte": 10.0}
#: Relative gaps of the race, its last gap, and the tolerance for equal final values.
GAPS, LAST_GAP, SAME = (1e-2, 1e-3, 1e-4), 5e-5, 1e-6
