"""The one judge: each verdict on hand-made numbers, the summary over settings, rules in words, tables."""

import math
from dataclasses import replace

import pytest

from bench import claims
from bench.claims import AT_LEAST, AT_MOST, FAILS, HOLDS, IN_PART, NOT_MEASURED, NOT_SETTLED, SURE, TRUE
from bench.draw import run_words
from bench.records import Results
from bench.seeds import Paired
from bench.standings import Times

WEAKER = f"{FAILS} ({claims.WEAKER})"
ORDER, TWICE, HALF = {"noise": 1.1}, {"factor": 2.0, "noise": 1.1}, {"direction": AT_MOST, "factor": 0.5}
ABOUT_TWICE, ABOUT_HALF, INTERPRETED = TWICE | {"slack": True}, HALF | ORDER, ORDER | {"one": True}

#: Verdicts on values, by what is claimed of them.
JUDGED = [
    # an order is not settled within a tenth; a bound may not decide it; not a number: neither arrived
    (ORDER, {1.2: HOLDS, 1.09: NOT_SETTLED, 0.92: NOT_SETTLED, 0.9: FAILS, math.inf: HOLDS}),
    (ORDER, {Times(0.5, True): NOT_SETTLED, Times(1.5, True): HOLDS, math.nan: NOT_SETTLED}),
    (ORDER, {Times(0.5, at_most=True): FAILS, Times(1.5, at_most=True): NOT_SETTLED}),
    (ORDER, {None: NOT_MEASURED}),
    # a number of times is weaker where only the direction is right; with slack it may be less by the noise
    (TWICE, {2.0: HOLDS, 1.9: WEAKER}),
    (ABOUT_TWICE, {1.9: HOLDS, 1.8: WEAKER, 1.05: NOT_SETTLED, 0.8: FAILS}),
    (ABOUT_TWICE, {Times(1.5, True): NOT_SETTLED}),
    # numbers, differences over seeds, truths and states
    ({"factor": 95.0}, {95.0: HOLDS, 94.999: FAILS}),
    (HALF, {0.5: HOLDS, 0.51: FAILS, Times(0.4, True): NOT_SETTLED, Times(0.6, True): FAILS}),
    (ABOUT_HALF, {0.51: NOT_SETTLED, 0.45: HOLDS, 0.0: HOLDS, 0.6: FAILS}),
    ({"direction": SURE}, {Paired(1.0, 0.5, 3, 0, 0): HOLDS, Paired(1.0, 1.5, 2, 1, 0): NOT_SETTLED}),
    ({"direction": SURE}, {Paired(-1.0, 0.5, 0, 3, 0): FAILS}),
    ({"direction": TRUE}, {True: HOLDS, False: FAILS, -1: FAILS}),
    ({"direction": TRUE}, {0: NOT_SETTLED, math.nan: NOT_SETTLED}),
    (HALF, {math.nan: NOT_SETTLED}),
    (ABOUT_HALF, {math.nan: NOT_SETTLED}),
]


def verdict(value, direction=AT_LEAST, found=None, **claim):
    made = claims.Claim("fast", "a ratio", direction, lambda results: [], **claim)
    return str(claims.judge(made, claims.Found("here", value, "1.5", **(found or {}))))


@pytest.mark.parametrize(("claim", "expected"), JUDGED)
def test_verdicts_on_one_value(claim, expected):
    assert {value: verdict(value, **claim) for value in expected} == expected


@pytest.mark.parametrize(
    ("theirs", "ours", "expected"),
    [
        (1.5, 1.5, HOLDS),
        (1.5, 0.5, f"{IN_PART} (theirs only)"),
        (0.5, 1.5, f"{IN_PART} (ours only)"),
        (1.0, 0.5, NOT_SETTLED),  # the paper's own decides
        (0.5, 1.0, FAILS),
        (None, 1.5, f"{HOLDS} (not measured theirs)"),
        (None, 0.5, f"{FAILS} (not measured theirs)"),
        (None, None, NOT_MEASURED),
    ],
)
def test_both_arithmetics_must_hold(theirs, ours, expected):
    assert verdict({"theirs": theirs, "ours": ours}, noise=1.1) == expected


