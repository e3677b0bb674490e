"""The reference page of the trainers: ``python -m docs.make.trainers_page > docs/trainers.md``."""

from __future__ import annotations

from crfit.trainers.descriptions import facts, minimises, ordered
from crfit.trainers.registry import TrainerInfo, describe

__all__ = ["rules_table", "trainers_page", "trainers_table"]

_HEAD = """# Trainers

**Use the default, `auto`,** unless you have a reason not to: it picks a trainer for your data. [Which trainer
should I use?](which-trainer.md) shows when another one is better, with measurements.

Most trainers minimise the penalised negative log-likelihood

    F(w) = sum_i c_i (-log p(y_i | x_i; w)) + (l2/2) |w|^2 + l1 |w|_1

where `c_i` is the weight of sequence i, 1 by default. `pa`, `perceptron` and `arow` are unregularised and
learn from mistakes instead.

"""

_AFTER = """
Below, "stops" is the default rule; you can [set your own](watching.md#when-to-stop). On the command line, set
options with `-o`, for example `--trainer lbfgs -o memory=20`; in Python, use `trainer=LBFGS(memory=20)`.
`crfit trainers NAME` prints the same information. This page is generated from the code by `make docs`.

"""


def trainers_page() -> str:
    """Return the page as Markdown."""
    return "\n".join([_HEAD + trainers_table() + _AFTER.rstrip("\n") + "\n", *map(_section, ordered())])


def trainers_table(page: str = "") -> str:
    """Return a table of all trainers as Markdown; `page` is the path of the reference page from there."""
    lines = ["| name | what it does | minimises | use it when |", "|---|---|---|---|"]
    for info in ordered():
        row = (
            f"[`{info.name}`]({page}#{info.name})",
            info.summary.removesuffix("."),
            minimises(info),
            info.choose,
        )
        lines.append(f"| {' | '.join(map(_cell, row))} |")
    return "\n".join([*lines, ""])


def rules_table(page: str = "") -> str:
    """Return the rules of "auto" as Markdown."""
    return _rules(describe("auto"), page)


def _rules(info: TrainerInfo, page: str = "") -> str:
    lines = ["| if | auto picks | because |", "|---|---|---|"]
    for where, taken, reason in info.rules:
        name, comma, options = taken.partition(",")
        lines.append(f"| {_cell(where)} | [`{name}`]({page}#{name}){comma}{options} | {_cell(reason)} |")
    return "\n".join([*lines, ""])


def _cell(words: str) -> str:
    return words.replace("|", r"\|")  # a bar ends a cell


def _section(info: TrainerInfo) -> str:
    lines = [f"## `{info.name}`", "", info.summary, ""]
    lines += [f"- {heading}: {words}" for heading, words in facts(info)]
    for alias, options in info.aliases.items():
        settings = ", ".join(f"`{key}={value}`" for key, value in options.items())
        lines.append(f"- alias: `{alias}`" + (f", with {settings}" if settings else ""))
    lines.append("")
    if info.rules:
        lines.append(_rules(info))
    if info.options:
        lines += ["| option | type | default | what it does |", "|---|---|---|---|"]
        lines += [f"| `{o.name}` | {_cell(o.type)} | `{o.default}` | {_cell(o.help)} |" for o in info.options]
        lines.append("")
    return "\n".join(lines)


if __name__ == "__main__":
    print(trainers_page(), end="")
