"""``crfit wapiti train``: train a model, with the switches and the report of Wapiti."""

from __future__ import annotations

from typing import Any

import click
import numpy as np

from crfit import trainers
from crfit.cli.arguments import check_standard_input
from crfit.cli.output import FAILURE, INTERRUPTED, Verb, announce_terminal, debug_option, say
from crfit.cli.unknown_names import warn_unknown_attributes
from crfit.cli.wapiti.streams import COMPACT, arguments, check_output, info, load_model, save, switches
from crfit.data import Dataset, text
from crfit.data.templates import Template
from crfit.engines import make_inference
from crfit.errors import OptionError
from crfit.files import BYTE_ORDER_MARK
from crfit.fit import FitOptions, fit_dataset
from crfit.formats.dialects import in_dialect
from crfit.formats.parts import template_lines
from crfit.formats.wapiti import order_of
from crfit.formats.wapiti_retraining import extended_template, read_for, start_weights
from crfit.layout import Layout, make_layout
from crfit.model import Model
from crfit.threads import resolve_threads
from crfit.training.records import Callback, Ending, Run
from crfit.training.stopping import Progress, Stop, StopReason
from crfit.vectors import to_numpy

#: Wapiti's algorithms, and the trainers that reach the same optimum.
ALGORITHMS = {
    "l-bfgs": "lbfgs",
    **dict.fromkeys(("sgd-l1", "bcd", "rprop", "rprop+", "rprop-"), "auto"),
}
TYPES = ("maxent", "memm", "crf")
#: Largest difference of error rates (percentages), or relative change of the objective, within a window.
STOPEPS = 0.02

_COUNT, _POSITIVE = click.IntRange(min=0), click.IntRange(min=1)
_AMOUNT = click.FloatRange(min=0)
_NO_EFFECT = "Accepted, without effect."
#: Switches that only change how Wapiti's algorithms get to the optimum.
_IGNORED = ("jobsize", "sparse", "eta0", "alpha", "kappa", "stpmin", "stpmax", "stpinc", "stpdec", "cutoff")
_REFUSED = {
    "me": "crfit trains CRFs; for single items see 'crfit train --task classify'",
    "rstate": "the state of Wapiti's optimizer cannot be used; resume with 'crfit train --resume'",
    "sstate": "crfit has no state of Wapiti's optimizer; save one with 'crfit train --checkpoint'",
    "clip": "is not supported: for a sparse model train with --rho1 above 0",
}


