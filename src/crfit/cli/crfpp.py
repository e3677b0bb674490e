"""``crfit crfpp``: crf_learn and crf_test of CRF++, with their switches, output and model files."""

import time
from contextlib import ExitStack
from dataclasses import replace
from typing import IO, Any

import click
import numpy as np

from crfit import __version__, trainers
from crfit.cli.arguments import COMMON, check_standard_input, options, same_file, section
from crfit.cli.output import Verb, announce_terminal, debug_option
from crfit.cli.tag import MAX_NBEST, cells_of, spelled, write
from crfit.cli.unknown_names import warn_unknown_attributes
from crfit.compat.pycrfsuite.trainer import FEWEST_PASSES
from crfit.data import Dataset, text
from crfit.data.alphabet import Alphabet
from crfit.data.templates import Template, load_template
from crfit.engines import make_inference
from crfit.errors import OptionError
from crfit.files import check_writable, replacing
from crfit.fit import FitOptions, fit_dataset
from crfit.formats import crfpp
from crfit.layout import Layout, make_layout
from crfit.model import Model
from crfit.model.answers import Style, answers
from crfit.threads import resolve_threads
from crfit.training.records import Callback, Result, Run
from crfit.training.stopping import Progress, Stop, StopReason
from crfit.vectors import to_numpy

#: CRF++ stops when the objective changes by less than --eta in this many iterations in a row.
ETA_WINDOW = 3

_POSITIVE, _ABOVE_0 = click.IntRange(min=1), click.FloatRange(min=0, min_open=True)


@click.group(
    "crfpp",
    invoke_without_command=True,
    epilog="Switches, output and model files are those of CRF++: in a script, write 'crfit crfpp learn' for "
    "'crf_learn' and 'crfit crfpp test' for 'crf_test'. Differences: docs/from-crfpp.md.",
)
@debug_option
@click.pass_context
def command(context: click.Context) -> None:
    """Run the programs of CRF++: learn is crf_learn, test is crf_test.

    \b
    Examples:
      crfit crfpp learn -c 4 template train.txt model
      crfit crfpp test -m model -v 1 test.txt
    """  # noqa: D301
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


@command.command(
    "learn",
    cls=Verb,
    short_help="Train a model.",
    epilog="CRF++'s penalty is |w|^2 / (2 C), or |w| / C with CRF-L1.",
)
@click.argument("files", metavar="TEMPLATE TRAIN MODEL", nargs=-1, type=click.Path())
@options(
    section(
        COMMON,
        (
            "-f --freq INT",
            "Use the attributes that occur at INT or more positions.",
            {"type": click.IntRange(min=0), "default": 1, "show_default": True},
        ),
        (
            "-c --cost FLOAT",
            "C: a larger value means a smaller penalty.",
            {"type": _ABOVE_0, "default": 1.0, "show_default": True},
        ),
        (
            "-a --algorithm NAME",
            "CRF-L2 (or CRF), CRF-L1 or MIRA; MIRA runs the trainer pa.",
            {
                "type": click.Choice(["CRF", "CRF-L2", "CRF-L1", "MIRA"], case_sensitive=False),
                "default": "CRF-L2",
                "show_default": True,
            },
        ),
        (
            "-p --thread INT",
            "Number of threads; results do not depend on it.  [default: all cores]",
            {"type": click.IntRange(min=0), "default": 0},
        ),
        (
            "-m --maxiter INT",
            "At most INT passes over the data, but at least 5; with MIRA, epochs.  [default: no limit]",
            {"type": _POSITIVE},
        ),
        (
            "-e --eta FLOAT",
            "Stop at this relative distance to the optimum, if the trainer can estimate it, or change of the "
            "objective.",
            {"type": _ABOVE_0, "default": 1e-4, "show_default": True},
        ),
        (
            "-H --shrinking-size INT",
            "Accepted for scripts; has no effect.",
            {"type": _POSITIVE, "default": 20, "show_default": True},
        ),
        ("-t --textmodel", "Also write the model as text, to MODEL.txt."),
        ("-C --convert", "Convert a text model to a binary one: the arguments are TEXT and MODEL."),
    )
)
@click.version_option(__version__, "-v", "--version", prog_name="crfit", message="%(prog)s %(version)s")
@debug_option
def learn(files: tuple[str, ...], **given: Any) -> None:
    """Train a model on a column file, with a feature template.

    \b
    Examples:
      crfit crfpp learn template train.txt model
      crfit crfpp learn -f 3 -c 1.5 -p 4 template train.txt model
      crfit crfpp learn -a CRF-L1 -t template train.txt model
      crfit crfpp learn -C model.txt model
    """  # noqa: D301
    names = ("TEXT", "MODEL") if given["convert"] else ("TEMPLATE", "TRAIN", "MODEL")
    if len(files) != len(names):
        raise click.UsageError(f"Give {len(names)} files: {' '.join(names)}.")
    *inputs, target = files
    check_standard_input(inputs)
    targets = [target, f"{target}.txt"] if given["textmodel"] and not given["convert"] else [target]
    for path in targets:
        check_writable(path)
        if any(same_file(path, file) for file in inputs):
            raise click.UsageError(f"{path} is also an input: give the model another name.")
    if given["convert"]:
        crfpp.write(crfpp.read(files[0]), target)
        return
    template = load_template(inputs[0])
    crfpp.check_template(template, target)
    model = _learn(given, template, inputs[1])
    crfpp.write(model, target)
    if given["textmodel"]:
        crfpp.write_text(model, targets[1])


