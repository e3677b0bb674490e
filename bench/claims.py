"""The claims of a paper as data, and the function that judges them.

A `Claim` names what the paper claims, the quantity that decides, and the value it must reach. `judge` turns
measurements into one of five verdicts, explained to readers by `NOTES`. Claims with the same text are one
claim tested in several ways. Our own questions (`ours`) are judged in the same way but not counted.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any, TypeAlias, TypeVar

from bench.records import Results
from bench.seeds import CONFIDENCE, Paired
from bench.standings import Times
from bench.tables import markdown, shown
from crfit.racing.grid import RATIO

VERDICTS = ("holds", "holds in part", "not settled", "fails", "not measured")
HOLDS, IN_PART, NOT_SETTLED, FAILS, NOT_MEASURED = VERDICTS
#: Number against a factor; paired difference over seeds; statement that is true or false.
AT_LEAST, AT_MOST, SURE, TRUE = "at least", "at most", "surely above 0", "is so"
#: Ratios of two single runs below this may be chance.
NOISE = 1.1
#: The same for times to a score, and for SGD's times to a gap: both are evaluated on a geometric grid.
GRID_NOISE = max(NOISE, RATIO)
WEAKER = "right direction, smaller effect"
#: Fields of claims.json whose text has placeholders.
_TEXTS = ("text", "quantity", "also", "paper")
#: The paper's arithmetic and crfit's, as names of values.
THEIRS, OURS = "in log-domain arithmetic", "in scaled arithmetic"

#: A ratio may be a bound, a truth a state 1, 0, -1. None: nothing was measured; nan: no run reached the goal.
Value: TypeAlias = "float | Times | Paired | bool | None"


@dataclass(frozen=True)
class Found:
    """What was measured in one setting: one value, or several by name (two arithmetics, interpretations).

    `here` is the text of the table (default: the value); `shown` names the tables (NAME.md) and pictures
    (NAME.png) behind it, or links. `factor` and `noise` override the claim's; `weaker`: the direction is
    right; `numbers`: all numbers of `here`, for the range, where the value is only the one that decides;
    `other`: why this is not the paper's method, so that it decides nothing.
    """

    where: str
    value: Value | Mapping[str, Value]
    here: str = ""
    paper: str = ""
    shown: tuple[str, ...] = ()
    remark: str = ""
    factor: float | None = None
    weaker: bool = False
    noise: float | None = None
    numbers: tuple[float, ...] = ()
    other: str = ""


P = TypeVar("P")
Measure: TypeAlias = Callable[[Results, P], Iterable[Found]]


@dataclass(frozen=True)
class Claim:
    """What a paper claims, and when the claim holds.

    With `noise` above 1, a ratio closer than that to the factor is not settled. A claim such as "2-3 times as
    fast" holds from the factor on; with `slack` from ``factor / noise`` on. All values must hold unless `one`
    is enough. `also` is a remark for the table of rules; `form` formats numbers, `spread` (with a unit) their
    range over all settings, which is shown only if it is given.
    """

    text: str
    quantity: str
    direction: str
    measured: Callable[[Results], Iterable[Found]]
    factor: float | None = 1.0
    noise: float = 1.0
    slack: bool = False
    one: bool = False
    ours: bool = False
    also: str = ""
    paper: str = ""
    shown: tuple[str, ...] = ()
    form: str = ".3f"
    spread: str = ""

    @property
    def rule(self) -> str:
        """When it holds, in words."""
        factor = "the paper's number" if self.factor is None else f"{self.factor:g}"
        band = f"{100 * (self.noise - 1):.0f} %"
        bound = f"{self.quantity} is {self.direction} {factor}"
        if self.direction == TRUE:
            words = self.quantity
        elif self.direction == SURE:
            words = f"{self.quantity}: the {100 * CONFIDENCE:.0f} % interval of paired differences over "
            words += "seeds is above 0; not settled if it contains 0"
        elif self.noise == 1.0:
            words = bound
        elif self.direction == AT_MOST:
            words = f"{bound}; not settled within {band} of it"
        elif self.factor == 1.0:
            words = f"{self.quantity} exceeds 1 by at least {band}; not settled within {band} of 1"
        else:
            slack = f", with a tolerance of {band}" * self.slack
            words = f"{bound}{slack}; {WEAKER} if it is only above 1"
        return "; ".join([words, *["one interpretation is enough"] * self.one, *filter(None, [self.also])])


@dataclass(frozen=True)
class Verdict:
    """One of the five, with a remark."""

    name: str
    remark: str = ""

    def __str__(self) -> str:
        return f"{self.name} ({self.remark})" if self.remark else self.name


@dataclass(frozen=True)
class Judged:
    """A claim in one setting, with its verdict."""

    claim: Claim
    found: Found
    verdict: Verdict


def judge(claim: Claim, found: Found) -> Verdict:
    """The verdict in one setting; if none of several values holds, the first decides."""
    values = found.value if isinstance(found.value, Mapping) else {"": found.value}
    states = {name: _state(claim, found, value) for name, value in values.items() if value is not None}
    holding = [name for name, state in states.items() if state == 1]
    remarks = [found.remark] if found.remark else []
    if not states or found.other:
        return Verdict(NOT_MEASURED, ", ".join(filter(None, [found.other, *remarks])))
    if claim.one:
        name = HOLDS if holding else NOT_SETTLED if 0 in states.values() else FAILS
        return Verdict(name, ", ".join([*remarks, *filter(None, holding)]))
    name = {1: HOLDS, 0: NOT_SETTLED, -1: FAILS}[next(iter(states.values()))]
    if 0 < len(holding) < len(states):
        name, remarks = IN_PART, [f"{', '.join(holding)} only", *remarks]
    elif name == FAILS and _weaker(claim, found, values.values()):
        remarks = [WEAKER, *remarks]
    missing = [name for name in values if name not in states]
    if missing:
        remarks.append(f"not measured {', '.join(missing)}")
    return Verdict(name, ", ".join(remarks))


def _state(claim: Claim, found: Found, value: Value) -> int:
    """1: the value supports the claim, -1: it contradicts it, 0: not settled (a bound may not decide)."""
    if isinstance(value, Paired):
        return value.sure
    if isinstance(value, float) and math.isnan(value):
        return 0
    if claim.direction == TRUE:
        return int(value) if not isinstance(value, bool) else 1 if value else -1  # type: ignore[arg-type]
    times = value if isinstance(value, Times) else Times(float(value or 0.0))
    number, noise = times.ratio, claim.noise if found.noise is None else found.noise
    factor = claim.factor if found.factor is None else found.factor
    assert factor is not None
    may_exceed, may_be_less = times.at_least, times.at_most
    if claim.direction == AT_MOST:
        number, factor = (factor / number, 1.0) if number > 0.0 else (noise, 1.0)
        may_exceed, may_be_less = may_be_less, may_exceed
    if noise == 1.0:
        state = 1 if number >= factor else -1
    elif factor == 1.0:
        state = 1 if number >= noise else -1 if number <= 1.0 / noise else 0
    elif number >= factor / (noise if claim.slack else 1.0):  # so many times as fast
        state = 1
    else:
        state = 0 if 1.0 / NOISE < number < NOISE else -1
    return 0 if (state == -1 and may_exceed) or (state == 1 and may_be_less) else state


def _weaker(claim: Claim, found: Found, values: Iterable[Value]) -> bool:
    """Whether the direction is right but the effect smaller than claimed."""
    if found.weaker:
        return True
    if claim.direction != AT_LEAST or claim.noise == 1.0 or (found.factor or claim.factor) == 1.0:
        return False
    noise = claim.noise if found.noise is None else found.noise
    numbers = [value.ratio if isinstance(value, Times) else value for value in values]
    return any(isinstance(number, float) and number > noise for number in numbers)


def read_claims(module: Mapping[str, Any]) -> tuple[Claim, ...]:
    """The claims in claims.json next to a module, whose names fill placeholders and `measured`."""
    lines = json.loads(Path(module["__file__"]).with_name("claims.json").read_text(encoding="utf-8"))
    claims = []
    for line in lines:
        words = {key: text.format(**module) for key, text in line.items() if key in _TEXTS}
        more = {"measured": module[line["measured"]], "shown": tuple(line.get("shown", ()))}
        claims.append(Claim(**{**line, **words, **more}))
    return tuple(claims)


def judged(claims: Sequence[Claim], results: Results) -> list[Judged]:
    """Every claim in every setting."""
    every = [(claim, found) for claim in claims for found in claim.measured(results)]
    return [Judged(claim, _complete(claim, found), judge(claim, found)) for claim, found in every]


def _complete(claim: Claim, found: Found) -> Found:
    """With the claim's defaults for what a setting leaves out."""
    here = found.here or words_of(found.value, claim.form)
    return replace(found, here=here, paper=found.paper or claim.paper, shown=found.shown or claim.shown)


