"""The look of our pictures: a colour for each method, light and dark themes, the picture of a training run.

A method has the same colour in every picture and on every page. The colours of the main methods are based on
Okabe and Ito [1]: each has a contrast of at least 3 to the background, and any two differ under every kind of
colour blindness [2]. Other methods, and variants of one method, also differ in their dashes. Names are in a
legend above the panels, never on top of a curve. Drawing needs matplotlib: ``pip install 'crfit[plot]'``.

References
----------
[1] M. Okabe, K. Ito. Color Universal Design: how to make figures and presentations that are friendly to
    colorblind people. 2008.
[2] W3C. Web Content Accessibility Guidelines 2.2, criteria 1.4.3 and 1.4.11.
"""

from __future__ import annotations

import os
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from crfit.errors import OptionError
from crfit.files import replacing
from crfit.training.stopping import Progress
from crfit.vectors import Vector

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

#: Lines in a picture, at most.
MOST_LINES = 8
#: Width of a picture in inches, and size of its text in points: at 600 pixels the text is 12 pixels high.
WIDTH, TEXT, HEADING = 6.6, 10, 13


@dataclass(frozen=True)
class Theme:
    """Colours of everything except the curves."""

    name: str
    ground: str
    ink: str
    quiet: str
    grid: str


LIGHT = Theme("light", "#fbfbf9", "#1d1d1f", "#5d6168", "#dcdcd6")
DARK = Theme("dark", "#16181b", "#e9eaec", "#a3a8b0", "#363a40")

# --- one colour per method ---------------------------------------------------------------------------------

_SHADES = 4  # of a colour, with itself
#: Lengths of dash and gap in pixels.
SOLID, DASHED, LONG = (), (7.0, 3.0), (16.0, 3.0)
DOTTED, MIXED = (2.0, 2.5), (8.0, 3.0, 2.0, 3.0)


@dataclass(frozen=True)
class Look:
    """Colours of a line on a light and on a dark background, and its dashes, empty for a solid line."""

    light: str
    dark: str
    dashes: tuple[float, ...] = SOLID

    def colour(self, theme: Theme) -> str:
        """The one for a theme."""
        return self.dark if theme is DARK else self.light

    def variant(self, number: int) -> Look:
        """Another shade with other dashes, for the second to fourth line of one method in a picture."""
        if number == 0:
            return self
        amount = (0.4, 0.7, 0.2)[number - 1]
        dashes = [dashes for dashes in (DASHED, DOTTED, MIXED, SOLID) if dashes != self.dashes][number - 1]
        return Look(shade(self.light, LIGHT.ink, amount), shade(self.dark, DARK.ink, amount), dashes)


#: Main colours, which any two eyes can tell apart. Methods without a colour of their own take them in turn.
CYCLE = (
    Look("#0651b4", "#5a90f2"),  # blue
    Look("#b0391a", "#ee7733"),  # vermilion
    Look("#2c9a74", "#52c9a4"),  # green
    Look("#a98420", "#f0c040"),  # ochre
    Look("#462a82", "#a6cdf8"),  # violet, sky blue
    Look("#d65bcb", "#bb74a6"),  # magenta
    Look("#1d1d1f", "#f0f0f2"),  # ink
    Look("#783048", "#c0423c"),  # plum, red
)
_BLUE, _VERMILION, _GREEN, _OCHRE, _VIOLET, _MAGENTA, _INK, _PLUM = CYCLE

