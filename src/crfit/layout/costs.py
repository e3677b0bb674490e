"""Costs of mistakes, for training that prefers recall or precision of some labels.

Softmax-margin training adds the cost of a mistake to the score of the wrong label, so that the model must
give a costly mistake less probability than a cheap one:

    F(w) = sum_i c_i ( log sum_y exp(score(x_i, y) + sum_t cost(y_it, y_t)) - score(x_i, y_i) ) + penalties

It is convex. Without costs it is the usual loss, minus the log of the probability of the labels.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from crfit.errors import OptionError

#: Any label, in a cost.
ANY: Final = "*"
#: What a user gives: the cost of a pair (true, predicted), or of all mistakes on a true label.
CostsOption: TypeAlias = Mapping[Any, float] | None
#: The same in order, as (true, predicted, cost).
Costs: TypeAlias = tuple[tuple[str, str, float], ...]

_FORM = "give {('B-PER', 'O'): 2.0} for a mistake, {'B-PER': 2.0} for all mistakes on a label"


def read_costs(costs: CostsOption) -> Costs:
    """Costs as triples; OptionError for anything but a mapping from labels or pairs to numbers, 0 or more."""
    if costs is None:
        return ()
    if not isinstance(costs, Mapping):
        raise OptionError("costs", type(costs).__name__, _FORM)
    found = []
    for pair, cost in costs.items():
        names: Any = (pair, ANY) if isinstance(pair, str) else pair
        if not isinstance(names, tuple) or [type(name) for name in names] != [str, str]:
            raise OptionError("costs", pair, _FORM)
        amount: Any = cost
        number = isinstance(amount, Real) and not isinstance(amount, bool | np.bool_)
        if not (number and math.isfinite(amount) and amount >= 0.0):
            raise OptionError("costs", amount, "a cost must be a finite number, 0 or more")
        found.append((names[0], names[1], float(amount)))
    return tuple(found)


def cost_table(names: Sequence[str], costs: Costs) -> NDArray[np.float64]:
    """Costs by the ids of true and predicted label, float64[Y, Y]; later entries replace earlier ones."""
    ids = {name: i for i, name in enumerate(names)}
    table = np.zeros((len(names), len(names)))
    for true, predicted, cost in costs:
        for name in (true, predicted):
            if name != ANY and name not in ids:
                known = ", ".join(sorted(ids)[:10]) + (", ..." if len(ids) > 10 else "")
                raise OptionError("costs", name, f"the data has no such label; it has {known}")
        row = slice(None) if true == ANY else ids[true]
        table[row, slice(None) if predicted == ANY else ids[predicted]] = cost
    np.fill_diagonal(table, 0.0)
    return table
