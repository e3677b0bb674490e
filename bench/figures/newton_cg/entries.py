"""Who takes part: trainers with their options, as on the command line of ``crfit race``, and where they end.

``LOG`` is the papers' arithmetic, forward-backward with logarithms and exponentials at every step; ``SCALED``
is crfit's own. The papers' Newton-CG keeps all pair marginals; in our arithmetic it keeps forward and
backward vectors, which give the same products.
"""

from __future__ import annotations

from dataclasses import dataclass

from bench.figures.newton_cg.goals import Goal

__all__ = [
    "COLD",
    "DEFAULT",
    "EG",
    "KEPT",
    "LBFGS_5",
    "LBFGS_10",
    "LBFGS_50",
    "LOG",
    "METHODS",
    "NCG_4000",
    "NCG_AD",
    "NCG_ALL",
    "NCG_NONE",
    "ONLINE",
    "ONLINE_PASSES",
    "PAPERS",
    "QUICK_METHODS",
    "QUICK_PAPERS",
    "RIVALS",
    "SCALED",
    "SGD_EXPONENTIAL",
    "SGD_INVERSE",
    "SUPERLINEAR",
    "WINNERS",
    "Entry",
    "in_papers_arithmetic",
]

SCALED, LOG = "scaled", "log"
#: On-line methods do not come to the optimum, and end after so many passes.
ONLINE_PASSES = 60.0
#: Sequences whose marginals Newton-CG keeps if not all or none.
KEPT = 4000


@dataclass(frozen=True)
class Entry:
    """A trainer with its options.

    Parameters
    ----------
    key : str
        In ids of tasks and in rows.
    title : str
        In tables and pictures.
    text : str
        As ``crfit race`` takes it.
    arithmetic : str
        ``SCALED`` or ``LOG``.
    end : Goal
        At which a run ends; a little below the last that the tables ask for.
    max_passes : float or None
        At which it ends too.
    """

    key: str
    title: str
    text: str
    arithmetic: str = SCALED
    end: Goal = Goal(0.009)  # noqa: RUF009
    max_passes: float | None = None

    @property
    def online(self) -> bool:
        """Whether it visits the sequences in a random order, so that seeds make a difference."""
        return self.max_passes is not None


# Newton's method from the first step on.
_FROM_ZERO = "newton_cg:start=none"
# As the papers have it: a trust region, no preconditioner, a constant CG tolerance.
_AS_PUBLISHED = f"{_FROM_ZERO}:globalisation=trust_region:preconditioner=none:forcing=const:xi=0.5"

DEFAULT = Entry("newton_cg", "newton_cg", "newton_cg")
NCG_ALL = Entry("ncg-all", "Newton-CG, all kept", f"{_AS_PUBLISHED}:cache=all")
NCG_4000 = Entry("ncg-4000", "Newton-CG, 4,000 kept", f"{_AS_PUBLISHED}:cache={KEPT}")
NCG_NONE = Entry("ncg-none", "Newton-CG, none kept", f"{_AS_PUBLISHED}:cache=none")
NCG_AD = Entry("ncg-ad", "Newton-CG, AD", f"{_AS_PUBLISHED}:curvature=ad")
LBFGS_5 = Entry("lbfgs-5", "L-BFGS(5)", "lbfgs:memory=5")
LBFGS_10 = Entry("lbfgs-10", "L-BFGS(10)", "lbfgs:memory=10")
LBFGS_50 = Entry("lbfgs-50", "L-BFGS(50)", "lbfgs:memory=50")
SGD_INVERSE = Entry("sgd-inverse", "SGD, 1/k", "sgd:schedule=inverse", max_passes=ONLINE_PASSES)
SGD_EXPONENTIAL = Entry(
    "sgd-exponential", "SGD, 0.85^k", "sgd:schedule=exponential", max_passes=ONLINE_PASSES
)
EG = Entry("eg", "EG", "eg", max_passes=ONLINE_PASSES)

ONLINE = (SGD_INVERSE, SGD_EXPONENTIAL, EG)
METHODS = (DEFAULT, NCG_ALL, NCG_4000, NCG_NONE, NCG_AD, LBFGS_5, LBFGS_10, LBFGS_50, *ONLINE)
QUICK_METHODS = (DEFAULT, NCG_ALL, NCG_NONE, LBFGS_10, LBFGS_50, SGD_EXPONENTIAL)


def in_papers_arithmetic(entry: Entry) -> Entry:
    """The same with logarithms and kept pair marginals, to where the papers' ratios are compared."""
    kept = ":storage=pairs" if entry.key in (NCG_ALL.key, NCG_NONE.key) else ""
    return Entry(f"{entry.key}-log", f"{entry.title}, log", entry.text + kept, LOG, Goal(0.9))


PAPERS = tuple(map(in_papers_arithmetic, (NCG_ALL, NCG_NONE, NCG_AD, LBFGS_50)))
QUICK_PAPERS = tuple(map(in_papers_arithmetic, (NCG_ALL, NCG_NONE, LBFGS_50)))

#: CG tolerance min(0.5, sqrt(|g| / |g_0|)), which goes to 0; to a gap where the rate shows.
SUPERLINEAR = Entry(
    "ncg-superlinear",
    "Newton-CG, superlinear forcing",
    _AS_PUBLISHED.replace("forcing=const:xi=0.5", "forcing=superlinear"),
    end=Goal(1e-5),
)

#: The default with its start on the dual, the same without, and the batch method to beat; in rounds.
COLD = Entry("cold", "newton_cg from zero", _FROM_ZERO)
WINNERS = tuple(Entry(f"{entry.key}-rounds", entry.title, entry.text) for entry in (DEFAULT, COLD, LBFGS_10))
RIVALS = (WINNERS[0], WINNERS[2])
