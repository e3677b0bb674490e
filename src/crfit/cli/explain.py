"""``crfit explain``: why tokens of a file get their labels."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray

from crfit.cli.arguments import COMMON, JSON, LOADED, THREADS, options, same_file, section
from crfit.cli.output import Verb, announce_terminal, debug_option, say
from crfit.data import text
from crfit.errors import OptionError
from crfit.inspection.cases import Case, Examined, read
from crfit.inspection.explanation import check_labels
from crfit.model import load
from crfit.names import brief
from crfit.threads import resolve_threads

#: Default of --max.
N_EXPLAINED = 20


@click.command(
    "explain",
    cls=Verb,
    epilog="Without an attribute, the log-odds are lower by what it adds.",
)
@click.argument("file", required=False, type=click.Path())
@options(
    section(
        COMMON,
        LOADED,
        ("--errors", "Explain only wrong labels, compared with the right ones."),
        ("--below P", "Explain only labels with a probability below P.", {"type": click.FloatRange(0, 1)}),
        ("--sequence N", "Explain only this sequence; the first is 0."),
        ("--position N", "Explain only this position of a sequence; the first is 0."),
        ("--max n_max N", "Explain at most N tokens.", {"default": N_EXPLAINED, "show_default": True}),
        ("--label LABEL", "Explain this label instead of the predicted one."),
        (
            "--against LABEL",
            "Compare with this label.  [default: the right one, else the most probable other]",
        ),
        ("--top N", "List the N attributes that add most.", {"default": 10, "show_default": True}),
        JSON,
        ("--html FILE", "Write a page instead of text."),
        THREADS,
    )
)
@debug_option
def command(file: str | None, model: str, as_json: bool, html: str | None, **given: Any) -> None:
    """Explain why tokens of FILE, or of standard input, get their labels.

    \b
    Examples:
      crfit explain -m ner.crfit test.txt --errors
      crfit explain -m ner.crfit test.txt --sequence 3 --position 2
      crfit explain -m ner.crfit new.txt --below 0.7 --html doubtful.html
      echo "2 cups flour" | tr ' ' '\\n' | crfit explain -m parser.crfit
    """  # noqa: D301
    if as_json and html is not None:
        raise OptionError("html", html, "leave out --json, or the page")
    if html is not None and file is not None and same_file(html, file):
        raise OptionError("html", html, "would overwrite the input: choose another name")
    threads = resolve_threads(given["n_threads"])
    loaded = load(model)
    check_labels(loaded.labels, given["label"], given["against"])
    announce_terminal(file)
    source = text.load(file)[0]
    examined = read(loaded, source, labelled=True if given["errors"] else None, n_threads=threads)
    if given["errors"] and examined.gold is None:
        raise OptionError("errors", True, "none of the labels of the file is known to the model")
    places = _selected(examined, given)
    chosen = places[: given["n_max"]].tolist()
    if len(chosen) < len(places):
        say(
            f"explaining {len(chosen):,} of {len(places):,} tokens: raise --max, or select with other options"
        )
    cases = examined.cases(chosen, label=given["label"], against=given["against"])
    if html is not None:
        from crfit.inspection.report import write_cases

        write_cases(html, list(cases), model=model, file=source.name, top=given["top"])
        return
    for case in cases:
        click.echo(
            json.dumps(case.to_dict(), allow_nan=False)
            if as_json
            else case_text(case, source.name, given["top"])
        )


def _selected(examined: Examined, given: dict[str, Any]) -> NDArray[np.int64]:
    """Numbers of the tokens to explain, in the order of the file."""
    data = examined.dataset
    chosen = np.ones(data.n_tokens, dtype=bool)
    if (sequence := given["sequence"]) is not None:
        if sequence >= data.n_sequences:
            raise OptionError("sequence", sequence, f"the file has {data.n_sequences:,}, numbered from 0")
        chosen[: data.seq_ptr[sequence]] = chosen[data.seq_ptr[sequence + 1] :] = False
    if (position := given["position"]) is not None:
        places = np.arange(data.n_tokens) - np.repeat(data.seq_ptr[:-1], data.lengths)
        chosen &= places == position
        if not chosen.any():
            raise OptionError("position", position, "no such position: positions are numbered from 0")
    if given["errors"]:
        chosen &= examined.wrong
    if given["below"] is not None:
        chosen &= examined.probabilities() < given["below"]
    return np.flatnonzero(chosen)


def case_text(case: Case, file: str, top: int) -> str:
    """A token in its context, then the explanation of its label."""
    one = case.explanation
    place = f"{file}:{case.line}" if case.line is not None else file
    before, token, after = case.around()
    words = " ".join([*_words(before), f"[{brief(token, 40)}]", *_words(after)])
    lines = [f"{place}: sequence {case.sequence}, position {one.position}", f"  {words}"]
    if case.gold is not None:
        predicted, gold = brief(case.predicted), brief(case.gold)
        lines.append(f"  predicted {predicted}, " + (f"right {gold}" if case.wrong else "which is right"))
    return "\n".join([*lines, "", one.to_text(top)])


def _words(tokens: Iterable[str]) -> Sequence[str]:
    return [brief(token, 20) for token in tokens]
