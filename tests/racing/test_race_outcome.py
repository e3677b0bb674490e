"""The outcome of a race: milestones, and what is said about them."""

import pytest

from crfit.cli.race import print_report
from crfit.racing.optimum import lowest_optima
from crfit.racing.outcome import (
    milestones,
    number,
    objective_value,
    one_line,
    optimum_words,
    race_name,
    seconds,
    verdict,
)
from crfit.racing.result import Curve, Optimum, Point, RaceResult, Status
from race_results import curve, failed, result, typical


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [
        *((0.0, 3, "0"), (1.0, 3, "1"), (0.1234, 2, "0.12"), (12.0, 2, "12"), (1234.5678, 3, "1,235")),
        *((7705.3861, 8, "7,705.3861"), (7705.0, 8, "7,705"), (1e-5, 1, "1e-5"), (2.36e-7, 2, "2.4e-7")),
        *((3e15, 2, "3e15"), (-0.25, 2, "-0.25"), (200.0, 3, "200"), (None, 3, "–"), (float("nan"), 3, "–")),
    ],
)
def test_numbers(value, digits, text):
    assert number(value, digits) == text


def test_objectives_and_lines():
    values = 12.0, 7705.38615, 5e42, 1e-4, None
    assert [objective_value(x) for x in values] == ["12.0000", "7,705.3862", "5e42", "1e-4", "–"]
    assert one_line("no\n  luck ") == "no luck"


def test_seconds():
    assert [seconds(x) for x in (0.0123, 1.234, 12.34, 1234.5)] == ["0.012", "1.23", "12.3", "1,234"]


def test_verdict_names_the_fastest_and_the_best():
    first, second = verdict(typical())
    assert first == (
        "lbfgs was the first to reach a relative gap of 1e-5 after 6.84 s and 125 passes; "
        "next was lbfgs memory=50, which took 1.2 times as long."
    )
    assert second == (
        "Highest F1 on held-out data: 93.85, by lbfgs memory=50; "
        "lbfgs and lbfgs memory=3 were within 0.1 of it."
    )


def test_verdict_by_another_metric():
    race = typical()
    race.settings["metric"] = "sequence_accuracy"
    best = max(p.scores["sequence_accuracy"] for c in race.curves for p in c.points if p.scores)
    assert verdict(race)[1].startswith(f"Highest sequence accuracy on held-out data: {best:.2f}, by lbfgs")
    titles = [target.title for target in milestones(race).targets if target.score]
    assert titles == [f"sequence accuracy {best - below:.2f}" for below in (1, 0.5, 0.1)]


def test_verdict_of_small_races():
    assert verdict(result([failed()])) == ["No entry was evaluated; see the messages below."]
    stopped = Curve("stopped", "lbfgs", problem="l2=1", status=Status.INTERRUPTED)
    assert verdict(result([stopped])) == ["No entry was evaluated."]
    start = result([curve("start", 0.1, 0.1, n_points=1, scores=False)])
    assert verdict(start) == ["No entry improved on its starting point."]
    slow = curve("slow", 0.01, 0.1, scores=False)
    (alone,) = verdict(result([curve("fast", 0.2, 0.1, scores=False), slow]))
    assert alone.endswith("; no other entry reached it.")
    equal = [curve(name, 0.2, 0.1) for name in "abcdef"]
    first, score = verdict(result(equal))
    assert "next was b, which took about as long" in first
    assert score.endswith("all others were within 0.1 of it.")
    far = verdict(result([curve("a", 0.2, 0.1), curve("b", 0.2, 0.1, best_f1=90.0)]))[-1]
    assert far.endswith("by a; next was b with 90.05.")


def test_gaps_of_different_functions_are_not_compared():
    race = result([curve("a", 0.2, 0.1), curve("b", 0.1, 0.1, problem="l2=2", best_f1=94.0)])
    score, first, second = verdict(race)
    assert first.startswith("On l2=1: a reached a relative gap")
    assert second.startswith("On l2=2: b reached a relative gap")
    assert "by b; next was a" in score


