"""Picture of the stored run of the core benchmark, for the README.

    python -m bench.figure                 bench/results/core.json -> bench/results/core.png

A panel for all weights and one for observed weights, on one scale of seconds: an iteration of
python-crfsuite, an iteration of crfit, and the value and gradient within it. Nothing is measured here; run
`bench.core` for that. Ground, ink and colours are part of the picture, so that it reads the same on light and
on dark pages.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes

STORED = Path(__file__).parent / "results" / "core.json"
GROUND, INK, QUIET, LINE = "#fbfbf9", "#1d1d1f", "#62666d", "#dcdcd6"
# Grey for the other tool; two depths of one blue for ours, apart in lightness and so without colours too.
RIVAL, OURS, WITHIN = "#a3a7ad", "#0072b2", "#5fb3e0"
FONT = ["DejaVu Sans"]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--results", type=Path, default=STORED, help="what bench.core stored")
    parser.add_argument("--out", type=Path, help="picture; by default core.png beside the results")
    options = parser.parse_args()
    out = options.out or options.results.with_suffix(".png")
    draw(json.loads(options.results.read_text(encoding="utf-8")), out)
    print(out)


def draw(result: dict[str, Any], path: Path) -> None:
    """Draw what `bench.core` stored; the suffix of the path is the format."""
    import matplotlib
    from matplotlib.figure import Figure

    parts = [("all", "every (attribute, label) pair"), ("observed", "pairs seen in training")]
    slowest = max(result[name]["crfsuite_iteration_seconds"] for name, _ in parts)
    with matplotlib.rc_context({"font.family": FONT, "font.size": 10, "text.color": INK}):
        figure = Figure(figsize=(9.0, 3.9), facecolor=GROUND)
        panels = figure.subplots(2, 1, sharex=True)
        figure.subplots_adjust(left=0.215, right=0.97, top=0.745, bottom=0.14, hspace=0.36)
        for axes, (name, meaning) in zip(panels, parts, strict=True):
            bars(axes, result[name])
            axes.set_title(
                f"{name} weights: {result[name]['n_weights']:,}, {meaning}",
                loc="left",
                fontsize=10,
                color=QUIET,
                pad=5,
            )
        panels[0].set_xlim(0, 1.04 * slowest)
        panels[0].tick_params(labelbottom=False)
        panels[1].set_xlabel("seconds (shorter is better)", color=QUIET)
        figure.text(
            0.02,
            0.915,
            "Training on CoNLL-2000 chunking: time of an L-BFGS iteration",
            fontsize=14,
            weight="bold",
        )
        figure.text(0.02, 0.845, setting(result), fontsize=9, color=QUIET)
        figure.savefig(path, dpi=150, facecolor=GROUND, metadata=anonymous(path))


def bars(axes: Axes, part: dict[str, Any]) -> None:
    """Three bars: name, colour, seconds, and for ours how many times they fit into the rival's iteration."""
    theirs, iteration = part["crfsuite_iteration_seconds"], part["iteration_seconds_2_threads"]
    gradient = part["gradient_seconds_2_threads"]
    rows = [
        ("python-crfsuite, iteration", RIVAL, theirs, "", f"{theirs:.3f} s"),
        ("crfit, iteration", OURS, iteration, f"{part['iteration_ratio']:.1f}× faster", f"{iteration:.3f} s"),
        # The rival's log has no time of a gradient alone: the label says what it is compared with.
        (
            "crfit, value and gradient",
            WITHIN,
            gradient,
            f"{part['gradient_ratio']:.1f}×",
            f"{gradient:.3f} s against the iteration",
        ),
    ]
    for y, (_, colour, seconds, ratio, words) in enumerate(rows):
        axes.barh(y, seconds, color=colour, height=0.72)
        beside: dict[str, Any] = {"va": "center", "textcoords": "offset points"}
        if not ratio:
            axes.annotate(words, (seconds, y), xytext=(-6, 0), ha="right", color=INK, **beside)
            continue
        beside["bbox"] = {"facecolor": GROUND, "edgecolor": "none", "pad": 1.5}  # over the grid
        bold = axes.annotate(ratio, (seconds, y), xytext=(6, 0), color=INK, weight="bold", **beside)
        axes.annotate(words, (1, 0.5), xycoords=bold, xytext=(7, 0), color=QUIET, **beside)
    axes.set_yticks(range(3), [row[0] for row in rows], fontsize=9.5)
    axes.invert_yaxis()
    axes.tick_params(axis="y", length=0, labelcolor=INK)
    axes.tick_params(axis="x", color=LINE, labelcolor=QUIET)
    axes.set_facecolor(GROUND)
    axes.set_axisbelow(True)
    axes.grid(axis="x", color=LINE, linewidth=0.8)
    for side in ("top", "right", "bottom", "left"):
        axes.spines[side].set_visible(side == "left")
        axes.spines[side].set_color(QUIET)


def setting(result: dict[str, Any]) -> str:
    """Tools, threads and machine in a line."""
    versions, machine = result["versions"], result["machine"]
    return (
        f"same function, same attributes, same run on {machine['cores']} cores ({machine['processor']}): "
        f"crfit {versions['crfit']} on two threads, python-crfsuite {versions['python-crfsuite']} on its one"
    )


def anonymous(path: Path) -> dict[str, None]:
    """No date and no program in the file: the same results give the same bytes."""
    names = {".png": ["Software"], ".svg": ["Date", "Creator"]}
    return dict.fromkeys(names.get(path.suffix, []))


if __name__ == "__main__":
    main()
