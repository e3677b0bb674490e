"""The page to try sentences in: labels with probabilities, and corrections to download for retraining."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from crfit import pages
from crfit.names import brief, counted
from crfit.pages import node, read_text, section

if TYPE_CHECKING:
    from crfit.service.requests import Answering

_FOLDER = Path(__file__).parent
_HINTS = {
    "text": "One sentence a line. It is split into words, numbers and punctuation.",
    "tokens": "One sequence a line, as a JSON list of the columns of each token: "
    '[["2", "NUM"], ["cups", "NOUN"]].',
    "columns": "One token a line with its columns, as in a column file without labels. "
    "A blank line ends a sequence.",
    "attributes": "One sequence a line, as a JSON list of the attributes of each token: "
    '[["w=2", "digit"], ["w=cups"]].',
    "items": 'One item a line, as a JSON list of its attributes: ["w=cheap", "w=pills"], or an object.',
}


def try_out_page(answering: Answering, name: str) -> str:
    """Return the page as HTML."""
    kind = "text" if answering.takes_text else answering.kind
    facts = {"kind": kind, "columns": answering.n_columns, "labels": answering.labels}
    facts["sequences"] = answering.limits.sequences
    form = node(
        "form",
        node("label", "Input", for_="input", class_="caption"),
        node(
            "textarea", id="input", rows="5", spellcheck="false", autocomplete="off", aria_describedby="hint"
        ),
        node("p", _HINTS[kind], id="hint", class_="quiet"),
        node(
            "div",
            node("button", "Tag", type="submit", id="go"),
            node("span", id="status", role="status"),
            class_="controls",
        ),
        id="form",
    )
    columns = answering.kind == "columns"
    made = node(
        "div",
        node("button", "Copy", type="button", id="copy", disabled="disabled"),
        node("button", "Download", type="button", id="download", disabled="disabled"),
        node(
            "button",
            "Download as columns",
            type="button",
            id="columns",
            disabled="disabled",
            hidden=None if columns else "hidden",
        ),
        node("button", "Clear", type="button", id="clear", disabled="disabled"),
        class_="controls",
    )
    words = "Change labels above, then add what is right to this list. Train with it to improve the model."
    return pages.page(
        title=f"Try {brief(name)}",
        header=[
            node(
                "p",
                f"{counted(len(answering.labels), 'label')}. Nothing that you enter is stored.",
                class_="quiet",
            )
        ],
        main=[
            form,
            node("div", id="results", aria_live="polite"),
            section(
                "corrections",
                "Corrections",
                node("p", words, class_="quiet"),
                node(
                    "textarea",
                    id="lines",
                    rows="5",
                    readonly="readonly",
                    aria_label="Corrections as JSON lines",
                ),
                made,
            ),
        ],
        footer=node(
            "p",
            "Made by crfit. Programs send JSON to /tag and /batch; /health and /metrics are for monitoring.",
        ),
        style=read_text(_FOLDER / "page.css"),
        script=read_text(_FOLDER / "page.js"),
        blocks={"facts": facts},
        asks_server=True,
    )
