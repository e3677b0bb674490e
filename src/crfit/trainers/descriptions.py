"""What the registry knows about a trainer, in words: for `crfit trainers` and the reference page.

The stopping test is read from the rules that a run has by default, so that this agrees with `crfit.train`.
"""

from crfit.trainers.registry import TrainerInfo, describe, names
from crfit.training.stopping import Stop

#: Capabilities of an objective as a reader knows them; "" where another one implies it.
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
#: Numbers of a step whose change is watched.
WATCHED = {
    "objective": "F changes",
    "online_objective": "the running F improves",
    "online_loss": "the running loss improves",
}
#: The order of trainers in a table: by the last of these that they need.
KINDS = ("value_and_grad", "dual", "online", "feature_totals", "scaling_terms", "margin")


def minimises(info: TrainerInfo) -> str:
    """What a trainer minimises."""
    penalties = [term for term in ("l1", "l2") if term in info.handles]
    return info.minimises or " with ".join(filter(None, ["F", " and ".join(penalties)]))


def needs(info: TrainerInfo) -> str:
    """What a trainer needs of the objective."""
    known = [words for name, words in CAPABILITIES.items() if name in info.needs and words]
    return ", ".join(known + sorted(info.needs - CAPABILITIES.keys())) or "nothing"


def stops(info: TrainerInfo) -> str:
    """Which test ends a run by default."""
    if info.rules:
        return "as the chosen trainer"
    rules = Stop().with_defaults(info.window, info.change, info.grad_rel)
    tests = []
    if rules.grad_rel is not None:
        tests.append(f"gradient at most {_short(rules.grad_rel)} of the weights, in norm")
    if rules.change is not None and rules.change_tolerance is not None:
        watched = WATCHED.get(rules.change, f"{rules.change} improves")
        unit = "step" if rules.change == "objective" else "epoch"
        span = f"a {unit}" if rules.change_window == 1 else f"{rules.change_window} {unit}s"
        small = f"{watched} by less than {_short(rules.change_tolerance)} (relative) over {span}"
        tests.append(f"{small} (stalled)" if rules.grad_rel is not None else small)
    epochs = next((entry.default for entry in info.options if entry.name == "epochs"), None)
    if epochs is not None:
        tests.append(f"after `epochs` ({epochs})")
    return "; ".join(filter(None, [*tests, info.ends]))


def _short(number: float) -> str:
    return f"{number:.0e}".replace("e-0", "e-")


def facts(info: TrainerInfo) -> list[tuple[str, str]]:
    """Headings and texts about a trainer, without its options."""
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
    """All trainers by kind: the one that chooses, whole data, dual, on-line, scaling, best paths."""

    def kind(info: TrainerInfo) -> int:
        return -1 if info.rules else max((k for k, name in enumerate(KINDS) if name in info.needs), default=0)

    return sorted(map(describe, names()), key=kind)
