"""The function that entries minimise, and the point from which they all start.

A problem is the data with those options of `crfit.fit.FitOptions` that define the function. Entries with the
same options share one objective, so its tables are made once and their values compare; the others have optima
of their own.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from crfit.data import Dataset
from crfit.data.dataset import recode
from crfit.engines import EngineObjective
from crfit.engines.objective import DEFAULT_L2
from crfit.errors import OptionError
from crfit.fit import DEFAULTS, FitOptions, HeldOutScorer, choose_scheme, make_problem
from crfit.layout import TransitionsOption, WeightsOption
from crfit.layout.constraints import Constraints, make_constraints
from crfit.racing.result import Point
from crfit.trainers.options import check_options, option, option_table
from crfit.vectors import Vector

#: Weights to held-out scores in percent.
Score = Callable[[Vector], Mapping[str, float]]


def spelled(value: object) -> str:
    """Return the value of an option as a user would type it."""
    if isinstance(value, float):
        short = f"{value:g}"
        return short if float(short) == value else repr(value)
    return str(value).lower() if value is None or isinstance(value, bool) else str(value)


@dataclass(frozen=True)
class ProblemOptions:
    """Options that define the function, with the defaults of `crfit.fit.FitOptions`."""

    l2: float = option(DEFAULT_L2, help="penalty (l2/2) |w|^2", at_least=0, below=math.inf)
    l1: float = option(DEFAULTS.l1, help="penalty l1 |w|", at_least=0, below=math.inf)
    weights: WeightsOption = option(DEFAULTS.weights, help="(attribute, label) pairs with a weight")  # noqa: RUF009
    transitions: TransitionsOption = option(DEFAULTS.transitions, help="(label, label) pairs with one")  # noqa: RUF009
    boundary: bool = option(DEFAULTS.boundary, help="weights for first and last labels")
    order: int = option(DEFAULTS.order, help="longest label history", at_least=1)
    min_count: int = option(DEFAULTS.min_count, help="rarer attributes are left out", at_least=0)

    def __post_init__(self) -> None:
        check_options(self)
        for name in ("l2", "l1"):  # so that NumPy's numbers and -0 have the same name as in a journal
            object.__setattr__(self, name, float(getattr(self, name)) + 0.0)
        for name in ("order", "min_count"):
            object.__setattr__(self, name, int(getattr(self, name)))

    @property
    def name(self) -> str:
        """The value of l2, and whatever is not the default."""
        values = {entry.name: getattr(self, entry.name) for entry in PROBLEM_OPTIONS.values()}
        default = {entry.name: entry.default for entry in PROBLEM_OPTIONS.values()}
        shown = [key for key, value in values.items() if key == "l2" or value != default[key]]
        return " ".join(f"{key}={spelled(values[key])}" for key in shown)


#: Options of the problem by name.
PROBLEM_OPTIONS = {entry.name: entry for entry in option_table(ProblemOptions)}


def read_problem_options(given: Mapping[str, Any]) -> ProblemOptions:
    """Return the options that hold for all entries; OptionError for an unknown name or a bad value."""
    for name, value in given.items():
        if name not in PROBLEM_OPTIONS:
            raise OptionError(name, value, f"no option of a race; there are {', '.join(PROBLEM_OPTIONS)}")
    return ProblemOptions(**given)


@dataclass(frozen=True)
class Problem:
    """An objective, held-out scores of weights (None without held-out data), and the evaluated start."""

    objective: EngineObjective
    score: Score | None
    start: Point


def prepare(
    options: ProblemOptions, dataset: Dataset, dev: Dataset | None, *, device: str, n_threads: int | None
) -> Problem:
    """Make the objective and evaluate the common start."""
    chosen = FitOptions(device=device, n_threads=n_threads, **asdict(options))
    scheme = choose_scheme(dataset, chosen)
    names = dataset.label_alphabet.strings()
    constraints = None if scheme is None else make_constraints(names, scheme=scheme)
    return ready(make_problem(dataset, chosen), dev, n_threads, constraints)


def ready(
    objective: EngineObjective,
    dev: Dataset | None,
    n_threads: int | None,
    constraints: Constraints | None = None,
) -> Problem:
    """Evaluate zero weights, with no clock running; `constraints` are those of tagging held-out data.

    The gradient there also builds the tables that the first entry would otherwise pay for.
    """
    score = None
    if dev is not None:
        # A high order may have moved the objective to another engine, with a warning: use that one too.
        held_out = recode(dev, objective.dataset)
        score = HeldOutScorer(
            held_out, objective.layout, objective.device, n_threads, constraints=constraints
        ).watched
    w = objective.xp.zeros(objective.n_weights)
    smooth, _ = objective.value_and_grad(w)
    value = float(objective.full_value(w, smooth))
    start = Point(0, 0.0, 0.0, value, scores={} if score is None else score(w))
    return Problem(objective, score, start)
