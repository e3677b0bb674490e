"""The one judge: each verdict on hand-made numbers, the summary over settings, rules in words, tables."""

from __future__ import annotations

import math

import pytest

from bench import claims
from bench.claims import (
    AT_LEAST,
    AT_MOST,
    FAILS,
    HOLDS,
    IN_PART,
    NOT_MEASURED,
    NOT_SETTLED,
    SURE,
    TRUE,
    Claim,
    Found,
    Judged,
    Verdict,
)
from bench.records import Results
from bench.seeds import Paired
from bench.standings import Times
from bench.tables import run_words

RESULTS = Results([], {})


def verdict(value, direction=AT_LEAST, found=None, **claim):
    made = Claim("fast", "a ratio", direction, lambda results: [], **claim)
    return str(claims.judge(made, Found("here", value, "1.5", **(found or {}))))


@pytest.mark.parametrize(
    ("ratio", "expected"),
    [
        (1.2, HOLDS),
        (1.09, NOT_SETTLED),
        (0.92, NOT_SETTLED),
        (0.9, FAILS),
        (Times(0.5, at_least=True), NOT_SETTLED),  # a bound may not let it fail
        (Times(1.5, at_least=True), HOLDS),
        (math.nan, NOT_SETTLED),  # neither arrived
        (math.inf, HOLDS),
        (None, NOT_MEASURED),
    ],
)
def test_an_order_is_not_settled_within_a_tenth(ratio, expected):
    assert verdict(ratio, noise=1.1) == expected


@pytest.mark.parametrize(
    ("ratio", "slack", "expected"),
    [
        (2.0, False, HOLDS),
        (1.9, False, f"{FAILS} (weaker)"),
        (1.9, True, HOLDS),  # less the noise
        (1.8, True, f"{FAILS} (weaker)"),
        (1.05, True, NOT_SETTLED),
        (0.8, True, FAILS),
        (Times(1.5, at_least=True), True, NOT_SETTLED),
    ],
)
def test_a_number_of_times_is_weaker_where_only_the_direction_is_right(ratio, slack, expected):
    assert verdict(ratio, factor=2.0, noise=1.1, slack=slack) == expected


@pytest.mark.parametrize(
    ("value", "claim", "expected"),
    [
        (95.0, {"factor": 95.0}, HOLDS),
        (94.999, {"factor": 95.0}, FAILS),
        (95.0, {"factor": None}, HOLDS),  # the setting's own, 94.9
        (0.5, {"direction": AT_MOST, "factor": 0.5}, HOLDS),
        (0.51, {"direction": AT_MOST, "factor": 0.5}, FAILS),
        (0.51, {"direction": AT_MOST, "factor": 0.5, "noise": 1.1}, NOT_SETTLED),
        (0.45, {"direction": AT_MOST, "factor": 0.5, "noise": 1.1}, HOLDS),
        (0.0, {"direction": AT_MOST, "factor": 0.5, "noise": 1.1}, HOLDS),
        (0.6, {"direction": AT_MOST, "factor": 0.5, "noise": 1.1}, FAILS),
        (Paired(1.0, 0.5, 3, 0, 0), {"direction": SURE}, HOLDS),
        (Paired(1.0, 1.5, 2, 1, 0), {"direction": SURE}, NOT_SETTLED),
        (Paired(-1.0, 0.5, 0, 3, 0), {"direction": SURE}, FAILS),
        (True, {"direction": TRUE}, HOLDS),
        (False, {"direction": TRUE}, FAILS),
        (0, {"direction": TRUE}, NOT_SETTLED),
        (-1, {"direction": TRUE}, FAILS),
    ],
)
def test_numbers_differences_and_truths(value, claim, expected):
    found = {"factor": 94.9} if claim.get("factor", 1.0) is None else {}
    assert verdict(value, found=found, **claim) == expected


@pytest.mark.parametrize(
    ("theirs", "ours", "expected"),
    [
        (1.5, 1.5, HOLDS),
        (1.5, 0.5, f"{IN_PART} (theirs only)"),
        (0.5, 1.5, f"{IN_PART} (ours only)"),
        (1.0, 0.5, NOT_SETTLED),  # the paper's own decides
        (0.5, 1.0, FAILS),
        (None, 1.5, f"{HOLDS} (ours; not measured theirs)"),
        (None, 0.5, f"{FAILS} (ours; not measured theirs)"),
        (None, None, NOT_MEASURED),
    ],
)
def test_both_arithmetics_must_hold(theirs, ours, expected):
    assert verdict({"theirs": theirs, "ours": ours}, noise=1.1) == expected


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"a": 1.5, "b": 0.5}, f"{HOLDS} (a)"),
        ({"a": 1.0, "b": 0.5}, NOT_SETTLED),
        ({"a": 0.5, "b": None}, FAILS),
    ],
)
def test_of_the_readings_of_a_method_one_is_enough(values, expected):
    assert verdict(values, noise=1.1, one=True) == expected