def test_one_interpretation_of_a_method_is_enough():
    assert verdict({"a": 1.5, "b": 0.5}, **INTERPRETED) == f"{HOLDS} (a)"
    assert verdict({"a": 1.0, "b": 0.5}, **INTERPRETED) == NOT_SETTLED
    assert verdict({"a": 0.5, "b": None}, **INTERPRETED) == FAILS


def test_a_setting_may_have_its_own_factor_and_remarks():
    assert verdict(95.0, factor=None, found={"factor": 94.9}) == HOLDS
    assert verdict(0.5, noise=1.1, found={"remark": "so", "weaker": True}) == f"{FAILS} ({claims.WEAKER}, so)"
    assert verdict(None, found={"remark": "so"}) == f"{NOT_MEASURED} (so)"
    assert verdict(2.0, found={"other": "our reconstruction"}) == f"{NOT_MEASURED} (our reconstruction)"


def line(name, remark=""):
    claim = claims.Claim("fast", "a ratio", AT_LEAST, lambda results: [])
    return claims.Judged(claim, claims.Found("here", 1.0, "1.5"), claims.Verdict(name, remark))


ONE, MORE = "measured in 1 of 2 settings", "1 of 2 settings, 1 more in part"


@pytest.mark.parametrize(
    ("names", "expected", "told"),
    [
        ([HOLDS, HOLDS], HOLDS, "holds in 2 of 2 settings"),
        ([HOLDS, NOT_MEASURED], f"{HOLDS} ({ONE})", "holds in 1 of 2 settings, not measured in 1"),
        ([HOLDS, FAILS, FAILS], f"{IN_PART} (1 of 3 settings)", "holds in 1 of 3 settings"),
        (
            [HOLDS, FAILS, NOT_MEASURED],
            f"{IN_PART} (1 of 3 settings, measured in 2 of 3 settings)",
            "holds in 1 of 3 settings, not measured in 1",
        ),
        ([HOLDS, IN_PART], f"{IN_PART} ({MORE})", f"holds in {MORE}"),
        (
            [IN_PART, NOT_SETTLED],
            f"{IN_PART} (0 of 2 settings, 1 in part)",
            "holds in 0 of 2 settings, 1 in part, not settled in 1",
        ),
        ([NOT_SETTLED, NOT_SETTLED], NOT_SETTLED, "holds in 0 of 2 settings, not settled in 2"),
        ([NOT_SETTLED, FAILS], FAILS, "holds in 0 of 2 settings, not settled in 1"),
        ([FAILS, NOT_MEASURED], f"{FAILS} ({ONE})", "holds in 0 of 2 settings, not measured in 1"),
        ([FAILS, FAILS], FAILS, "holds in 0 of 2 settings"),
        ([NOT_MEASURED], NOT_MEASURED, "1.5"),
        ([NOT_MEASURED, NOT_MEASURED], NOT_MEASURED, NOT_MEASURED),
    ],
)
def test_a_claim_holds_where_all_its_settings_do(names, expected, told):
    lines = [line(name) for name in names]
    assert str(claims.overall(lines)) == expected
    assert claims._measured(lines) == told


def test_what_all_settings_remark_is_kept():
    so = line(HOLDS, "so")
    assert str(claims.overall([so, so, line(NOT_MEASURED)])) == "holds (measured in 2 of 3 settings, so)"
    assert str(claims.overall([line(NOT_MEASURED, "so")] * 2)) == "not measured (so)"
    assert str(claims.overall([so, line(HOLDS)])) == HOLDS
    assert str(claims.overall([so, line(NOT_SETTLED)])) == f"{IN_PART} (1 of 2 settings, so)"
    assert str(claims.overall([so, line(HOLDS, "more, so")])) == "holds (so)"


def test_a_summary_has_the_range_of_numbers_and_what_settings_that_hold_in_part_share():
    here = (
        {"paper": Times(2.5), "ours": Paired(1.0, 0.5, 3, 0, 0)},
        {"paper": None, "ours": Times(1.5, at_least=True)},
    )
    made = claims.Claim("fast", "a ratio", AT_LEAST, lambda results: [], spread=".1f times")
    verdicts = claims.Verdict(IN_PART, "paper only"), claims.Verdict(FAILS)
    lines = [
        claims.Judged(made, claims.Found("here", value), verdict)
        for value, verdict in zip(here, verdicts, strict=True)
    ]
    told = "2.5 times paper; 1.0 to > 1.5 times ours; holds in 0 of 2 settings, 1 paper only"
    assert claims._measured(lines) == told
    lines.append(replace(lines[0], verdict=claims.Verdict(HOLDS)))
    assert claims._measured(lines).endswith("holds in 1 of 3 settings, 1 more paper only")
    lines = [replace(lines[0], found=claims.Found("here", 2.0, numbers=(0.5, 2.0)))] * 2
    assert claims._measured(lines).startswith("0.5 to 2.0 times; ")


