"""The paper's Figure 1: what the residual of a weight becomes, with the constants of its experiments.

Nothing here is measured. The paper says that the sigmoids have one slope at 0 and are bounded by -1 and 1;
with its constants that is so for erf alone, and the rate takes up the rest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from crfit.bregman import transformed
from crfit.online import Transform
from crfit.picture_names import name_ends
from crfit.picture_style import INK, plain_axes
from numpy.typing import NDArray

from bench.figures.base import markdown
from bench.figures.natural_gradient.entries import ARCTAN_1, ARCTAN_2, ERF, GD, U1, Entry
from bench.gap_picture import draw_lines
from bench.online_runs import trainer_of
from bench.pictures import titled_figure
from crfit.trainers import NGD

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["transform_picture", "transform_table", "transform_values"]

DRAWN = (U1, ARCTAN_1, ARCTAN_2, ERF, GD)
#: The slope at 0 that the paper asks for; arctan(3.16 u) has that of its G1.
SLOPES = {U1: 10.0, ARCTAN_1: 3.16, ARCTAN_2: 10.0, ERF: 10.0, GD: 10.0}
POINTS, TINY = 401, 1e-7


def transform_values(entry: Entry, u: NDArray[np.float64]) -> NDArray[np.float64]:
    """T(u) of a trainer."""
    trainer = trainer_of(entry.text)
    assert isinstance(trainer, NGD)
    assert trainer.update in ("U1", "U2")
    assert trainer.parameter is not None
    return transformed(Transform(trainer.potential, trainer.update, trainer.parameter), u)


def transform_table() -> str:
    """Slope at 0, value at 1 and bound of each transform."""
    headings = ["T(u)", "slope at 0, the paper", "here", "T(1)", "largest from 0 to 1"]
    u, rows = np.linspace(0.0, 1.0, POINTS), []
    for entry in DRAWN:
        slope = transform_values(entry, np.array([TINY]))[0] / TINY
        values = transform_values(entry, u)
        rows.append(
            [entry.title, f"{SLOPES[entry]:g}", f"{slope:.2f}", f"{values[-1]:.3f}", f"{values.max():.3f}"]
        )
    return markdown(headings, rows)


def transform_picture() -> Figure:
    """T from -1 to 1."""
    words = "U1: u / (u² + 0.1); U2: the sigmoids with the constants of the paper's experiments"
    figure = titled_figure((9.0, 4.8), "What natural gradients make of a residual", words)
    axes = figure.subplots()
    plain_axes(axes, log_x=False, log_y=False)
    axes.set_xlabel("residual u: expected minus observed count", color=INK)
    axes.set_ylabel("T(u)", color=INK)
    u = np.linspace(-1.0, 1.0, POINTS)
    lines = [
        (entry.title, list(zip(u.tolist(), transform_values(entry, u).tolist(), strict=True)), False)
        for entry in DRAWN
    ]
    name_ends(figure, [(axes, draw_lines(axes, lines))])
    return figure
