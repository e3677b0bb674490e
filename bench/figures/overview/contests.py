"""Where they take part: problems, the score that counts, the seconds of a training, and the goals."""

from __future__ import annotations

from dataclasses import dataclass

from bench.figures.overview.entries import CLASSIFIERS, COMMON, DENSE, LARGE, Entry

__all__ = ["BROWN", "CONTESTS", "END_GAP", "GAPS", "NEAR", "QUICK_CONTESTS", "Contest", "contest"]

#: Relative gaps that the tables ask for; a run ends a little below the last.
GAPS = (1e-2, 1e-3, 1e-4)
END_GAP = 5e-5
#: By how much less than the best score is near, in percent.
NEAR = 0.1


@dataclass(frozen=True)
class Contest:
    """A problem, and how trainers are compared on it.

    Parameters
    ----------
    problem : str
        Name in `bench.problems`.
    title, short : str
        In tables and pictures; the short one above columns.
    score : str
        That which counts: ``f1`` of spans, or ``accuracy`` of tokens or documents.
    seconds : float
        Of a training at most; entries may have a share of them.
    entries : tuple of Entry
        Who takes part.
    sparse : bool
        Whether a value of the objective takes so long that only looks have one.
    """

    problem: str
    title: str
    short: str
    score: str
    seconds: float
    entries: tuple[Entry, ...] = COMMON
    sparse: bool = False

    @property
    def score_title(self) -> str:
        """The score in words."""
        return {"f1": "F1", "accuracy": "accuracy"}[self.score]


BROWN = "brown-observed"
_CLASSES = (*COMMON, *CLASSIFIERS)
_QUARTER, _EARN = "conll2000-quarter-all", "reuters-apte-earn"
_QUARTER_TITLE, _EARN_TITLE = "CoNLL-2000 chunking, a quarter", "Reuters-21578, earn or not"
CONTESTS = (
    Contest(_QUARTER, _QUARTER_TITLE, "chunks, ¼", "f1", 6.0),
    Contest("conll2000-all", "CoNLL-2000 chunking", "chunks", "f1", 20.0),
    Contest("conll2002-es-all", "CoNLL-2002 Spanish names", "names, Spanish", "f1", 20.0),
    Contest("conll2003-all", "CoNLL-2003 English names", "names, English", "f1", 20.0),
    Contest("jnlpba-all", "JNLPBA biomedical names", "names, JNLPBA", "f1", 28.0),
    Contest("ocr-all", "OCR letters", "letters", "accuracy", 8.0, (*COMMON, *DENSE)),
    Contest("ewt-xpos-observed", "English EWT parts of speech", "tags, EWT", "accuracy", 15.0),
    Contest("reuters-apte", "Reuters-21578 topics", "topics", "accuracy", 10.0, _CLASSES),
    Contest(_EARN, _EARN_TITLE, "earn or not", "accuracy", 3.0, _CLASSES),
    Contest(BROWN, "Brown parts of speech", "tags, Brown", "accuracy", 200.0, LARGE, sparse=True),
)
#: The short version: what is small, with the same entries.
QUICK_CONTESTS = (
    Contest(_QUARTER, _QUARTER_TITLE, "chunks, ¼", "f1", 4.0),
    Contest("recipes-few", "recipe lines", "recipes", "f1", 1.0),
    Contest(_EARN, _EARN_TITLE, "earn or not", "accuracy", 2.0, _CLASSES),
)


def contest(problem: str, quick: bool) -> Contest:
    """The contest on a problem."""
    return next(one for one in (QUICK_CONTESTS if quick else CONTESTS) if one.problem == problem)