def words_of(value: object, form: str) -> str:
    """A value, or several with their names, for a table."""
    if isinstance(value, Mapping):
        known = {name: one for name, one in value.items() if one is not None}
        return "; ".join(f"{name} {words_of(one, form)}".lstrip() for name, one in known.items())
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else shown(value, form, none="")


def overall(lines: Sequence[Judged]) -> Verdict:
    """The verdict over all settings measured; the remark counts settings and has what they share."""
    known = [one.verdict for one in lines if one.verdict.name != NOT_MEASURED]
    shared, names = _shared(known or [one.verdict for one in lines]), {verdict.name for verdict in known}
    if not known:
        return Verdict(NOT_MEASURED, ", ".join(shared))
    measured = [f"measured in {len(known)} of {len(lines)} settings"] * (len(known) < len(lines))
    if len(names) == 1:
        return Verdict(names.pop(), ", ".join([*measured, *shared]))
    if not names & {HOLDS, IN_PART}:
        return Verdict(FAILS, ", ".join(measured))
    holding = [] if IN_PART in names else _shared([verdict for verdict in known if verdict.name == HOLDS])
    return Verdict(IN_PART, ", ".join([_holding(lines), *measured, *holding]))


def _shared(verdicts: Sequence[Verdict]) -> list[str]:
    """The remarks that all verdicts have."""
    first, *rest = [verdict.remark.split(", ") for verdict in verdicts]
    return [part for part in first if part and all(part in some for some in rest)]