def _learn(given: dict[str, Any], template: Template, train_file: str) -> Model:
    begin = time.perf_counter()
    click.echo(f"crfit {__version__}, with the interface of CRF++\n")
    n_threads = resolve_threads(given["thread"] or None)
    announce_terminal(train_file)
    data = _sorted_labels(text.read(train_file, format="columns", template=template, n_threads=n_threads))
    data = data.prune(given["freq"])
    layout = make_layout(data, weights="all", transitions="all")
    hundreds = "".join(f"{n}.. " for n in range(100, data.n_sequences + 1, 100))
    click.echo(f"reading training data: {hundreds}\nDone! {time.perf_counter() - begin:.2f} s\n")
    click.echo(f"Number of sentences: {data.n_sequences}")
    click.echo(f"Number of features:  {layout.n_weights}")
    click.echo(f"Number of thread(s): {n_threads}")
    click.echo(f"Freq:                {given['freq']}")
    click.echo(f"eta:                 {given['eta']:.5f}")
    click.echo(f"C:                   {given['cost']:.5f}")
    click.echo(f"shrinking size:      {given['shrinking_size']}")
    begin = time.perf_counter()
    options = replace(_fit_options(given), n_threads=n_threads)
    model = fit_dataset(data, options, callbacks=[_Log(layout)], template=template, layout=layout).model
    click.echo(f"\nDone! {time.perf_counter() - begin:.2f} s\n")
    return model


def _fit_options(given: dict[str, Any]) -> FitOptions:
    """Trainer, penalty and stopping rules."""
    C, maxiter, algorithm = given["cost"], given["maxiter"], given["algorithm"].upper()
    if algorithm == "MIRA":
        # Like MIRA, updates of at most C, without averaging, until no mistakes are left.
        settings = {} if maxiter is None else {"epochs": maxiter}
        return FitOptions(trainer=trainers.get("pa", c=C, averaging=False, **settings), l2=0.0, scheme=None)
    passes = None if maxiter is None else max(maxiter, FEWEST_PASSES)
    stop = Stop(tol=given["eta"], rel_change=given["eta"], window=ETA_WINDOW, max_passes=passes)
    l1, l2 = (1.0 / C, 0.0) if algorithm == "CRF-L1" else (0.0, 1.0 / C)
    return FitOptions(l1=l1, l2=l2, stop=stop, scheme=None)


def _sorted_labels(data: Dataset) -> Dataset:
    """Number the labels in the order of their bytes, as CRF++ does."""
    names = data.label_alphabet.strings()
    order = sorted(range(len(names)), key=lambda i: names[i].encode("utf-8", "surrogateescape"))
    ids = np.empty(len(names), dtype=np.int32)
    ids[order] = np.arange(len(names))
    labels: Any = data.labels
    return replace(data, labels=ids[labels], label_alphabet=Alphabet(names[i] for i in order))