#: By trainer, with the options that make it another method, or by tool. The name with the most options
#: counts, the first of several.
METHODS: dict[str, Look] = {
    "newton_cg": _BLUE,
    "auto": _BLUE,
    "newton_cg:start=none": _VERMILION,  # as published
    "newton_cg:start=none:cache=4000": Look("#d9663b", "#ffb38a", DASHED),
    "newton_cg:start=none:cache=none": Look("#7a2008", "#c9501f", DOTTED),
    "newton_cg:start=none:curvature=ad": Look("#c46a50", "#f7a58b", MIXED),
    "lbfgs": _GREEN,
    "lbfgs:memory=5": Look("#0e5a40", "#a9ecd6", DASHED),
    "lbfgs:memory=50": Look("#5a9a3c", "#7fb85c", DOTTED),
    "lbfgs:scaling=diagonal": Look("#17707c", "#35a9a0", MIXED),
    "bfgs": Look("#3f6b1f", "#a4d66a", DASHED),
    "clustered_lbfgs": _OCHRE,
    "clustered_lbfgs:memory=5": Look("#7a5c0c", "#c99a1e", LONG),
    "clustered_lbfgs:coarse=affine": Look("#d07818", "#ffd98c", MIXED),
    "clustered_lbfgs:clustering=rows": Look("#5f4a1e", "#d9b25a", DASHED),
    "sgd": _VIOLET,
    "sgd:schedule=inverse": Look("#7a5cc0", "#8d6fe0", DASHED),
    "sgd:batch=8": Look("#2a1a5c", "#e3d3ff", LONG),
    "l2sgd": Look("#5f3dc4", "#8f7bd9", DOTTED),
    "asgd": Look("#8a6fa8", "#9f8be0", MIXED),
    "aitken:gamma=1": Look("#5e1a58", "#8f5a80", DOTTED),
    "aitken:gamma=2": Look("#b0489f", "#d888ce", MIXED),
    "aitken:batch=1": Look("#6b1f64", "#a0608f", DOTTED),
    "aitken:batch=10": Look("#b85bab", "#f0c4e6", MIXED),
    "aitken:batch=50": Look("#3d0f3a", "#d07cc0", LONG),
    "aitken:acceleration=triple_jump": Look("#3f5c68", "#bcd9e6", MIXED),
    "aitken:acceleration=triple_jump:accept=bound": Look("#3797cc", "#6590a6", DASHED),
    "aitken:acceleration=aitken:accept=bound": Look("#8f1d4a", "#ff7fa0", LONG),
    "aitken:acceleration=anderson": Look("#6b7a00", "#c3d14a"),
    "aitken:scope=group:accept=step": Look("#4a1546", "#f5d6f0", DOTTED),
    "aitken:scope=window": _MAGENTA,
    "aitken:tuned": Look("#571a52", "#f7e0f3", DOTTED),
    "aitken": Look("#93338b", "#f0a6e0", DASHED),
    "psa": Look("#0b7f94", "#4cc8dc", LONG),
    "smd": Look("#a8642a", "#e8b07a", MIXED),
    "ngd": _PLUM,
    "ngd:update=U1": Look("#400d22", "#ffdf80", DASHED),
    "ngd:potential=arctan:parameter=3.1622776601683795": Look("#bf190a", "#a68b3a", LONG),
    "ngd:potential=erf": Look("#a66c7f", "#f255a4", DOTTED),
    "ngd:potential=gd": Look("#ff3355", "#ffa6ad", MIXED),
    "adagrad": Look("#606468", "#b4b8bf", DASHED),
    "eg": _INK,
    "pa": Look("#e0567f", "#ff7d9a", LONG),
    "perceptron": Look("#d9700a", "#ffb066", DOTTED),
    "arow": Look("#6d7f1a", "#b8cc6a", MIXED),
    "gis": Look("#6b4a2f", "#c99f7d"),
    "iis": Look("#9a7350", "#e3c6a6", DOTTED),
    "fis": Look("#4a2f1a", "#a67a55", MIXED),
    "python_crfsuite": Look("#c76a00", "#ffa94d"),
    "python_crfsuite:l2sgd": Look("#8a4a00", "#ffd0a0", DASHED),
    "libwapiti_library": Look("#a3123f", "#e0446e"),
    "crfpp_program": Look("#7a6a58", "#c9b8a0", DASHED),
    "scikit_learn": Look("#d9600f", "#ff9a4d"),
    "scikit_learn:newton-cg": Look("#8f4a1a", "#ffc79a", DASHED),
    "scikit_learn:saga": Look("#5a2c0c", "#d98a5a", DOTTED),
    "liblinear_lr": Look("#7d1f8a", "#d98be6", MIXED),
    "liblinear_lr:newton": Look("#4c1255", "#f0c4f7", LONG),
    "glum_glm": Look("#6f7478", "#b9bdc3", DASHED),
}


def method_name(trainer: str, options: Mapping[str, Any]) -> str:
    """A trainer with its options as ``crfit race`` takes them, by which `looks` finds its colour."""
    return ":".join([trainer, *(f"{name}={value}" for name, value in options.items())])


