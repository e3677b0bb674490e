"""race.html: a race as one page that opens without a network.

The page holds everything: our style and script, the plotting library (plotly.js [1], from the Python package
``plotly``), and the race as a block of JSON that the script draws. Its content security policy lets the
browser load nothing from anywhere and run only these two scripts, told by their hashes. Labels and messages
reach the page as text of a tree of elements or as JSON without a ``<``, never as markup.

References
----------
[1] plotly.js, https://plotly.com/javascript/, MIT licence.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
from dataclasses import asdict
from html import escape
from importlib import resources
from pathlib import Path
from string import Template
from typing import Any

from crfit.files import json_ready, replacing
from crfit.pictures import DARK_INK, INK, colour_of, dashes_of, shade, short_names
from crfit.racing.page_nodes import written
from crfit.racing.page_parts import chart_part, facts_part, footer_part, troubles_part, verdict_part
from crfit.racing.page_tables import tables
from crfit.racing.quantities import UNITS, edges, present, value_of
from crfit.racing.result import RaceResult
from crfit.racing.sentences import race_name

__all__ = ["write_page"]

_NARROW_NAME = 18  # characters of a name beside a line on a narrow screen
_FILES = resources.files("crfit.racing")
_LINKED = ("race.csv", "race.jsonl", "race.png", "race.svg")


def write_page(result: RaceResult, path: str | os.PathLike[str]) -> None:
    """Write the page of a race.

    Parameters
    ----------
    result : RaceResult
        The race.
    path : path-like
        File to write. It has links to table, journal and pictures, those that lie beside it.

    Raises
    ------
    ImportError
        plotly is not there.
    """
    try:
        from plotly.offline import get_plotlyjs
    except ImportError:
        raise ImportError("the page of a race needs plotly: pip install 'crfit[plot]'") from None
    plotly, script = get_plotlyjs(), _read("page_names.js") + _read("page.js")
    name, troubles = race_name(result), troubles_part(result)
    text = Template(_read("page.html")).substitute(
        policy=_policy(plotly, script),
        title=escape(f"Race of trainers: {name}" if name else "Race of trainers"),
        colours=_colours(len(result.curves)),
        style=_read("page.css"),
        verdict=written(verdict_part(result)),
        chart=written(chart_part(result, present(result))),
        troubles="" if troubles is None else written(troubles),
        sections="\n".join(map(written, [*tables(result), facts_part(result)])),
        footer=written(footer_part([name for name in _LINKED if Path(path).with_name(name).exists()])),
        data=_json(_block(result)),
        plotly=plotly,
        script=script,
    )
    with replacing(path) as unfinished:
        # Names may hold bytes that are no UTF-8; they only occur in text, where a reference may stand.
        unfinished.write_bytes(text.encode("utf-8", "xmlcharrefreplace"))


def _read(name: str) -> str:
    return (_FILES / name).read_text(encoding="utf-8")


def _policy(*scripts: str) -> str:
    """What the browser may do: these scripts, inline styles, and pictures that the page makes itself."""
    digests = (hashlib.sha256(script.encode()).digest() for script in scripts)
    hashes = " ".join(f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests)
    return f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data: blob:"


def _colours(n_entries: int) -> str:
    """Colours of the lines of entries, and of their names, as variables of the style sheet."""
    rules = []
    for i in range(n_entries):
        light, dark = colour_of(i)
        rules.append(f"--entry-{i}: light-dark({light}, {dark});")
        rules.append(f"--entry-{i}-text: light-dark({shade(light, INK)}, {shade(dark, DARK_INK)});")
    return f":root {{ {' '.join(rules)} }}"


def _block(result: RaceResult) -> dict[str, Any]:
    """The race as the script reads it: curves as columns, quantities with the edges of their axes."""
    quantities = present(result)
    labels = [curve.label for curve in result.curves]
    names = zip(short_names(labels), short_names(labels, _NARROW_NAME), strict=True)
    block: dict[str, Any] = {"units": UNITS, "quantities": [], "curves": []}
    for quantity in quantities:
        block["quantities"].append(asdict(quantity) | asdict(edges(result, quantity)))
    for i, (curve, (short, shorter)) in enumerate(zip(result.curves, names, strict=True)):
        columns = {unit: [getattr(point, unit) for point in curve.points] for unit in UNITS}
        for quantity in quantities:
            columns[quantity.name] = [value_of(result, curve, p, quantity.name) for p in curve.points]
        block["curves"].append(
            {
                "label": curve.label,
                "short": short,
                "shorter": shorter,
                "colour": i,
                "dashes": dashes_of(i),
                "diverged": curve.diverged,
                "columns": columns,
            }
        )
    if len(result.optima) == 1:
        (optimum,) = result.optima.values()
        if optimum.uncertainty:
            relative = optimum.uncertainty / max(abs(optimum.value), 1e-300)
            block["uncertainty"] = {"gap": optimum.uncertainty, "relative_gap": relative}
    return block


def _json(block: dict[str, Any]) -> str:
    """JSON that may stand in a page: without a ``<`` nothing in it can end the block."""
    return json.dumps(json_ready("race", block), separators=(",", ":"), allow_nan=False).replace(
        "<", "\\u003c"
    )