@click.command("train", cls=Verb)
@arguments("INPUT", "MODEL")
@switches(
    ("--me", "Maximum entropy models are not supported."),
    (
        "-T --type STRING",
        "Type of model: crf; list shows Wapiti's.",
        {"default": "crf", "show_default": True},
    ),
    (
        "-a --algo STRING",
        "Algorithm: l-bfgs; sgd-l1, bcd and rprop run the trainer auto. list shows all.",
        {"default": "l-bfgs", "show_default": True},
    ),
    ("-p --pattern FILE", "Patterns."),
    ("-m --model previous FILE", "Model to start from; patterns are added to its own."),
    (
        "-d --devel FILE",
        "Labelled held-out file for the error rates of the report.  [default: the training data]",
    ),
    ("--rstate FILE", "Not supported."),
    ("--sstate FILE", "Not supported."),
    COMPACT,
    (
        "-t --nthread INT",
        "Number of threads; results do not depend on it.  [default: all cores]",
        {"type": int},
    ),
    ("-j --jobsize INT", _NO_EFFECT, {"type": int}),
    ("-s --sparse", _NO_EFFECT),
    ("-i --maxiter INT", "Stop after N iterations; 0 is no limit.", {"type": _COUNT, "default": 0}),
    ("-1 --rho1 FLOAT", "L1 penalty rho1|w|.", {"type": _AMOUNT, "default": 0.5, "show_default": True}),
    (
        "-2 --rho2 FLOAT",
        "L2 penalty (rho2/2)|w|^2.",
        {"type": _AMOUNT, "default": 0.0001, "show_default": True},
    ),
    (
        "-o --objwin INT",
        "Stop when the objective changes by less than --stopeps (relative) over N iterations.  "
        "[default: at the optimum]",
        {"type": _POSITIVE},
    ),
    (
        "-w --stopwin INT",
        "Stop when the error rates of N iterations differ by less than --stopeps.  [default: at the optimum]",
        {"type": _COUNT},
    ),
    ("-e --stopeps FLOAT", "See -o and -w.", {"type": _AMOUNT, "default": STOPEPS, "show_default": True}),
    ("--clip", "Not supported."),
    ("--histsz INT", "(l-bfgs) Number of curvature pairs.", {"type": _POSITIVE}),
    ("--maxls INT", "(l-bfgs) Largest number of trials of a line search.", {"type": _POSITIVE}),
    *((f"--{name} FLOAT", _NO_EFFECT, {"type": float}) for name in _IGNORED[2:-1]),
    ("--cutoff", _NO_EFFECT),
)
@debug_option
def command(**given: Any) -> int:
    """Train a CRF on a labelled column file, to the optimum."""
    if given["type"] == "list" or given["algo"] == "list":
        what, names = (
            ("types of models", TYPES) if given["type"] == "list" else ("training algorithms", ALGORITHMS)
        )
        info("\n\t".join([f"Available {what}:", *names]))
        return 0
    _check(given)
    n_threads = resolve_threads(given["nthread"])
    trainer = trainers.resolve(ALGORITHMS[given["algo"]], options=_trainer_options(given), seed=0)
    previous = None
    if given["previous"] is not None:
        info("* Load previous model")
        previous = in_dialect(load_model(given["previous"]), "wapiti")
    template, grow = _template(given["pattern"], previous)
    info("* Load training data")
    announce_terminal(given["source"])
    inputs = text.load(given["source"])
    if previous is None:
        data = text.read(inputs, template=template, n_threads=n_threads)
    else:
        data = read_for(previous, inputs, template, grow, n_threads)
    warn_unknown_attributes(data)
    devel = None
    if given["devel"] is not None:
        info("* Load development data")
        devel = text.read(given["devel"], template=template, alphabets=data, n_threads=n_threads)
    info("* Initialize the model" if previous is None else "* Resync the model")
    layout = make_layout(data, weights="all", transitions="all")
    _summarise(data, devel, layout, template)
    info(f"* Train the model with {given['algo']}")
    fit = fit_dataset(
        data,
        FitOptions(
            scheme=None,
            trainer=trainer,
            l1=given["rho1"],
            l2=given["rho2"],
            n_threads=n_threads,
            stop=_stop(given),
            merge=False,
        ),
        callbacks=[_Report(devel or data, layout, n_threads, given["stopwin"] or 0, given["stopeps"])],
        template=Template(template.text, dialect="wapiti"),
        input_format="columns",
        layout=layout,
        start=None if previous is None else start_weights(previous, layout),
    )
    model = Model(
        np.asarray(fit.result.weights),
        layout,
        data.attribute_alphabet,
        data.label_alphabet,
        data.edge_alphabet,
        template=fit.model.template,
        options=fit.model.options,
        summary=fit.model.summary | ({} if previous is None or grow else order_of(previous)),
        n_columns=0,
    )
    save(model, given["target"], given["compact"])
    if fit.result.reason is StopReason.INTERRUPTED:
        return INTERRUPTED
    return FAILURE if fit.result.reason is StopReason.DIVERGED else 0


def _check(given: dict[str, Any]) -> None:
    """Raise an error for switches that crfit cannot follow; report those without effect."""
    if given["type"] not in TYPES:
        raise OptionError("type", given["type"], "choose crf")
    if given["type"] != "crf":
        raise OptionError("type", given["type"], _REFUSED["me"])
    if given["algo"] not in ALGORITHMS:
        raise OptionError("algo", given["algo"], f"choose {', '.join(ALGORITHMS)}")
    for name, remedy in _REFUSED.items():
        if given[name]:
            raise OptionError(name, given[name], remedy)
    if given["pattern"] is None and given["previous"] is None:
        raise click.UsageError("Give patterns with -p: crfit does not take tokens as features.")
    ignored = [f"--{name}" for name in _IGNORED if given[name] not in (None, False)]
    if ignored:
        say(f"note: {', '.join(ignored)}: no effect; the optimum is the same")
    check_standard_input([given["source"] or "-", given["pattern"], given["devel"], given["previous"]])
    check_output(given["target"])