def test_values_not_measured_have_no_words():
    assert claims.words_of({"paper": None, "ours": 1.5}, ".1f") == "ours 1.5"
    assert claims.words_of({"paper": None, "ours": None}, ".1f") == ""


def claim(text, *values, **more):
    found = [claims.Found(f"place {n}", value, f"{value}", "2", ("t.md",)) for n, value in enumerate(values)]
    return claims.Claim(
        text, "seconds of a / seconds of b", AT_LEAST, lambda results: found, noise=1.1, **more
    )


def test_tables_of_a_paper_and_our_own_questions_apart():
    # The third is another rule of the first.
    said = (claim("fast", 2.0, 0.5), claim("cheap", 1.0), claim("fast", 3.0), claim("ours", 2.0, ours=True))
    said, more = said[:3], (said[3:], Results([], {}))  # what another group measures
    made = claims.claim_tables(said, Results([], {}), more)
    assert made["short"] == "2 claims: 1 holds in part, 1 not settled.\n"
    lines = made["papers"].splitlines()[2:]
    assert lines[0] == "| fast | place 0 | 2 | 2.0 | holds | [t](t.md) |"
    assert lines[1].startswith("| | place 1 |")
    assert lines[3].startswith("| cheap | place 0 |")
    assert "| ours |" not in made["papers"] + made["claims"]
    assert "| ours | place 0 | 2 | 2.0 | holds |" in made["questions"]
    assert (
        f"| fast | 2 | holds in 2 of 3 settings | {IN_PART} (2 of 3 settings) | [t](t.md) |" in made["claims"]
    )


@pytest.mark.parametrize(
    ("claim", "expected"),
    [
        (ORDER, "a / b exceeds 1 by at least 10 %; not settled within 10 % of 1"),
        (
            ABOUT_TWICE,
            f"a / b is at least 2, with a tolerance of 10 %; {claims.WEAKER} if it is only above 1",
        ),
        ({"factor": 0.1}, "a / b is at least 0.1"),
        ({"factor": None}, "a / b is at least the paper's number"),
        (ABOUT_HALF, "a / b is at most 0.5; not settled within 10 % of it"),
        ({"direction": TRUE, "one": True, "also": "so"}, "a / b; one interpretation is enough; so"),
    ],
)
def test_rules_are_the_records_in_words(claim, expected):
    assert (
        claims.Claim("x", "a / b", measured=lambda results: [], **{"direction": AT_LEAST, **claim}).rule
        == expected
    )


def test_a_run_is_described_with_what_is_missing():
    facts = {
        "processor": "P",
        "cores": 2,
        "memory_gb": 24.4,
        "python": "3.11.1",
        "versions": {"crfit": "0.1"},
    }
    ends = [("crfit_race", "done"), ("crfpp_program", "not available"), ("crfit_race", "not available")]
    rows = [{"tool": tool, "outcome": outcome} for tool, outcome in [*ends, ("python_crfsuite", "failed")]]
    tasks = [{"when": f"2020-01-0{day}T10:00:00+00:00", "took": 135.0} for day in (1, 2)]
    config = {"machines": [facts], "code": "abc", "tasks": tasks, "command": "python -m bench --data DIR"}
    words = run_words(Results(rows, config | {"group": "g", "quick": True}))
    assert (
        "on 2020-01-01 and 2020-01-02 with crfit 0.1 on 2 cores (P) and 24 GB of memory in 4 minutes" in words
    )
    assert "repeat it with `python -m bench --data dir`" in words
    assert "(../../../bench/results/g-quick/results.csv)" in words
    assert words.endswith("Not installed: CRF++. Runs without a result: 1 failed.\n")
    assert "abc" not in words
