"""What holds for every figure: few lines, all different, and no text on top of anything."""

from itertools import combinations

import numpy as np

from crfit.pictures import DARK, LIGHT, MOST_LINES, TEXT, WIDTH

# Linear RGB as seen with normal sight and without one of the three kinds of cones (Machado, Oliveira and
# Fernandes, 2009, severity 1).
SIGHTS = {
    "normal": np.eye(3),
    "no long cones": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "no medium cones": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "no short cones": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
}
#: Distances in `oklab`: seen at once, and seen if nothing else differs.
CLEAR, VISIBLE = 0.08, 0.05


def linear(colour):
    values = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)


def oklab(rgb):
    """Place of a linear RGB colour in a space where distances are those that people see."""
    cones = [
        [0.4122215, 0.5363325, 0.0514460],
        [0.2119035, 0.6806995, 0.1073970],
        [0.0883025, 0.2817188, 0.6299787],
    ]
    lab = [
        [0.2104543, 0.7936178, -0.0040720],
        [1.9779985, -2.4285922, 0.4505937],
        [0.0259040, 0.7827718, -0.8086758],
    ]
    return np.array(lab) @ np.cbrt(np.array(cones) @ np.clip(rgb, 0, 1))


def distance(one, other, sight="normal"):
    """How different two colours look."""
    places = [oklab(np.array(SIGHTS[sight]) @ linear(colour)) for colour in (one, other)]
    return float(np.linalg.norm(places[0] - places[1]))


def alike(looks):
    """Pairs of colours and dashes that can be mistaken for each other.

    Colours differ in any case; lines with the same dashes differ clearly for every kind of sight.
    """
    for (colour, dashes), (other, others) in combinations(looks, 2):
        worst = min(distance(colour, other, sight) for sight in SIGHTS)
        if distance(colour, other) < VISIBLE or (dashes == others and worst < CLEAR):
            yield f"{colour} and {other}: {distance(colour, other):.3f}, {worst:.3f}"


def faults(figure):
    """What is wrong with a figure, in words."""
    figure.draw_without_rendering()
    panels = [axes for axes in figure.axes if axes.get_visible()]
    for axes in panels:
        lines = [line for line in axes.lines if is_curve(line)]
        if len(lines) > MOST_LINES:
            yield f"{len(lines)} lines in a panel"
        yield from alike([(line.get_color(), line._unscaled_dash_pattern) for line in lines])
        for text, box in texts(figure):
            if box.overlaps(axes.bbox) and any(on_line(line, axes, box) for line in axes.lines):
                yield f"{text!r} is on top of a line"
        label = axes.yaxis.label
        if label.get_visible() and label.get_window_extent().height > 1.15 * axes.bbox.height:
            yield f"{label.get_text()!r} is longer than its axis"
    if figure.get_figwidth() > WIDTH:
        yield "it is too wide for its text"
    for text, box in texts(figure):
        inside = figure.bbox.padded(1)
        if not (inside.x0 <= box.x0 and box.x1 <= inside.x1 and inside.y0 <= box.y0 and box.y1 <= inside.y1):
            yield f"{text!r} is cut off"
    for (one, box), (other, place) in combinations(texts(figure), 2):
        if box.padded(-1).overlaps(place.padded(-1)):
            yield f"{one!r} and {other!r} overlap"


def is_curve(line):
    """Whether a line is data, not a grey one for orientation."""
    quiet = line.get_color() in (LIGHT.quiet, DARK.quiet)
    return len(line.get_xdata()) > 1 and line.get_linestyle() not in ("None", "") and not quiet


def on_line(line, axes, box):
    """Whether a box touches what is seen of a line, or of its markers."""
    path = line.get_transform().transform_path(line.get_path())
    points = np.array([point for point in path.vertices if axes.bbox.padded(2).contains(*point)])
    if len(points) and line.get_marker() not in ("None", "") and box.count_contains(points):
        return True
    return line.get_linestyle() not in ("None", "") and path.clip_to_bbox(axes.bbox).intersects_bbox(
        box, filled=False
    )


def texts(figure):
    """Every text that is seen, except turned ones, with its box in pixels."""
    from matplotlib.axis import Tick
    from matplotlib.text import Text

    outside = {label for tick in figure.findobj(Tick) for label in (tick.label1, tick.label2)}
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            outside -= {label for tick in axis._update_ticks() for label in (tick.label1, tick.label2)}
    hidden = {text for axes in figure.axes if not axes.get_visible() for text in axes.findobj(Text)}
    found = []
    for text in figure.findobj(Text):
        seen = text.get_visible() and text not in outside | hidden
        if seen and text.get_text().strip() and text.get_rotation() in (0, 90):
            assert text.get_fontsize() >= TEXT, text.get_text()
            found.append((text.get_text(), text.get_window_extent()))
    return found
