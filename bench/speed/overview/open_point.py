"""The Japanese paper's open point: does SGD come before Newton-CG on a large corpus?

The paper speaks of the best score; gaps are looked at too, and both forms of Newton-CG: as published, and
with its start on the dual or by stochastic descent. For SGD stands the soonest of its schedules and batches.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import product

from bench.claims import AT_LEAST, NOISE, Claim, Found
from bench.records import Results
from bench.speed.overview import contests as race
from bench.tables import bullets, prose

REPORT = "on tagging parts of speech SGD came to the best score sooner than the proposed method"
SGD = (race.SGD, race.SGD_EXPONENTIAL, race.BATCH_SGD)


def brown(results: Results) -> race.Contestants | None:
    """The problem that stands in for the paper's largest."""
    return next((one for one in race.boards(results) if one.problem == race.BROWN), None)


def _sooner(results: Results) -> Iterator[Found]:
    one = brown(results)
    goals = (race.SCORE, *race.GOALS[:-1]) if one is not None else ()
    for form, goal in product((race.PUBLISHED, race.NEWTON), goals):
        assert one is not None
        seconds, told = [], []  # nan without a curve, infinity where the goal is not reached
        for side, entries in {"SGD": SGD, form.title: (form,)}.items():
            found = [one.seconds(entry, goal) for entry in entries if entry in one.entries]
            seconds.append(min(found, default=math.nan))
            reached = f"{seconds[-1]:.0f} s" if math.isfinite(seconds[-1]) else "not reached"
            told.append(f"{side} {reached if found else 'has no curve'}")
        sgd, newton = seconds
        neither = sgd == newton == math.inf
        yield Found(
            f"{one.contest.title}, {form.title}, to {race.words(goal)}",
            None if math.isnan(sgd + newton) else math.nan if neither else newton / sgd,
            ", ".join(told),
            REPORT if goal is race.SCORE else "",
            ("open-point.md", "open-point.png"),
            "neither arrived" * neither,
        )


CLAIMS = (
    Claim(
        "SGD comes before Newton-CG on a large corpus",
        "seconds of Newton-CG / seconds of the soonest form of SGD",
        AT_LEAST,
        _sooner,
        noise=NOISE,
    ),
)


def open_point_words(one: race.Contestants) -> str:
    """What the paper says, who has no curve, and what that means for the start of `newton_cg`."""
    refused = one.standings.get(
        race.EG.key
    )  # for its chains, which are more than `newton_cg` allows its start
    own_start = refused is None or refused.available or race.NEWTON not in one.entries
    without = [entry for entry in one.contest.entries if entry.key in one.reasons]
    return prose(
        __file__,
        "open-point",
        title=one.contest.title,
        sequences=one.facts.get("n_sequences"),
        labels=one.facts.get("n_labels"),
        without=bullets(f"{entry.title} has no curve: {one.reasons[entry.key]}." for entry in without),
        start=None if own_start else "- ",
    )
