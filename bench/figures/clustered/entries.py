"""Who takes part, on which problems: trainers with their options, topics, ridges, policies of the clustering.

The paper's ridge 1/sigma^2 is our l2. It reports the best F1 at 1e-7; 1 is crfit's default.
"""

from __future__ import annotations

from dataclasses import dataclass

from bench.corpora.reuters21578 import N_WORDS, TOPICS

__all__ = [
    "AFFINE",
    "BFGS",
    "CLUSTERED",
    "CLUSTERED_FIVE",
    "DENSE",
    "DENSE_CLUSTERED",
    "DENSE_TOPICS",
    "DIAGONAL",
    "FACTORS",
    "FIELD",
    "FIFTY",
    "FIS",
    "FIVE",
    "IIS",
    "MERGED",
    "METHODS",
    "NAMES",
    "NAMES_FIELD",
    "NEWTON",
    "PLAIN",
    "POLICY_TOPICS",
    "QUICK",
    "QUICK_NAMES",
    "QUICK_NAMES_FIELD",
    "RIDGE",
    "RIDGES",
    "ROUNDS",
    "ROWS",
    "SCIPY",
    "SHOWN_TOPICS",
    "SMALL_RIDGE",
    "SWEEP",
    "SWEEP_TOPICS",
    "TITLES",
    "Entry",
    "Policy",
    "policies",
    "topic_of",
    "topic_problem",
]


@dataclass(frozen=True)
class Entry:
    """A trainer with its options.

    Parameters
    ----------
    key, title : str
        In ids and rows; in tables and pictures.
    text : str
        As ``crfit race`` takes it; empty for SciPy's L-BFGS-B.
    """

    key: str
    title: str
    text: str


PLAIN = Entry("lbfgs", "L-BFGS", "lbfgs")
CLUSTERED = Entry("clustered", "clustered L-BFGS", "clustered_lbfgs")
AFFINE = Entry("affine", "clustered, affine", "clustered_lbfgs:coarse=affine")
FIFTY = Entry("lbfgs-50", "L-BFGS(50)", "lbfgs:memory=50")
DIAGONAL = Entry("diagonal", "L-BFGS, diagonal scaling", "lbfgs:scaling=diagonal")
NEWTON = Entry("newton_cg", "Newton-CG", "newton_cg")
SCIPY = Entry("scipy", "SciPy's L-BFGS-B", "")
#: Both with as many pairs as the paper's, which has 3 to 7.
FIVE = Entry("lbfgs-5", "L-BFGS(5)", "lbfgs:memory=5")
CLUSTERED_FIVE = Entry("clustered-5", "clustered L-BFGS(5)", "clustered_lbfgs:memory=5")
#: Everybody on a topic.
FIELD = (PLAIN, CLUSTERED, AFFINE, FIVE, CLUSTERED_FIVE, FIFTY, DIAGONAL, NEWTON, SCIPY)
#: Those of the sweep over ridges.
SWEEP = (PLAIN, CLUSTERED)

BFGS = Entry("bfgs", "BFGS", "bfgs")
#: The paper's policy for BFGS. With as many pairs as there are steps L-BFGS is BFGS.
DENSE_CLUSTERED = Entry(
    "dense-clustered",
    "clustered BFGS",
    f"clustered_lbfgs:clustering=kmeans:cluster_factor=15:rounds=1:memory={N_WORDS}",
)
IIS = Entry("iis", "IIS", "iis")
FIS = Entry("fis", "FIS", "fis")
#: With the few words that a dense matrix allows.
DENSE = (BFGS, DENSE_CLUSTERED, PLAIN, IIS, FIS)

#: Clusters of whole attributes, which keep the rows of a chain's weights.
ROWS = Entry("rows", "clustered, rows", "clustered_lbfgs:clustering=rows")
#: On lines that are made.
QUICK_NAMES_FIELD = (PLAIN, CLUSTERED, ROWS, NEWTON)
NAMES_FIELD = (PLAIN, CLUSTERED, AFFINE, ROWS, FIFTY, DIAGONAL, NEWTON)


@dataclass(frozen=True)
class Policy:
    """A setting of the clustering.

    Parameters
    ----------
    clustering : {"chunks", "kmeans", "temporal", "rows"}
        How clusters are made.
    factor : int
        Features in a cluster.
    rounds : int
        Of fine and coarse runs.
    aggregate : {"auto", "true", "false"}
        Whether features are summed up once for each clustering; auto: where that pays.
    """

    clustering: str = "chunks"
    factor: int = 10
    rounds: int = 2
    aggregate: str = "auto"

    @property
    def entry(self) -> Entry:
        """What runs with it."""
        key = f"{self.clustering}-{self.factor}-{self.rounds}-{self.aggregate}"
        text = (
            f"clustered_lbfgs:clustering={self.clustering}:cluster_factor={self.factor}:rounds={self.rounds}"
            f":aggregate={self.aggregate}"
        )
        return Entry(key, f"{self.clustering}, factor {self.factor}, {self.rounds} rounds", text)


ROUNDS, FACTORS = (1, 2, 3), (2, 5, 10, 15, 50)
METHODS = ("chunks", "kmeans", "temporal", "rows")


def policies() -> list[Policy]:
    """Those of Tables II and V, each once."""
    wanted = [Policy(rounds=rounds) for rounds in ROUNDS]
    wanted += [Policy(factor=factor, aggregate=on) for factor in FACTORS for on in ("true", "false")]
    wanted += [Policy(method, factor) for method in METHODS for factor in FACTORS]
    return list(dict.fromkeys(wanted))


RIDGES = tuple(float(f"1e{power}") for power in range(-9, 3))
SMALL_RIDGE, RIDGE = 1e-7, 1.0
#: A large topic and a middle one, of which the paper speaks.
SHOWN_TOPICS = SWEEP_TOPICS = POLICY_TOPICS = ("earn", "money-fx")
DENSE_TOPICS = ("earn", "acq", "money-fx")

NAMES, MERGED = "conll2003-three", "conll2000-all"
#: Of the quick version: a classifier and a chain without files.
QUICK, QUICK_NAMES = "rows-small", "recipes-few"


def topic_problem(topic: str, *, dense: bool = False) -> str:
    """The problem of a topic against the rest, with all words or with few."""
    return f"reuters-apte-{N_WORDS}-{topic}" if dense else f"reuters-apte-{topic}"


def topic_of(problem: str) -> str:
    """The topic of a problem; the name of one that has none."""
    return problem.removeprefix("reuters-apte-").removeprefix(f"{N_WORDS}-")


#: What each problem is called.
TITLES = {
    **{topic_problem(topic): topic for topic in TOPICS},
    **{topic_problem(topic, dense=True): f"{topic}, {N_WORDS} words" for topic in TOPICS},
    NAMES: "CoNLL-2003 names, three attributes",
    MERGED: "CoNLL-2000",
    QUICK: "made rows",
    QUICK_NAMES: "recipe lines",
}