def looks(methods: Sequence[str]) -> list[Look]:
    """Return a look for each line of a picture, all different.

    Several lines of one method get shades of its colour. Where these are used up, and for a method that
    `METHODS` does not have, the next main colour that is free is taken.
    """
    known = [_known(method) for method in methods]
    free = [look.variant(number) for number in range(_SHADES) for look in CYCLE if look not in known]
    found: list[Look] = []
    for own in known:
        shades = [] if own is None else [own.variant(number) for number in range(_SHADES)]
        left = [look for look in (*shades, *free) if look not in found]
        found.append(left[0] if left else CYCLE[len(found) % len(CYCLE)])
    return found


def _known(method: str) -> Look | None:
    """The look of the longest name in `METHODS` whose trainer and options this method has."""
    name, *options = method.split(":")
    fitting = [
        key for key in METHODS if key.split(":")[0] == name and set(key.split(":")[1:]) <= set(options)
    ]
    return METHODS[max(fitting, key=lambda key: key.count(":"))] if fitting else None


def shade(colour: str, other: str, amount: float = 0.3) -> str:
    """Mix a colour with another, such as the ink for text."""
    pairs = ((int(colour[i : i + 2], 16), int(other[i : i + 2], 16)) for i in (1, 3, 5))
    return "#" + "".join(f"{round((1 - amount) * a + amount * b):02x}" for a, b in pairs)


# --- files -------------------------------------------------------------------------------------------------

_SUFFIXES = (".png", ".svg", ".pdf")


def check_picture_name(path: str | os.PathLike[str]) -> str:
    """Return the format of a picture from its suffix; OptionError if we do not write it."""
    suffix = os.path.splitext(os.fspath(path))[1].lower()
    if suffix not in _SUFFIXES:
        raise OptionError("path", os.fspath(path), f"the name must end in one of {', '.join(_SUFFIXES)}")
    return suffix[1:]


def save_picture(figure: Figure, path: str | os.PathLike[str]) -> None:
    """Write a picture atomically; the same figure gives the same bytes."""
    import matplotlib

    kind = check_picture_name(path)
    unsaid = {"png": ["Software"], "svg": ["Date", "Creator"], "pdf": ["CreationDate", "Creator", "Producer"]}
    with matplotlib.rc_context({"svg.hashsalt": "crfit"}), replacing(path) as unfinished:
        figure.savefig(unfinished, format=kind, metadata=dict.fromkeys(unsaid[kind]))


# --- figures -----------------------------------------------------------------------------------------------

#: Inches: left of all text, below each part of the head, and characters in a line of title and text.
_LEFT, _BELOW, _TITLE_LENGTH, _TEXT_LENGTH = 0.1, 0.08, 56, 88


