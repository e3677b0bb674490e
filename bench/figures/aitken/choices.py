"""The stored trials on held-out sequences: which setting was chosen, and what the others had."""

from __future__ import annotations

from dataclasses import dataclass

from bench.figures.aitken.entries import CORPORA, PSA_TUNED, TUNED, Entry
from bench.figures.aitken.scores import problems_in
from bench.figures.aitken.tuning import best_setting
from bench.figures.base import Results, Row, markdown

__all__ = ["Choice", "chosen", "tuning_table"]


@dataclass(frozen=True)
class Choice:
    """What an entry runs with.

    Parameters
    ----------
    setting : str
        Trainer and options.
    f1 : float
        Its mean on the held-out sequences.
    n_settings, n_tries : int
        How many were tried, and with how many seeds.
    """

    setting: str
    f1: float
    n_settings: int
    n_tries: int


def _trials(results: Results, problem: str, entry: Entry) -> list[Row]:
    return results.where(problem=problem, variant=entry.key, row="tuning")


def chosen(results: Results, problem: str, entry: Entry) -> Choice | None:
    """The setting of an entry on a problem; None if it was not tuned there."""
    rows = _trials(results, problem, entry)
    if not rows:
        return None
    return Choice(*best_setting(rows), len(rows), rows[0]["n_tries"])


def tuning_table(results: Results) -> str:
    """F1 on the held-out sequences of every setting, a column for each corpus and number of passes."""
    columns = [
        (problem, entry)
        for problem in problems_in(results)
        for entry in TUNED.values()
        if _trials(results, problem, entry)
    ]
    if not columns:
        return ""
    rivals = {entry.key: PSA_TUNED.get(passes) for passes, entry in TUNED.items()}
    found: dict[str, list[str]] = {}
    for number, (problem, entry) in enumerate(columns):
        for one in (entry, rivals[entry.key]):
            choice = None if one is None else chosen(results, problem, one)
            if one is None or choice is None:
                continue
            for row in _trials(results, problem, one):
                setting, words = row["setting"], f"{row['held_out_f1']:.2f}"
                words = f"**{words}**" if setting == choice.setting else words
                found.setdefault(setting, [""] * len(columns))[number] = words
    heads = [f"{CORPORA[problem]}, {entry.horizon:g} pass" for problem, entry in columns]
    heads = [head if head.endswith(("0.1 pass", " 1 pass")) else f"{head}es" for head in heads]
    return markdown(
        ["F1 on held-out training sequences", *heads], ([key, *row] for key, row in found.items())
    )