class _Log(Callback):
    """Prints a line per iteration, with the errors on the training data."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self._n, self._before = 0, 0.0

    def on_step(self, run: Run, progress: Progress) -> None:
        """Print an iteration, unless the trainer has not computed the objective yet."""
        if progress.objective is not None:
            self._print(run, progress.objective)
        elif "mistakes" in progress.extra:
            weights = to_numpy(run.weights)
            told = f"obj={float(weights @ weights):.5f} loss={progress.extra['online_loss']:.5f}"
            self._line(run, run.objective.n_sequences, told)

    def on_end(self, run: Run, result: Result | None) -> None:
        """Print the outcome if there was no iteration; after Ctrl-C raise KeyboardInterrupt."""
        if result is not None and result.reason is StopReason.INTERRUPTED:
            raise KeyboardInterrupt
        if result is not None and not self._n:  # the limits allowed only the warm-up
            self._print(run, result.objective)

    def _print(self, run: Run, value: float) -> None:
        change = abs(self._before - value) / self._before if self._n else 1.0
        self._before = value
        active = self.layout.n_weights
        if run.objective.l1 > 0:
            active = int(np.count_nonzero(to_numpy(run.weights)))
        self._line(run, active, f"obj={value:.5f} diff={change:.5f}")

    def _line(self, run: Run, active: int, rest: str) -> None:
        objective: Any = run.objective  # its data may have merged attributes, like its weights
        data = objective.dataset
        on = {"device": objective.device, "n_threads": objective.n_threads}
        predicted, _ = make_inference(data, objective.layout, to_numpy(run.weights), **on).viterbi()
        wrong = predicted != data.labels
        sentences = np.add.reduceat(wrong, data.seq_ptr[:-1], dtype=np.int64) > 0
        click.echo(f"iter={self._n} terr={wrong.mean():.5f} serr={sentences.mean():.5f} act={active} {rest}")
        self._n += 1


@command.command("test", cls=Verb, short_help="Label sequences with a model.")
@click.argument("files", metavar="[FILE]...", nargs=-1, type=click.Path())
@options(
    section(
        COMMON,
        ("-m --model MODEL", "Model file of CRF++, binary or text.", {"required": True}),
        (
            "-n --nbest INT",
            "Print the INT most probable labellings; 0 means the best one, without its probability.",
            {"type": click.IntRange(0, MAX_NBEST), "default": 0, "show_default": True},
        ),
        (
            "-v --verbose INT",
            "1: add probabilities of sequences and predicted labels; 2: also of all labels.",
            {"type": click.IntRange(min=0), "default": 0, "show_default": True},
        ),
        (
            "-c --cost-factor FLOAT",
            "Multiply all weights by this number.",
            {"type": _ABOVE_0, "default": 1.0, "show_default": True},
        ),
        ("-o --output FILE", "Write to this file instead of standard output."),
    )
)
@click.version_option(__version__, prog_name="crfit", message="%(prog)s %(version)s")
@debug_option
def test(
    files: tuple[str, ...], model: str, nbest: int, verbose: int, cost_factor: float, output: str | None
) -> None:
    """Label column files, or standard input: the columns of the input, then the label.

    \b
    Examples:
      crfit crfpp test -m model new.txt > tagged.txt
      crfit crfpp test -m model -v 2 -n 3 new.txt
    """  # noqa: D301
    check_standard_input(files)
    loaded = _scaled(crfpp.read(model), cost_factor)
    style = Style(loaded.labels, verbose >= 1, nbest or None, all_marginals=verbose >= 2)
    with ExitStack() as stack:
        opened: IO[bytes] | None = None
        if output not in (None, "-"):
            check_writable(output)
            if any(same_file(output, file) for file in (model, *files)):
                raise OptionError("output", output, "this file is also an input: name another")
            opened = stack.enter_context(open(stack.enter_context(replacing(output)), "wb"))
        for file in files or ("-",):
            announce_terminal(file)
            source = text.load(file)[0]
            if not source.data.strip():
                continue  # no sequences, no labels
            data = loaded.read(source, labelled=False)
            warn_unknown_attributes(data)
            found = answers(loaded, data, style, resolve_threads(None))
            write(spelled(found, style, cells_of(source, data), objects=False), opened)


def _scaled(model: Model, factor: float) -> Model:
    """The model with scaled weights, for files with any further columns, which CRF++ prints unchanged."""
    return Model(
        factor * np.asarray(model.weights),
        model.layout,
        model.attribute_alphabet,
        model.label_alphabet,
        model.edge_alphabet,
        template=model.template,
        n_columns=0,
    )