def test_a_gap_that_the_start_has_is_not_reached():
    near = [Point(0, 0.0, 0.0, 100.05), Point(1, 1.0, 0.5, 100.04)]
    far = [Point(0, 0.0, 0.0, 200.0), Point(1, 1.0, 1.0, 100.05)]
    curves = [Curve("near", "t", problem="p", points=near), Curve("far", "t", problem="q", points=far)]
    race = result(curves, optima={"p": Optimum(100.0, "given"), "q": Optimum(100.0, "given")})
    first, second = verdict(race)
    assert first == "On p: near reached F = 100.04."
    assert second.startswith("On q: far reached a relative gap of 0.001")


def test_a_gap_that_nobody_can_know_is_not_told():
    curves = [curve("a", 0.2, 0.1, scores=False), curve("b", 0.1, 0.1, scores=False)]
    doubtful = result(curves, optima={"l2=1": Optimum(curves[0].lowest, "lowest", 5.0)})  # 6.5e-4 of F*
    assert [target.title for target in milestones(doubtful).targets] == ["gap 1e-1", "gap 1e-2", "gap 1e-3"]
    (sentence,) = verdict(doubtful)
    assert sentence.startswith("a was the first to reach a relative gap of 0.001 after")
    unknown = result(curves, optima={"l2=1": Optimum(curves[0].lowest, "lowest", 7000.0)})
    assert milestones(unknown).targets == []
    assert verdict(unknown) == ["a reached the lowest objective, F = 7,705.3."]


def test_an_entry_that_has_not_moved_is_no_rival():
    start = curve("start", 0.1, 0.1, n_points=1, best_f1=185.0, status=Status.FAILED)  # f1 of 93
    waiting = Curve("late", "lbfgs", problem="l2=1")
    race = result([curve("a", 0.2, 0.1, best_f1=90.0), start, waiting])
    first, score = verdict(race)
    assert first.startswith("a reached a relative gap of 1e-5")
    assert "no other" not in first
    assert score.startswith("Highest F1 on held-out data: 90.05, by a")
    assert score.endswith("by a.")


def test_f_is_known_to_its_rounding_at_best():
    points = [Point(0, 0.0, 0.0, 300.0), Point(1, 1.0, 0.1, 200.0, grad_norm=1e-12)]
    race = result([Curve("a", "t", problem="p", points=points)])
    assert lowest_optima(race)["p"].uncertainty == pytest.approx(2e-13)


def test_an_optimum_of_zero_has_no_relative_gaps():
    race = result([curve("a", 0.2, 0.1, scores=False)], optima={"l2=1": Optimum(0.0, "given")})
    last = race.curves[0].last
    assert race.gap(race.curves[0], last) == last.objective
    assert race.gap(race.curves[0], last, relative=True) is None
    assert verdict(race) == ["a reached F = 7,705.3."]


def test_optimum_in_words():
    kinds = {
        "given": "was given; how far below the true optimum lies is not known.",
        "found": "was found by a separate run; how",
        "lowest": "is the lowest value of this race; how",
    }
    for kind, words in kinds.items():
        (sentence,) = optimum_words(result([], optima={"p": Optimum(12.5, kind)}))
        assert sentence.startswith(f"F* = 12.5 {words}")
    both = optimum_words(
        result([], optima={"p": Optimum(1.0, "given", 1e-4), "q": Optimum(2.0, "given", 0.5)})
    )
    assert both[0] == "p: F* = 1 was given; the true optimum is at most 1e-4 lower."
    assert both[1].startswith("q: ")


def test_name_of_a_race():
    assert race_name(result([])) == "recipes.txt"
    assert race_name(result([], data={"train": ["x/a.txt", "b.txt"]})) == "a.txt, b.txt"
    assert race_name(result([], data={})) == ""
    assert race_name(result([], data={"train": None})) == ""


def made(label, points, problem="p", trainer="t"):
    return Curve(label, trainer, problem=problem, points=points, status=Status.CONVERGED)