def test_remarks_are_kept():
    assert verdict(0.5, noise=1.1, found={"remark": "so", "weaker": True}) == f"{FAILS} (weaker, so)"
    assert verdict(None, found={"remark": "so"}) == f"{NOT_MEASURED} (so)"


# --- over settings -----------------------------------------------------------------------------------------


def line(name, text="fast", paper="2", shown=("figure1.png",), ours=False, remark=""):
    claim = Claim(text, "a ratio", AT_LEAST, lambda results: [], ours=ours)
    return Judged(claim, Found("here", 1.0, "1.5", paper, shown), Verdict(name, remark))


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ([HOLDS, HOLDS], HOLDS),
        ([HOLDS, NOT_MEASURED], HOLDS),
        ([HOLDS, FAILS, FAILS], f"{IN_PART} (in 1 of 3 settings)"),
        ([HOLDS, IN_PART], f"{IN_PART} (in 1 of 2 settings, in part in 1)"),
        ([IN_PART, NOT_SETTLED], f"{IN_PART} (in 0 of 2 settings, in part in 1, not settled in 1)"),
        ([NOT_SETTLED, NOT_SETTLED], NOT_SETTLED),
        ([NOT_SETTLED, FAILS], f"{FAILS} (not settled in 1)"),
        ([FAILS, FAILS], FAILS),
        ([NOT_MEASURED], NOT_MEASURED),
    ],
)
def test_a_claim_holds_where_all_its_settings_do(names, expected):
    assert str(claims.overall([line(name) for name in names])) == expected


def test_what_all_settings_remark_is_kept():
    so = line(HOLDS, remark="so")
    assert str(claims.overall([so, so, line(NOT_MEASURED)])) == "holds (so)"
    assert str(claims.overall([so, line(HOLDS)])) == HOLDS


def claim(text, *values, **more):
    found = [Found(f"place {n}", value, f"{value}", "2", ("t.md",)) for n, value in enumerate(values)]
    return Claim(text, "seconds of a / seconds of b", AT_LEAST, lambda results: found, noise=1.1, **more)


def test_tables_of_a_paper_and_our_own_questions_apart():
    said = (
        claim("fast", 2.0, 0.5),
        claim("cheap", 1.0),
        claim("fast", 3.0),  # another rule of the first claim
        claim("ours", 2.0, ours=True),
    )
    made = claims.claim_tables(said, RESULTS)
    assert made["short"] == "2 claims: 1 holds in part, 1 not settled.\n"
    papers, ours = made["papers"].split("Our own questions:")
    lines = papers.splitlines()[2:]
    assert lines[0] == "| fast | place 0 | 2 | 2.0 | holds | [t](t.md) |"
    assert lines[1].startswith("| | place 1 |")
    assert lines[3].startswith("| cheap | place 0 |")
    assert "| ours | place 0 | 2 | 2.0 | holds |" in ours
    assert "| the question |" in ours
    assert f"| fast | 2 | 2 of 3 | {IN_PART} (in 2 of 3 settings) | [t](t.md) |" in made["claims"]


def test_rules_are_the_records_in_words():
    def rule(**more):
        return Claim("x", "a / b", more.pop("direction", AT_LEAST), lambda results: [], **more).rule

    assert rule(noise=1.1) == "a / b is above 1 by 10 % or more, not settled within that of 1"
    assert rule(factor=3.0, noise=1.1, slack=True) == (
        "a / b is at least 3, less 10 %; weaker where it is less and above 1"
    )
    assert rule(factor=0.1) == "a / b is at least 0.1"
    assert rule(factor=None) == "a / b is at least the paper's number"
    assert (
        rule(direction=AT_MOST, factor=0.5, noise=1.1)
        == "a / b is at most 0.5, not settled within 10 % of it"
    )
    assert rule(direction=SURE).endswith(
        "the 95 % interval in pairs over seeds is above 0, not settled where 0 is in it"
    )
    assert rule(direction=TRUE, one=True, also="so") == "a / b; one reading is enough; so"


def test_a_run_is_told_with_what_went_wrong():
    facts = {"processor": "P", "cores": 2, "memory_gb": 24.4, "python": "3.11.1"}
    facts["versions"] = {"numpy": "2.0", "crfit": "0.1"}
    tasks = [
        {"when": f"2020-01-0{day}T10:00:00+00:00", "took": 90.0, "outcome": outcome}
        for day, outcome in ((1, "done"), (2, "not available"), (2, "failed"))
    ]
    config = {"machines": [facts], "code": "abc", "tasks": tasks, "command": "python -m bench --data DIR"}
    words = run_words(Results([], config | {"group": "g", "quick": True}))
    assert "on 2020-01-01 and 2020-01-02 on 2 cores (P) with 24 GB" in words
    assert "3 tasks, 4 minutes. Not done: 1 failed, 1 not available." in words
    assert "(code `abc`)" in words
    assert "(../../../bench/results/g-quick/results.csv)" in words
    assert words.endswith("Again: `python -m bench --data dir`.\n")