def _holding(lines: Sequence[Judged]) -> str:
    """In how many settings a claim holds, and in how many more only in part."""
    names = [one.verdict.name for one in lines]
    holding, partly = names.count(HOLDS), names.count(IN_PART)
    remarks = {one.verdict.remark for one in lines if one.verdict.name == IN_PART}
    words = (remarks.pop() if len(remarks) == 1 else "") or "in part"
    more = f", {partly}{' more' * (holding > 0)} {words}" if partly else ""
    return f"{holding} of {len(lines)} settings{more}"


def _measured(lines: Sequence[Judged]) -> str:
    """The number if there is one setting, otherwise their range and in how many settings the claim holds."""
    if len(lines) == 1:
        return lines[0].found.here
    names = [one.verdict.name for one in lines]
    if set(names) == {NOT_MEASURED}:
        return NOT_MEASURED
    told = [f"holds in {_holding(lines)}"]
    others = {NOT_SETTLED: "not settled in", NOT_MEASURED: "not measured in"}
    told += [f"{words} {names.count(name)}" for name, words in others.items() if name in names]
    return "; ".join([*_spread(lines), ", ".join(told)])


def _spread(lines: Sequence[Judged]) -> Iterator[str]:
    """Smallest and largest number of a claim, by the name of the value."""
    found: dict[str, list[Times]] = {}
    form, _, unit = lines[0].claim.spread.partition(" ")
    for one in lines if form else ():
        values = one.found.value if isinstance(one.found.value, Mapping) else {"": one.found.value}
        every: list[tuple[str, Value]] = [("", x) for x in one.found.numbers]
        every = every or [*values.items()]
        for name, value in every:
            if value is not None and value == value:  # nan is not a number to show
                number = value.mean if isinstance(value, Paired) else value
                times = number if isinstance(number, Times) else Times(float(number))
                found.setdefault(name, []).append(times)
    for name, some in found.items():
        ends = [end(some, key=lambda times: times.ratio) for end in (min, max)]
        low, high = (times.words(form) for times in ends)
        yield " ".join(filter(None, [low if low == high else f"{low} to {high}", unit, brief(name)]))


def brief(name: str) -> str:
    """The name of an arithmetic next to a number."""
    return name.removeprefix("in ").removesuffix(" arithmetic")


def by_claim(lines: Iterable[Judged]) -> dict[str, list[Judged]]:
    """Settings by the text of their claim."""
    texts: dict[str, list[Judged]] = {}
    for one in lines:
        texts.setdefault(one.claim.text, []).append(one)
    return texts


