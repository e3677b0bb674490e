"""What papers say beside what comes out: verdicts over settings, tables with links, the run in a sentence."""

from __future__ import annotations

import pytest

from bench import publish
from bench.figures.base import Results
from bench.run_words import run_words
from bench.verdicts import (
    FAILS,
    HOLDS,
    OURS_ONLY,
    PAPER_ONLY,
    UNKNOWN,
    UNSETTLED,
    Finding,
    claims_table,
    overall,
    short_words,
    summary_table,
)


def finding(verdict, claim="fast", where="here", paper="2", shown=("figure1.png",)):
    return Finding(claim, where, paper, "1.5", verdict, shown)


@pytest.mark.parametrize(
    ("verdicts", "expected"),
    [
        ([HOLDS, HOLDS], HOLDS),
        ([HOLDS, UNKNOWN], HOLDS),
        ([HOLDS, PAPER_ONLY], PAPER_ONLY),
        ([f"{PAPER_ONLY} (of one problem)", PAPER_ONLY], PAPER_ONLY),
        ([f"{HOLDS} (barely)", f"{HOLDS} (barely)", UNKNOWN], f"{HOLDS} (barely)"),
        ([f"{HOLDS} (barely)", HOLDS], HOLDS),
        ([UNSETTLED, UNSETTLED], UNSETTLED),
        ([HOLDS, FAILS, f"{FAILS} (weaker)"], f"{FAILS} (1 of 3 settings do)"),
        ([PAPER_ONLY, FAILS], f"{FAILS} (0 of 2 settings do, 1 in the paper's arithmetic only)"),
        ([HOLDS, OURS_ONLY], OURS_ONLY),
        (
            [HOLDS, PAPER_ONLY, OURS_ONLY],
            f"{FAILS} (1 of 3 settings do, 1 in the paper's arithmetic only, 1 in crfit's arithmetic only)",
        ),
        ([f"{FAILS} (weaker)", FAILS], FAILS),
        (
            [UNSETTLED, HOLDS, f"{FAILS} (not settled, so)"],
            f"{FAILS} (1 of 3 settings do, 2 not settled)",
        ),
        ([UNSETTLED, FAILS], f"{FAILS} (0 of 2 settings do, 1 not settled)"),
        (
            [f"{PAPER_ONLY} (ours is not settled)", FAILS],
            f"{FAILS} (0 of 2 settings do, 1 in the paper's arithmetic only)",
        ),
        ([UNKNOWN], UNKNOWN),
    ],
)
def test_a_claim_holds_where_all_its_settings_do(verdicts, expected):
    assert overall([finding(verdict) for verdict in verdicts]) == expected


def test_claims_are_counted_by_their_verdicts():
    found = [
        finding(HOLDS),
        finding(FAILS),
        finding(PAPER_ONLY, claim="cheap"),
        finding(f"{FAILS} (weaker)", claim="good"),
        finding(UNKNOWN, claim="rare"),
    ]
    assert short_words(found) == (
        "4 claims: hold in the paper's arithmetic only: 1; do not hold, or not everywhere: 2; "
        "not measured in this run: 1.\n"
    )


def test_the_summary_has_a_line_for_each_claim_in_their_order():
    lines = summary_table(
        [
            finding(HOLDS, paper="2"),
            finding(FAILS, paper="3", shown=("figure1.png", "a.md")),
            finding(UNKNOWN, claim="rare", paper="", shown=()),
        ]
    ).splitlines()[2:]
    assert lines == [
        f"| fast | 2; 3 | 1 of 2 | {FAILS} (1 of 2 settings do) | [figure1](figure1.png), [a](a.md) |",
        f"| rare | | 0 of 0 | {UNKNOWN} | |",
    ]


def test_the_long_table_names_a_claim_once():
    lines = claims_table([finding(HOLDS), finding(FAILS, where="there")]).splitlines()[2:]
    assert lines[0].startswith("| fast | here | 2 | 1.5 | holds | [figure1](figure1.png)")
    assert lines[1].startswith("| | there |")


def test_links_of_a_stored_table_lead_on_from_the_page(tmp_path, monkeypatch):
    table = tmp_path / "bench" / "results" / "core" / "t.md"
    table.parent.mkdir(parents=True)
    table.write_text("[a](a.png) [b](b.md#deep) [c](https://c.example/c) [d](#d)\n", encoding="utf-8")
    marked = "<!-- bench/results/core/t.md -->\n<!-- end -->\n"
    readme, deep = tmp_path / "README.md", tmp_path / "docs" / "results" / "p.md"
    deep.parent.mkdir(parents=True)
    for page in (readme, deep):
        page.write_text(marked, encoding="utf-8")
    monkeypatch.setattr(publish, "ROOT", tmp_path)
    assert publish.outdated() == [readme, deep]
    list(publish.publish())
    assert not publish.outdated()
    others = "[c](https://c.example/c) [d](#d)"
    links = f"[a](bench/results/core/a.png) [b](bench/results/core/b.md#deep) {others}"
    assert links in readme.read_text(encoding="utf-8")
    links = f"[a](../../bench/results/core/a.png) [b](../../bench/results/core/b.md#deep) {others}"
    assert links in deep.read_text(encoding="utf-8")


def test_a_run_is_told_with_what_went_wrong():
    facts = {"processor": "P", "cores": 2, "memory_gb": 24.4, "python": "3.11.1"}
    facts["versions"] = {"numpy": "2.0", "crfit": "0.1"}
    tasks = [
        {"when": f"2020-01-0{day}T10:00:00+00:00", "took": 90.0, "outcome": outcome}
        for day, outcome in ((1, "done"), (2, "not available"), (2, "failed"))
    ]
    config = {"machines": [facts], "code": "abc", "tasks": tasks, "command": "python -m bench --data DIR"}
    words = run_words(Results([], config))
    assert "on 2020-01-01 and 2020-01-02 on 2 cores (P) with 24 GB" in words
    assert "3 tasks, 4 minutes. Not done: 1 failed, 1 not available." in words
    assert "(code `abc`)" in words
    assert words.endswith("Again: `python -m bench --data dir`.\n")
