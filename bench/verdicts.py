"""What a paper says beside what comes out here: the lines, the verdicts, and the two tables made of them.

    holds                                   in all settings in which it was looked at
    holds in the paper's arithmetic only    with logarithms at every step as there, not in crfit's own
    holds in crfit's arithmetic only        the other way round
    does not hold                           by the numbers; a remark says how, "weaker" or "not settled"

A verdict follows from numbers alone and is no claim of ours: `bench.check` does not ask that it be good.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from bench.figures.base import markdown

__all__ = [
    "FAILS",
    "HOLDS",
    "OURS_ONLY",
    "PAPER_ONLY",
    "UNKNOWN",
    "UNSETTLED",
    "Finding",
    "claims_table",
    "overall",
    "short_words",
    "summary_table",
    "verdict_tables",
]

HOLDS = "holds"
PAPER_ONLY = "holds in the paper's arithmetic only"
OURS_ONLY = "holds in crfit's arithmetic only"
FAILS = "does not hold"
UNKNOWN = "not measured in this run"
_NOT_SETTLED = "not settled"
#: The numbers are too near each other, or too few, to tell.
UNSETTLED = f"{FAILS} ({_NOT_SETTLED})"


@dataclass(frozen=True)
class Finding:
    """One statement of a paper in one setting.

    Parameters
    ----------
    claim : str
        The statement in a few words, the same in all its settings.
    where : str
        The setting: corpus, weights, ridge, goal.
    paper : str
        What the paper has; empty if it gives no number.
    here : str
        What was measured.
    verdict : str
        `HOLDS`, `PAPER_ONLY`, `OURS_ONLY`, `FAILS` or `UNKNOWN`, all but the last with a remark in
        parentheses if need be.
    shown : tuple of str
        Stored tables and pictures of the group behind it.
    """

    claim: str
    where: str
    paper: str
    here: str
    verdict: str
    shown: tuple[str, ...] = ()

    @property
    def plain_verdict(self) -> str:
        """Without its remark."""
        return self.verdict.partition(" (")[0]

    @property
    def unsettled(self) -> bool:
        """Whether the numbers do not tell."""
        return self.plain_verdict == FAILS and _NOT_SETTLED in self.verdict


def verdict_tables(findings: Sequence[Finding]) -> dict[str, str]:
    """The three tables of a paper by their names: every finding, a line for each claim, a sentence."""
    return {
        "papers": claims_table(findings),
        "claims": summary_table(findings),
        "short": short_words(findings),
    }


def claims_table(findings: Sequence[Finding]) -> str:
    """Every finding, with links to what is stored behind it; a claim is named in the first of its lines."""
    rows, before = [], ""
    for one in findings:
        claim, before = "" if one.claim == before else one.claim, one.claim
        rows.append([claim, one.where, one.paper, one.here, one.verdict, _links(one.shown)])
    headings = ["the paper says", "where", "the paper has", "here", "verdict", "stored"]
    return markdown(headings, rows, words=True)


def summary_table(findings: Sequence[Finding]) -> str:
    """One line for each claim: the verdict on all its settings, and in how many of them it holds."""
    rows = []
    for claim in dict.fromkeys(one.claim for one in findings):
        about = [one for one in findings if one.claim == claim]
        known = [one for one in about if one.plain_verdict != UNKNOWN]
        held = sum(one.plain_verdict == HOLDS for one in known)
        shown = tuple(dict.fromkeys(name for one in about for name in one.shown))
        papers = "; ".join(dict.fromkeys(one.paper for one in about if one.paper))
        rows.append([claim, papers, f"{held} of {len(known)}", overall(about), _links(shown)])
    headings = ["the paper says", "the paper has", "holds in settings", "verdict", "stored"]
    return markdown(headings, rows, words=True)


def overall(findings: Sequence[Finding]) -> str:
    """The verdict on a claim in all its settings; what was not measured says nothing.

    It holds where it holds everywhere. Where it holds in some settings alone it does not hold as it was said,
    and the remark says in how many it does, and in how many in one arithmetic only or without being settled.
    What all settings remark is kept.
    """
    known = [one for one in findings if one.plain_verdict != UNKNOWN]
    if not known:
        return UNKNOWN
    if len({one.verdict for one in known}) == 1:
        return known[0].verdict
    found = {one.plain_verdict for one in known}
    for whole, parts in (
        (HOLDS, {HOLDS}),
        (PAPER_ONLY, {HOLDS, PAPER_ONLY}),
        (OURS_ONLY, {HOLDS, OURS_ONLY}),
    ):
        if found <= parts:
            return whole
    counts = {
        "in the paper's arithmetic only": sum(one.plain_verdict == PAPER_ONLY for one in known),
        "in crfit's arithmetic only": sum(one.plain_verdict == OURS_ONLY for one in known),
        _NOT_SETTLED: sum(one.unsettled for one in known),
    }
    held = sum(one.plain_verdict == HOLDS for one in known)
    apart = "".join(f", {count} {words}" for words, count in counts.items() if count)
    return f"{FAILS} ({held} of {len(known)} settings do{apart})" if held or apart else FAILS


def short_words(findings: Sequence[Finding]) -> str:
    """How many claims have which verdict, in a sentence."""
    verdicts = [
        overall([one for one in findings if one.claim == claim]).partition(" (")[0]
        for claim in dict.fromkeys(one.claim for one in findings)
    ]
    told = [f"{words}: {verdicts.count(verdict)}" for verdict, words in _SHORT.items() if verdict in verdicts]
    return f"{len(verdicts)} claims: {'; '.join(told)}.\n"


#: In a sentence about many claims.
_SHORT = {
    HOLDS: "hold wherever they were looked at",
    PAPER_ONLY: "hold in the paper's arithmetic only",
    OURS_ONLY: "hold in crfit's arithmetic only",
    FAILS: "do not hold, or not everywhere",
    UNKNOWN: "not measured in this run",
}


def _links(names: Sequence[str]) -> str:
    """Relative to the stored table; `bench.publish` makes them lead on from the page that shows it."""
    return ", ".join(f"[{PurePosixPath(name).stem}]({name})" for name in names)