#: The five verdicts, for readers, and what to add if a claim has several numbers in a setting.
NOTES = Path(__file__).with_name("verdicts.md").read_text(encoding="utf-8")
SEVERAL = "\nWith {}, a claim holds in a setting if both support it, and holds in part if one does. {}\n"
ARITHMETICS = ("a number in each arithmetic", "If neither does, the paper's arithmetic decides.")
PARTS = ("two conditions", "If neither does, the first decides.")


def claim_tables(
    claims: Sequence[Claim], results: Results, *more: tuple[Sequence[Claim], Results]
) -> dict[str, str]:
    """Tables of a paper by name; `more` are claims of the same paper that other groups measure."""
    every = [one for some, rows in ((claims, results), *more) for one in judged(some, rows)]
    claims = [*claims, *(claim for some, _ in more for claim in some)]
    papers, ours = ([one for one in every if one.claim.ours is own] for own in (False, True))
    made = {"papers": _settings("the paper claims", papers), "claims": _summary(papers)}
    if ours:
        made["questions"] = _settings("question", ours)
    texts = dict.fromkeys(claim.text for claim in claims)
    rules = [[text, ". ".join(_rules(claims, text))] for text in texts]
    names = [overall(some).name for some in by_claim(papers).values()]
    plural = {HOLDS: "hold", IN_PART: "hold in part", FAILS: "fail"}
    counts = [(names.count(name), name) for name in VERDICTS if name in names]
    told = ", ".join(f"{n} {name if n == 1 else plural.get(name, name)}" for n, name in counts)
    made["short"] = f"{len(names)} claim{'s' * (len(names) != 1)}: {told}.\n"
    several = [one.found.value for one in every if isinstance(one.found.value, Mapping) and not one.claim.one]
    arithmetics = any(THEIRS in values for values in several)
    parts = any(len(values) > 1 and THEIRS not in values for values in several)
    table = markdown(["claim", "holds if"], rules, words=True)
    made["rules"] = (
        f"{table}\n{NOTES}{SEVERAL.format(*ARITHMETICS) * arithmetics}{SEVERAL.format(*PARTS) * parts}"
    )
    return made


def _rules(claims: Iterable[Claim], text: str) -> dict[str, None]:
    """The rules of a claim, each once, as sentences."""
    return dict.fromkeys(one.rule[:1].upper() + one.rule[1:] for one in claims if one.text == text)


def _settings(title: str, lines: Sequence[Judged]) -> str:
    """A row per setting; the first row of a claim names it."""
    papers = any(one.found.paper for one in lines)  # our own questions usually have none
    headings = [title, "setting", *["paper"] * papers, "measured here", "verdict", "see"]
    rows = []
    for text, some in by_claim(lines).items():
        for one in some:
            found = one.found
            paper = [found.paper] * papers
            cells = [found.where, *paper, found.here, str(one.verdict), links(found.shown)]
            rows.append([text if one is some[0] else "", *cells])
    return markdown(headings, rows, words=True)


def _summary(lines: Sequence[Judged]) -> str:
    rows = []
    for text, some in by_claim(lines).items():
        behind = dict.fromkeys(name for one in some for name in one.found.shown)
        papers = "; ".join(filter(None, dict.fromkeys(one.claim.paper or one.found.paper for one in some)))
        rows.append([text, papers, _measured(some), str(overall(some)), links(tuple(behind))])
    return markdown(["the paper claims", "paper", "measured here", "verdict", "see"], rows, words=True)


def links(names: Sequence[str]) -> str:
    """Links to tables and pictures in the same folder; a name may be a link already."""
    number = re.compile(r"^(figure|table)(\d+(?:-\d+)?)-?")
    stems = [number.sub(r"\1 \2 ", PurePosixPath(name).stem).strip() for name in names]
    return ", ".join(n if n[0] == "[" else f"[{stem}]({n})" for n, stem in zip(names, stems, strict=True))


def each(
    places: Callable[[Results], Iterable[P]],
) -> Callable[[Measure[P]], Callable[[Results], Iterator[Found]]]:
    """Turn a measurement at one place (a corpus, a function) into one at every place."""

    def decorate(find: Measure[P]) -> Callable[[Results], Iterator[Found]]:
        return lambda results: (found for place in places(results) for found in find(results, place))

    return decorate
