"""Descriptions of trainers, from the registry, for `crfit trainers` and docs/trainers.md.

The stopping rule comes from `Stop.with_defaults`, as in `crfit.train`.
"""

from crfit.trainers.registry import TrainerInfo, describe, names
from crfit.training.stopping import Stop

#: Capabilities of an objective in words; "" if another one implies it.
CAPABILITIES = {
    "value_and_grad": "value and gradient",
    "hvp": "Hessian-vector products",
    "hessian_diagonal": "the Hessian's diagonal",
    "online": "updates on single sequences",
    "margin": "best paths of single sequences",
    "dual": "the dual problem",
    "value": "",
    "subset": "",
    "feature_totals": "non-negative attribute values",
    "scaling_terms": "a classifier with non-negative attribute values",
}
#: Numbers of a step that the stopping rule may watch.
WATCHED = {
    "objective": "F changes",
    "online_objective": "the running objective improves",
    "online_loss": "the running loss improves",
}
#: Trainers are listed by the last of these that they need.
KINDS = ("value_and_grad", "dual", "online", "feature_totals", "scaling_terms", "margin")


def minimises(info: TrainerInfo) -> str:
    """What a trainer minimises."""
    more = " (also toward old weights)" if "toward" in info.handles else ""
    penalties = [term + (more if term == "l2" else "") for term in ("l1", "l2") if term in info.handles]
    return info.minimises or " with ".join(filter(None, ["F", " and ".join(penalties)]))


def needs(info: TrainerInfo) -> str:
    """What a trainer needs from the objective."""
    known = [words for name, words in CAPABILITIES.items() if name in info.needs and words]
    return ", ".join(known + sorted(info.needs - CAPABILITIES.keys())) or "nothing"


def stops(info: TrainerInfo) -> str:
    """When a run ends by default."""
    if info.rules:
        return "as the trainer it picks"
    rules = Stop().with_defaults(info.window, info.change, info.grad_rel)
    tests = []
    if rules.grad_rel is not None:
        tests.append(f"|gradient| is at most {_short(rules.grad_rel)} max(1, |w|)")
    if rules.change is not None and rules.change_tolerance is not None:
        watched = WATCHED.get(rules.change, f"{rules.change} improves")
        unit = "iteration" if rules.change == "objective" else "epoch"
        span = f"one {unit}" if rules.change_window == 1 else f"{rules.change_window} {unit}s"
        small = f"{watched} by less than {_short(rules.change_tolerance)} (relative) over {span}"
        tests.append(f"{small} (reported as stalled)" if rules.grad_rel is not None else small)
    endings = [f"when {' or '.join(tests)}"] if tests else []
    epochs = next((entry.default for entry in info.options if entry.name == "epochs"), None)
    if epochs is not None:
        endings.append(f"after {epochs} epochs (`epochs`)" if isinstance(epochs, int) else "after `epochs`")
    return ", or ".join(filter(None, [*endings, info.ends]))


def _short(number: float) -> str:
    return f"{number:.0e}".replace("e-0", "e-")


def facts(info: TrainerInfo) -> list[tuple[str, str]]:
    """Headings and texts about a trainer, without its options."""
    rows = [
        ("use it when", info.choose),
        ("minimises", minimises(info)),
        ("step", "" if info.rules else f"`{info.formula}`"),
        ("needs", needs(info)),
        ("extra memory", info.keeps),
        ("stops", stops(info)),
    ]
    return [(heading, words) for heading, words in rows if words]


def ordered() -> list[TrainerInfo]:
    """All trainers by kind: auto, full-batch, dual, online, scaling, mistake-driven."""

    def kind(info: TrainerInfo) -> int:
        return -1 if info.rules else max((k for k, name in enumerate(KINDS) if name in info.needs), default=0)

    return sorted(map(describe, names()), key=kind)
