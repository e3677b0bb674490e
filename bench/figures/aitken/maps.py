"""Iterative scaling on the whole data: its two maps, each by itself and with every acceleration.

A jump is taken if F is lower there than after the plain step, as the method has it, for which both points are
evaluated. What crfit does by default compares with the bound on F after the plain step, and saves a pass at
every jump: entries whose title says so.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

__all__ = ["QUICK_SCALING", "SCALING", "Scaling"]


@dataclass(frozen=True)
class Scaling:
    """Iterative scaling on the whole data.

    Parameters
    ----------
    key, title, text : str
        As of an on-line trainer.
    map : str
        The fixed-point map.
    most : int
        Passes after which it ends without having reached the gap.
    plain : bool
        Whether it is not accelerated.
    paper : bool
        Whether it is an acceleration of the paper: an estimate of its own, and a jump judged by F.
    """

    key: str
    title: str
    text: str
    map: str
    most: int
    plain: bool = False
    paper: bool = False


#: Maps by the option of `aitken`: one bound for all sequences, and one for each, whose steps are longer and
#: take longer; with the passes that they have.
_MAPS = {"gis": ("S", 600), "T": ("T(x)", 200)}
#: gamma 2 is the triple jump.
_HOW = {
    "aitken-1": ("Aitken γ1", "acceleration=aitken:gamma=1:scope=global:accept=step"),
    "aitken-2": ("Aitken γ2, triple jump", "acceleration=aitken:gamma=2:scope=global:accept=step"),
    "aitken-3": ("Aitken γ3", "acceleration=aitken:gamma=3:scope=global:accept=step"),
    "aitken-group": ("Aitken γ3, by group", "acceleration=aitken:gamma=3:scope=group:accept=step"),
    "component": ("triple jump, by weight", "acceleration=triple_jump:scope=component:accept=step"),
    "aitken-3-bound": ("Aitken γ3, by the bound", "acceleration=aitken:gamma=3:scope=global:accept=bound"),
    "component-bound": (
        "triple jump, by weight, by the bound",
        "acceleration=triple_jump:scope=component:accept=bound",
    ),
    "anderson": ("Anderson, by the bound", "acceleration=anderson:accept=bound"),
}


def _on(name: str, bound: str, most: int) -> tuple[Scaling, ...]:
    plain = Scaling(f"{name}-none", f"{bound}, plain", f"gis:map={bound[0]}", name, most, plain=True)
    accelerated = (
        Scaling(
            f"{name}-{key}",
            f"{bound}, {title}",
            f"aitken:map={name}:{how}",
            name,
            most,
            paper=how.startswith("acceleration=aitken:") and how.endswith(":accept=step"),
        )
        for key, (title, how) in _HOW.items()
    )
    return (plain, *accelerated)


SCALING = tuple(one for name, (bound, most) in _MAPS.items() for one in _on(name, bound, most))
QUICK_SCALING = tuple(replace(one, most=200) for one in SCALING if one.plain or one.key.endswith("-aitken-3"))