def _trainer_options(given: dict[str, Any]) -> dict[str, Any]:
    named = {"memory": given["histsz"], "max_trials": given["maxls"]}
    return {name: value for name, value in named.items() if value is not None and given["algo"] == "l-bfgs"}


def _stop(given: dict[str, Any]) -> Stop:
    limit = given["maxiter"] or None
    if given["objwin"] is None:
        return Stop(max_iter=limit)
    return Stop(max_iter=limit, rel_change=given["stopeps"], window=given["objwin"])


def _template(pattern: str | None, previous: Model | None) -> tuple[Template, bool]:
    """The patterns to use, and whether observations may be added to those of the previous model."""
    patterns = None
    if pattern is not None:
        info("* Load patterns")
        source = text.load(pattern)[0]
        content = source.data.removeprefix(BYTE_ORDER_MARK).decode("utf-8", "surrogateescape")
        patterns = Template(content, source.name, "wapiti")
    if previous is not None:
        return extended_template(previous, patterns), patterns is not None
    assert patterns is not None  # checked before
    return patterns, True


def _summarise(data: Dataset, devel: Dataset | None, layout: Layout, template: Template) -> None:
    """Print the sizes of the problem. A string of a * pattern is one block of weights."""
    both = data.attribute_alphabet.native.find_all(*data.edge_alphabet.to_arrays()) >= 0
    n_blocks = layout.n_attributes + layout.n_edge_attributes - int(both.sum())
    plain = template_lines(template).plain if data.plain_transitions else None
    if plain is not None and data.attribute_alphabet.get(plain) < 0:
        n_blocks += 1
    info("* Summary")
    info(f"    nb train:    {data.n_sequences}")
    if devel is not None:
        info(f"    nb devel:    {devel.n_sequences}")
    info(f"    nb labels:   {layout.n_labels}")
    info(f"    nb blocks:   {n_blocks}")
    info(f"    nb features: {layout.n_weights}")


class _Report(Callback):
    """Prints a line per iteration, with error rates, and ends the run when those are stable."""

    def __init__(self, data: Dataset, layout: Layout, n_threads: int, window: int, eps: float) -> None:
        self.data, self.layout, self.n_threads = data, layout, n_threads
        self.window, self.eps = window, eps
        self.rates: list[float] = []
        self.seconds = 0.0

    def on_step(self, run: Run, progress: Progress) -> Ending | None:
        """Print the line. Sets: `rates`, `seconds`."""
        if progress.iteration == 0:
            return None
        weights = to_numpy(run.weights)
        token, sequence = self._errors(weights)
        objective = "NA" if progress.objective is None else f"{progress.objective:<10.2f}"
        info(
            f"  [{progress.iteration:4d}] obj={objective} act={np.count_nonzero(weights):<8d} "
            f"err={token:5.2f}%/{sequence:5.2f}% "
            f"time={progress.seconds - self.seconds:.2f}s/{progress.seconds:.2f}s"
        )
        self.seconds = progress.seconds
        self.rates.append(token)
        latest = self.rates[-self.window :]
        if self.window and len(latest) == self.window and max(latest) - min(latest) < self.eps:
            return (
                StopReason.HELD_OUT,
                f"error rates of {self.window} iterations differ by less than {self.eps:g}",
            )
        return None

    def _errors(self, weights: np.ndarray) -> tuple[float, float]:
        """Percentages of wrong tokens and of wrong sequences."""
        data = self.data
        predicted, _ = make_inference(data, self.layout, weights, n_threads=self.n_threads).viterbi()
        wrong = predicted != data.labels
        if not data.n_sequences:
            return 0.0, 0.0
        sequences = np.logical_or.reduceat(wrong, data.seq_ptr[:-1])
        return 100.0 * float(wrong.mean()), 100.0 * float(sequences.mean())
