"""The tables of the group: what a sequence takes at each size, and the paper's law with its verdict."""

from __future__ import annotations

from bench.figures.base import Results, markdown
from bench.figures.cost.laws import findings, per_sequence
from bench.figures.cost.measuring import AXES, BEST_PATH, GRADIENT, OURS, PAPER, PRODUCT, Axis
from bench.verdicts import claims_table, summary_table

__all__ = ["COLUMNS", "tables"]

#: What is shown, and drawn: arithmetic, what was called, and its name.
COLUMNS = (
    (PAPER, GRADIENT, "gradient, log"),
    (PAPER, PRODUCT, "product, log, pairs kept"),
    (OURS, GRADIENT, "gradient, scaled"),
    (OURS, PRODUCT, "product, scaled, vectors kept"),
    (OURS, BEST_PATH, "best path"),
)
KILO = 1e3


def tables(results: Results) -> dict[str, str]:
    found = findings(results)
    return {
        **{axis.name: _sizes(results, axis) for axis in AXES},
        "papers": claims_table(found),
        "claims": summary_table(found),
    }


def _sizes(results: Results, axis: Axis) -> str:
    headings = ["µs of a sequence", *(title for *_, title in COLUMNS)]
    headings += ["products in a gradient, log", "scaled", "kept, pairs", "kept, vectors"]
    columns = [per_sequence(results, axis, mode, measured) for mode, measured, _ in COLUMNS]
    rows = []
    for cells in zip(*columns, strict=True):
        row, seconds = cells[0][0], [value for _, value in cells]
        kept = [cells[n][0]["kept_bytes"] / row["n_sequences"] / KILO for n in (1, 3)]
        rows.append(
            [
                f"T = {row['length']}, L = {row['n_labels']}, k = {row['order']}",
                *(f"{value:,.1f}" for value in seconds),
                f"{seconds[0] / seconds[1]:.1f}",
                f"{seconds[2] / seconds[3]:.1f}",
                *(f"{value:,.1f} kB" for value in kept),
            ]
        )
    return markdown(headings, rows)