def test_milestones():
    start = Point(0, 0.0, 0.0, 200.0, scores={"f1": 0.0})
    fast = [
        start,
        Point(1, 1, 1.0, 105.0, scores={"f1": 80.0}),
        Point(2, 2, 2.0, 100.05, scores={"f1": 89.6}),
    ]
    slow = [start, Point(1, 1, 3.0, 100.5), Point(2, 2, 4.0, 100.0, scores={"f1": 90.0})]
    result = RaceResult(
        [made("fast", fast), made("slow", slow), made("none", [])], {"p": Optimum(100.0, "given")}
    )
    found = milestones(result)
    assert [target.title for target in found.targets] == [
        "gap 1e-1", "gap 1e-2", "gap 1e-3", "gap 1e-4", "gap 1e-5", "F1 89.00", "F1 89.50", "F1 89.90",
    ]  # fmt: skip
    seconds = [[None if point is None else point.seconds for point in row] for row in found.cells]
    assert seconds == [
        [1.0, 2.0, 2.0, None, None, 2.0, 2.0, None],
        [3.0, 3.0, 4.0, 4.0, 4.0, 4.0, 4.0, 4.0],
        [None] * 8,
    ]
    assert [found.first(i) for i in range(8)] == [{0}, {0}, {0}, {1}, {1}, {0}, {0}, {1}]
    assert [found.first(i, "passes") for i in range(8)] == [
        {0, 1}, {1}, {0, 1}, {1}, {1}, {0, 1}, {0, 1}, {1},
    ]  # fmt: skip


def two_functions():
    """Gaps of b are smaller, and its function is another."""
    start, near = Point(0, 0.0, 0.0, 200.0), Point(0, 0.0, 0.0, 20.1)
    curves = [
        made("a", [start, Point(1, 1, 3.0, 105.0, scores={"f1": 80.0})]),
        made("a slow", [start, Point(1, 1, 4.0, 105.0, scores={"f1": 80.5})]),
        made("b", [near, Point(1, 1, 1.0, 20.05, scores={"f1": 79.9})], "q"),
        made("b slow", [near, Point(1, 1, 2.0, 20.01)], "q"),
    ]
    return RaceResult(curves, {"p": Optimum(100.0, "given"), "q": Optimum(20.0, "given")})


def test_gaps_of_different_functions_have_winners_of_their_own():
    found = milestones(two_functions())
    assert [target.title for target in found.targets] == [
        "F1 79.50", "F1 80.00", "F1 80.40", "gap 1e-1", "gap 1e-3",
    ]  # fmt: skip
    assert [found.first(i) for i in range(5)] == [
        {2}, {0}, {1}, {0}, {3},
    ], "q has 1e-1 at its start, and scores compare across"  # fmt: skip


def test_stars_of_the_terminal(capsys):
    print_report(two_functions())
    text = capsys.readouterr().out
    assert "* is the fastest (for gaps: of the entries with the same objective):" in text
    rows = text[text.index("* is the fastest") :].splitlines()[2:6]
    assert [row.count("*") for row in rows] == [2, 1, 1, 1]


def test_milestones_that_tell_nothing_are_left_out():
    start = Point(0, 0.0, 0.0, 100.5, scores={"accuracy": 50.0})
    points = [start, Point(1, 1, 1.0, 100.05, scores={"accuracy": 50.3})]
    result = RaceResult([made("a", points)], {"p": Optimum(100.0, "given")})
    found = milestones(result)
    assert [target.title for target in found.targets] == ["gap 1e-3", "accuracy 50.20"]
    assert milestones(RaceResult([made("a", [])])).targets == []


def test_a_look_at_the_same_step_replaces_the_last():
    entry = made("a", [Point(0, 0.0, 0.0, 3.0)])
    entry.add(Point(0, 1.0, 0.1, 3.0))
    entry.add(Point(1, 2.0, 0.2, 2.0))
    entry.add(Point(1, 2.0, 0.2, 2.0, scores={"f1": 1.0}))
    assert [(p.iteration, p.passes, p.scores) for p in entry.points] == [
        (0, 0.0, {}), (0, 1.0, {}), (1, 2.0, {"f1": 1.0}),
    ]  # fmt: skip


def test_a_trainer_that_does_not_minimise_f_reaches_no_gap():
    points = [Point(0, 0.0, 0.0, 200.0), Point(1, 1, 1.0, 100.0)]
    for others in ([], [made("lbfgs", points, trainer="lbfgs")]):
        race = result([made("arow", points, trainer="arow"), *others], optima={"p": Optimum(100.0, "given")})
        found = milestones(race)
        assert all(point is None for point in found.cells[0])
        assert bool(found.targets) == bool(others)
        assert not any("arow" in sentence for sentence in verdict(race))
        assert optimum_words(race)[-1] == "arow does not minimise F and has no gap."
    assert lowest_optima(result([made("arow", points, trainer="arow")])) == {}