def headed_figure(
    height: float,
    theme: Theme,
    *,
    title: str = "",
    words: str = "",
    legend: Sequence[tuple[str, Line2D]] = (),
) -> Figure:
    """Make a figure with a title, a sentence and a legend above panels of so many inches."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError("pictures need matplotlib: pip install 'crfit[plot]'") from None
    figure = Figure(figsize=(WIDTH, height), dpi=150, facecolor=theme.ground)
    blocks = [
        (title, HEADING, "bold", theme.ink, _TITLE_LENGTH),
        (words, TEXT, "normal", theme.quiet, _TEXT_LENGTH),
    ]
    head, texts = 0.1, []
    for text, size, weight, colour, length in blocks:
        lines = wrapped(plain(text), length)
        if lines:
            style: dict[str, Any] = {"fontsize": size, "weight": weight, "color": colour, "va": "top"}
            texts.append(
                (head, figure.text(0, 0, "\n".join(lines), linespacing=1.25, parse_math=False, **style))
            )
            head += 1.25 * size / 72 * len(lines) + _BELOW
    key = None
    if legend:
        key, tall = _legend(figure, legend, theme)
        place, head = head, head + tall + _BELOW
    total = head + height
    figure.set_size_inches(WIDTH, total)
    for top, artist in texts:
        artist.set_position((_LEFT / WIDTH, 1 - top / total))
    if key is not None:
        key.set_bbox_to_anchor((_LEFT / WIDTH, 1 - place / total))
    figure.set_layout_engine(
        "constrained", rect=(0, 0, 1, height / total), w_pad=0.06, h_pad=0.05, wspace=0.03
    )
    return figure


def wrapped(text: str, length: int) -> list[str]:
    """Break a text into as few lines as possible, of about the same length."""
    few = len(textwrap.wrap(text, length))
    shortest = next((n for n in range(8, length) if len(textwrap.wrap(text, n)) <= few), length)
    return textwrap.wrap(text, shortest)


def _legend(figure: Figure, entries: Sequence[tuple[str, Line2D]], theme: Theme) -> tuple[Any, float]:
    """A legend in as many columns as fit; and its height in inches."""
    names, handles = zip(*entries, strict=True)
    style: dict[str, Any] = {"fontsize": TEXT, "labelcolor": theme.ink, "frameon": False, "borderpad": 0}
    spaces = {"handlelength": 2.2, "handletextpad": 0.6, "columnspacing": 1.4, "labelspacing": 0.35}
    for columns in range(min(4, len(names)), 0, -1):
        for old in figure.legends:
            old.remove()
        found = figure.legend(
            handles, names, ncols=columns, loc="upper left", borderaxespad=0, **style, **spaces
        )
        found.set_in_layout(False)
        for text in found.get_texts():
            text.set_parse_math(False)
        box = found.get_window_extent()
        if box.width <= (WIDTH - 2 * _LEFT) * figure.dpi:
            break
    return found, box.height / figure.dpi


def plain_axes(axes: Axes, theme: Theme, *, log_x: bool, log_y: bool) -> None:
    """Style axes: faint grid, no box, plain numbers."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    class Decades(LogLocator):
        """Powers of ten, with 2 and 5 between them where there are few."""

        def tick_values(self, vmin: float, vmax: float) -> Any:
            few = vmax < 80 * vmin
            self.set_params(subs=(1.0, 2.0, 5.0) if few else (1.0,), numticks=12 if few else 6)
            return super().tick_values(vmin, vmax)

    for axis, set_scale, log in (
        (axes.xaxis, axes.set_xscale, log_x),
        (axes.yaxis, axes.set_yscale, log_y),
    ):
        if log:
            set_scale("log")
            axis.set_major_locator(Decades())
            axis.set_major_formatter(FuncFormatter(lambda value, _: power(value)))
            axis.set_minor_formatter(NullFormatter())
    axes.margins(x=0.03, y=0.08)
    axes.set_facecolor(theme.ground)
    axes.grid(True, which="major", color=theme.grid, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(which="both", color=theme.grid, labelcolor=theme.quiet, labelsize=TEXT)
    axes.xaxis.label.set_fontsize(TEXT)
    axes.yaxis.label.set_fontsize(TEXT)
    for side, spine in axes.spines.items():
        spine.set_visible(side in ("left", "bottom"))
        spine.set_color(theme.quiet)


def power(value: float) -> str:
    """A tick of a logarithmic axis, as gaps are written elsewhere: 100, 0.01, 1e-3."""
    if 0.009 < value < 99_999:
        return f"{value:g}"
    mantissa, exponent = f"{value:.0e}".split("e")
    return f"{mantissa}e{int(exponent)}"


def draw_line(
    axes: Axes,
    x: Sequence[float] | Vector,
    y: Sequence[float] | Vector,
    look: Look,
    theme: Theme,
    *,
    width: float = 1.8,
    **more: Any,
) -> Line2D:
    """Draw a curve."""
    (stroke,) = axes.plot(x, y, color=look.colour(theme), linewidth=width, **more)
    if look.dashes:
        # In units of the line's width, as matplotlib has them.
        stroke.set_dashes([length / 2 for length in look.dashes])
    return stroke


def legend_line(look: Look, theme: Theme, width: float = 1.8) -> Line2D:
    """The sample of a curve in a legend."""
    from matplotlib.lines import Line2D

    line = Line2D([], [], color=look.colour(theme), linewidth=width)
    if look.dashes:
        line.set_dashes([length / 2 for length in look.dashes])
    return line


#: Characters of a name in a legend.
LONGEST_NAME = 28


def plain(text: str) -> str:
    """Make a text drawable: single spaces, question marks for bytes that are not UTF-8."""
    return " ".join(text.encode("utf-8", "replace").decode().split())


def shortened(name: str, limit: int = LONGEST_NAME) -> str:
    """Make a text plain, and cut its middle out if it is long."""
    name = plain(name)
    if len(name) <= limit:
        return name
    head = limit // 2
    return f"{name[:head].rstrip()}…{name[len(name) - (limit - head - 1) :].lstrip()}"


def short_names(names: Sequence[str], limit: int = LONGEST_NAME) -> list[str]:
    """Shorten names so that they stay different.

    Words that all long names share are left out, the first word only if that is not enough. Names that would
    become equal get a number.
    """
    names = list(map(plain, names))
    long = [set(name.split()) for name in names if len(name) > limit]
    shared = set.intersection(*long) if len(long) > 1 else set()
    short = []
    for name in names:
        candidates = [name, _without(shared, name, 1), _without(shared, name, 0)]
        short.append(next((c for c in candidates if len(c) <= limit), shortened(candidates[-1], limit)))
    return [
        f"{shortened(name, limit - 4)} #{i + 1}" if short.count(name) > 1 else name
        for i, name in enumerate(short)
    ]


def _without(shared: set[str], name: str, n_kept: int) -> str:
    """The name with an ellipsis for each run of shared words, the first few words kept."""
    words: list[str] = []
    for i, word in enumerate(name.split()):
        if i < n_kept or word not in shared:
            words.append(word)
        elif words[-1:] != ["…"]:
            words.append("…")
    return " ".join(words)


# --- the picture of a training run -------------------------------------------------------------------------


@dataclass(frozen=True)
class _Row:
    """One quantity: title of its axis, value of a step (None if it has none), spelling of the last value."""

    title: str
    value: Callable[[Progress], float | None]
    spelled: Callable[[float], str]
    log: bool


def plot_history(
    history: Sequence[Progress],
    path: str | os.PathLike[str],
    *,
    title: str = "",
    optimum: float | None = None,
    metric: str = "dev_f1",
) -> None:
    """Draw a training run to a .png, .svg or .pdf file.

    One row per quantity, against seconds (left) and passes (right): F above `optimum`, or above its own
    lowest value; the largest gradient entry; `metric`, a held-out score in ``Progress.extra``, if any. All
    axes except that of the score are logarithmic. Above each row is the last value.
    """
    check_picture_name(path)
    rows = [row for row in _rows(history, optimum, metric) if len(_points(history, row, "seconds")[0]) > 1]
    if not rows:
        raise OptionError("history", f"{len(history)} steps", "give at least two evaluated steps")
    theme = LIGHT
    figure = headed_figure(2.4 * len(rows), theme, title=title)
    table = figure.subplots(len(rows), 2, sharex="col", sharey="row", squeeze=False)
    for row, line in zip(rows, table, strict=True):
        for axes, unit in zip(line, ("seconds", "passes"), strict=True):
            x, y = _points(history, row, unit)
            plain_axes(axes, theme, log_x=True, log_y=row.log)
            draw_line(axes, x, y, _BLUE, theme)
            axes.plot(x[-1:], y[-1:], "o", color=_BLUE.colour(theme), markersize=5)
        line[0].set_ylabel(row.title, color=theme.ink)
        last = _points(history, row, "seconds")[1][-1]
        line[0].set_title(f"at the end: {row.spelled(last)}", loc="left", fontsize=TEXT, color=theme.quiet)
        line[1].tick_params(labelleft=False)
    for axes, name in zip(table[-1], ("seconds of training", "passes over the data"), strict=True):
        axes.set_xlabel(name, color=theme.ink)
    save_picture(figure, path)


def _rows(history: Sequence[Progress], optimum: float | None, metric: str) -> list[_Row]:
    values = [p.objective for p in history if p.objective is not None and p.finite]
    lowest = optimum if optimum is not None else min(values, default=0.0)

    def gap(step: Progress) -> float | None:
        return None if step.objective is None else step.objective - lowest

    def spelled(value: float) -> str:
        return f"F = {lowest:,.2f}" if optimum is None else f"{value:.2g}"

    name = "lowest" if optimum is None else "optimum"
    score = metric.removeprefix("dev_").replace("f1", "F1")
    return [
        _Row(f"objective above its {name}", gap, spelled, log=True),
        _Row("largest gradient entry", lambda step: step.grad_inf, lambda v: f"{v:.2g}", log=True),
        _Row(
            f"{score} on held-out data", lambda step: step.extra.get(metric), lambda v: f"{v:.2f}", log=False
        ),
    ]


def _points(history: Sequence[Progress], row: _Row, unit: str) -> tuple[list[float], list[float]]:
    """Where the quantity is known, and positive if its axis is logarithmic."""
    found = [
        (float(getattr(step, unit)), value)
        for step in history
        if step.finite and (value := row.value(step)) is not None and (value > 0 or not row.log)
    ]
    found = [(x, value) for x, value in found if x > 0]
    return [x for x, _ in found], [value for _, value in found]
