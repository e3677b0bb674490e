"""Which label sequences are possible: pairs of neighbouring labels, first and last labels.

Constraints on neighbours and ends hold for every sequence; most come from the scheme in which labels encode
spans. With the prefixes B (begin), I (inside), E (end), S (single) and the label O (outside)

    BIO     I-x follows B-x or I-x
    IOB1    B-x follows B-x or I-x: it only separates two spans of one type
    IOBES   I-x and E-x follow B-x or I-x, and only they do; sequences end outside of a span
    BILOU   the same with L for E and U for S

A forbidden sequence has the score minus infinity: best paths, n-best lists and probabilities are exact for
the others. `crfit.data.label_sets` restricts the labels of single positions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from crfit.data.label_sets import LabelSets, Names, members
from crfit.errors import DataError, OptionError

if TYPE_CHECKING:
    from crfit.data import Dataset
    from crfit.data.shards import Shards

#: Schemes of span labels with constraints.
LabelScheme: TypeAlias = Literal["BIO", "IOB1", "IOBES", "BILOU"]
#: Values of the option ``scheme``.
SchemeOption: TypeAlias = Literal["auto", "BIO", "IOB1", "IOBES", "BILOU"] | None

OUTSIDE: Final = "O"
#: Largest share of sequences that may violate a detected scheme: corpora have a few wrong labels.
SLIPS: Final = 1e-3
_ROLES: Final = {"B": "B", "I": "I", "M": "I", "E": "E", "L": "E", "S": "S", "U": "S", "W": "S"}


@dataclass(frozen=True, eq=False)
class Constraints:
    """Possible neighbours and ends of label sequences, by label id.

    Parameters
    ----------
    follow : bool array of shape (Y, Y)
        ``follow[i, j]``: label j may follow label i.
    begin, end : bool array of shape (Y,)
        Labels with which a sequence may begin and end.
    """

    follow: NDArray[np.bool_]
    begin: NDArray[np.bool_]
    end: NDArray[np.bool_]

    @classmethod
    def none(cls, n_labels: int) -> Constraints:
        """Everything is possible."""
        return cls(
            np.ones((n_labels, n_labels), dtype=bool),
            np.ones(n_labels, dtype=bool),
            np.ones(n_labels, dtype=bool),
        )

    def __and__(self, other: Constraints) -> Constraints:
        """What both allow."""
        return Constraints(self.follow & other.follow, self.begin & other.begin, self.end & other.end)

    @property
    def trivial(self) -> bool:
        """Whether nothing is forbidden."""
        return bool(self.follow.all() and self.begin.all() and self.end.all())

    @property
    def always_feasible(self) -> bool:
        """Whether there is a label sequence of every length."""
        reached, seen = self.begin, set()
        while (state := reached.tobytes()) not in seen:
            if not (reached & self.end).any():
                return False
            seen.add(state)
            reached = np.asarray(self.follow[reached].any(axis=0))
        return True


def make_constraints(
    names: Sequence[str],
    *,
    scheme: LabelScheme | None = None,
    forbid: Iterable[tuple[str, str]] = (),
    require: Mapping[str, Names] | None = None,
    first: Names | None = None,
    last: Names | None = None,
) -> Constraints:
    """Constraints on the labels `names`, in the order of their ids; the others as in `crfit.Model.constrain`.

    In a scheme, a label without one of its prefixes counts as outside of spans.
    """
    ids = {name: i for i, name in enumerate(names)}
    found = Constraints.none(len(names)) if scheme is None else _of_scheme(scheme, names)
    follow, begin, end = found.follow.copy(), found.begin.copy(), found.end.copy()
    if isinstance(forbid, str | Mapping):
        raise OptionError("forbid", type(forbid).__name__, "give pairs of labels, as [('O', 'I-CITY')]")
    for pair in forbid:
        if isinstance(pair, str) or len(pair) != 2:
            raise OptionError("forbid", pair, "give pairs of labels, as [('O', 'I-CITY')]")
        before, after = (int(np.flatnonzero(members("forbid", one, ids))[0]) for one in pair)
        follow[before, after] = False
    if require is not None and not isinstance(require, Mapping):
        raise OptionError("require", type(require).__name__, "give a mapping, as {'B-QTY': ['B-UNIT']}")
    for label, allowed in (require or {}).items():
        follow[members("require", label, ids)] &= members("require", allowed, ids)
    if first is not None:
        begin &= members("first", first, ids)
    if last is not None:
        end &= members("last", last, ids)
    return Constraints(follow, begin, end)


def _parts(names: Sequence[str]) -> tuple[list[str], list[str]]:
    """Role (B, I, E, S, or O for any other label) and type of each label."""
    split = [name.partition("-") for name in names]
    return [_ROLES.get(prefix, OUTSIDE) for prefix, _, _ in split], [kind for _, _, kind in split]


def _of_scheme(scheme: LabelScheme, names: Sequence[str]) -> Constraints:
    if scheme not in get_args(LabelScheme):
        raise OptionError("scheme", scheme, f"choose {', '.join(get_args(LabelScheme))} or None")
    roles, kinds = _parts(names)
    if scheme in ("IOBES", "BILOU") and "B" in roles and not {"E", "S"} & set(roles):
        ends, single = ("E", "S") if scheme == "IOBES" else ("L", "U")
        raise OptionError("scheme", scheme, f"no label begins with {ends}- or {single}-: name another scheme")

    def role(letters: str) -> NDArray[np.bool_]:
        return np.array([one in letters for one in roles], dtype=bool)

    same = np.array([[a == b for b in kinds] for a in kinds], dtype=bool).reshape(len(names), len(names))
    inside = role("BI")[:, None] & same  # a span of the type of the second label is open after the first
    found = Constraints.none(len(names))
    if scheme == "BIO":
        return Constraints(~role("I") | inside, ~role("I"), found.end)
    if scheme == "IOB1":
        return Constraints(~role("B") | inside, ~role("B"), found.end)
    continues = role("IE")
    follow = np.where(role("BI")[:, None], inside & continues, ~continues)
    return Constraints(follow, ~continues, ~role("BI"))


def detect_scheme(dataset: Dataset | Shards) -> LabelScheme | None:
    """The scheme that the labels of a dataset or of shards follow, or None.

    Every label is ``O`` or has a prefix of the scheme, nearly every sequence is valid in it (`SLIPS`), and it
    forbids something.
    """
    names = dataset.label_alphabet.strings()
    prefixes = {name.partition("-")[0] for name in names if name != OUTSIDE}
    typed = any("-" in name for name in names)
    if not prefixes <= set(_ROLES) or (typed and not all("-" in name for name in names if name != OUTSIDE)):
        return None
    candidates: tuple[LabelScheme, ...] = ("BIO", "IOB1")
    if prefixes - {"B", "I"}:
        candidates = ("BILOU",) if prefixes & {"L", "U"} else ("IOBES",)
    for scheme in candidates:
        found = _of_scheme(scheme, names)
        if found.trivial:
            continue
        if share_invalid(dataset, found) <= SLIPS:
            return scheme
    return None


def share_invalid(dataset: Dataset | Shards, constraints: Constraints) -> float:
    """Share of the sequences whose labels violate the constraints."""
    n_invalid = 0
    for part in dataset.parts():
        if part.n_sequences:
            invalid = np.logical_or.reduceat(violations(part, constraints), part.seq_ptr[:-1])
            n_invalid += np.count_nonzero(invalid)
    return n_invalid / max(1, dataset.n_sequences)


def first_violation(dataset: Dataset, constraints: Constraints) -> int | None:
    """The first of the `violations`; None without any."""
    wrong = violations(dataset, constraints)
    return int(np.argmax(wrong)) if wrong.any() else None


def violations(dataset: Dataset, constraints: Constraints) -> NDArray[np.bool_]:
    """Positions whose label must not follow the previous label, or begin or end a sequence, bool[N].

    Positions whose label is not known are skipped.
    """
    labels = dataset.labels
    if labels is None or dataset.n_tokens == 0:
        return np.zeros(dataset.n_tokens, dtype=bool)
    known = np.ones(len(labels), dtype=bool) if dataset.label_sets is None else dataset.label_sets.rows < 0
    wrong = np.zeros(len(labels), dtype=bool)
    wrong[1:] = ~constraints.follow[labels[:-1], labels[1:]] & known[:-1]
    first, last = dataset.seq_ptr[:-1], dataset.seq_ptr[1:] - 1
    wrong[first] = ~constraints.begin[labels[first]]
    wrong[last] |= ~constraints.end[labels[last]]
    return np.asarray(wrong & known)


def infeasible(
    dataset: Dataset, sequence: int, constraints: Constraints | None, sets: LabelSets | None
) -> DataError:
    """The error for a sequence without any possible labels; it names the position where they end."""
    begin, end = int(dataset.seq_ptr[sequence]), int(dataset.seq_ptr[sequence + 1])
    n_labels = dataset.n_labels if constraints is None else len(constraints.begin)
    if sets is not None:
        n_labels = sets.scores.shape[1]
    constraints = Constraints.none(n_labels) if constraints is None else constraints
    position, reached = 0, constraints.begin
    for position in range(end - begin):
        row = -1 if sets is None else int(sets.rows[begin + position])
        if position > 0:
            reached = np.asarray(constraints.follow[reached].any(axis=0))
        if sets is not None and row >= 0:
            reached = reached & np.isfinite(sets.scores[row])
        if position == end - begin - 1:
            reached = reached & constraints.end
        if not reached.any():
            break
    lines = dataset.line_numbers
    return DataError(
        "no label is possible here: the given labels and the constraints on neighbouring labels "
        "contradict each other; relax one of them",
        file=dataset.source,
        line=None if lines is None else int(lines[begin + position]),
        sequence=sequence,
        position=position,
    )


def check_scheme_option(scheme: Any) -> None:
    """Raise OptionError unless this is a value of the option ``scheme``."""
    if scheme is not None and scheme != "auto" and scheme not in get_args(LabelScheme):
        raise OptionError("scheme", scheme, f"choose 'auto', {', '.join(get_args(LabelScheme))} or None")
