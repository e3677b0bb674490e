"""What the registry knows about a trainer, in words: for `crfit trainers`, the reference page and the README.

The stopping test is read from the rules that a run of the trainer has unless the user gives others, so that
these words cannot say anything else than `crfit.train` does.
"""

from __future__ import annotations

from crfit.trainers.registry import TrainerInfo, describe, names
from crfit.training.stopping import Stop

__all__ = ["facts", "minimises", "needs", "ordered", "stops"]

#: Capabilities of an objective, as a reader knows them; "" where another one says it all.
CAPABILITIES = {
    "value_and_grad": "value and gradient",
    "hvp": "Hessian products",
    "hessian_diagonal": "the Hessian's diagonal",
    "online": "single sequences in turn",
    "margin": "best paths of single sequences",
    "dual": "the dual",
    "value": "",
    "subset": "",
    "feature_totals": "no negative features",
    "scaling_terms": "one position in each sequence, no negative features",
}
#: Numbers of a step that a change is looked for in.
WATCHED = {"objective": "F changes", "online_objective": "F as met falls", "online_loss": "loss as met falls"}
#: In what order a table shows trainers: by the last of these that they need.
KINDS = ("value_and_grad", "dual", "online", "feature_totals", "scaling_terms", "margin")


def minimises(info: TrainerInfo) -> str:
    """Say what a trainer minimises."""
    penalties = [term for term in ("l1", "l2") if term in info.handles]
    return info.minimises or " with ".join(filter(None, ["F", " and ".join(penalties)]))


def needs(info: TrainerInfo) -> str:
    """Say what a trainer needs of the objective."""
    known = [words for name, words in CAPABILITIES.items() if name in info.needs and words]
    return ", ".join(known + sorted(info.needs - CAPABILITIES.keys())) or "nothing"


def stops(info: TrainerInfo) -> str:
    """Say which test ends a run of a trainer, unless the user gives another."""
    if info.rules:
        return "as the one chosen"
    rules = Stop().with_defaults(info.window, info.change, info.grad_rel)
    tests = []
    if rules.grad_rel is not None:
        tests.append(f"gradient at most {_short(rules.grad_rel)} of the weights, in norm")
    if rules.change is not None and rules.change_tolerance is not None:
        watched = WATCHED.get(rules.change, f"{rules.change} falls")
        unit = "step" if rules.change == "objective" else "epoch"
        span = f"a {unit}" if rules.change_window == 1 else f"{rules.change_window} {unit}s"
        small = f"{watched} by less than {_short(rules.change_tolerance)} of itself over {span}"
        tests.append(f"{small} (stalled)" if rules.grad_rel is not None else small)
    epochs = next((entry.default for entry in info.options if entry.name == "epochs"), None)
    if epochs is not None:
        tests.append(f"after `epochs` ({epochs})")
    return "; ".join(filter(None, [*tests, info.ends]))


def _short(number: float) -> str:
    return f"{number:.0e}".replace("e-0", "e-")


def facts(info: TrainerInfo) -> list[tuple[str, str]]:
    """What there is to know about a trainer, options apart: headings and words."""
    told = [
        ("minimises", minimises(info)),
        ("step", f"`{info.formula}`"),
        ("needs", needs(info)),
        ("keeps", info.keeps),
        ("stops", stops(info)),
        ("choose it", info.choose),
    ]
    return [(heading, words) for heading, words in told if words]


def ordered() -> list[TrainerInfo]:
    """Every trainer, like by like: that which chooses, on the whole data, on-line, scaling, by best paths."""

    def kind(info: TrainerInfo) -> int:
        return -1 if info.rules else max((k for k, name in enumerate(KINDS) if name in info.needs), default=0)

    return sorted(map(describe, names()), key=kind)
