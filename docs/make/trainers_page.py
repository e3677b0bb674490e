"""The reference page of the trainers: ``python -m docs.make.trainers_page > docs/trainers.md``."""

from __future__ import annotations

from crfit.trainers.descriptions import facts, minimises, needs, ordered, stops
from crfit.trainers.registry import TrainerInfo, describe

__all__ = ["rules_table", "trainers_page", "trainers_table"]

_HEAD = """# Trainers

Made from the registry by `make docs`; `crfit trainers NAME` shows the same. All that minimise F minimise

    F(w) = sum_i c_i (-log p(y_i | x_i; w)) + (l2/2) |w|^2 + l1 |w|_1

The others learn from wrong best paths. A run ends by the rules of [`Stop`](watching.md#when-to-stop) that you
give; by default, by those below. [Which trainer should I use?](which-trainer.md)

"""


def trainers_page() -> str:
    """Return the page as Markdown."""
    return "\n".join([_HEAD + trainers_table(), *map(_section, ordered())])


def trainers_table(page: str = "") -> str:
    """Return a table of all trainers as Markdown; `page` is the path of the reference page from there."""
    rows = [("name", "method", "minimises", "needs and keeps", "stops", "choose it")]
    for info in ordered():
        name = f"[`{info.name}`]({page}#{info.name})"
        memory = f"{needs(info)}; {info.keeps}" if info.keeps else needs(info)
        told = (minimises(info), memory, stops(info), info.choose)
        rows.append((name, info.summary.removesuffix("."), *told))
    lines = [f"| {' | '.join(_cell(words) for words in row)} |" for row in rows]
    return "\n".join([lines[0], "|" + "---|" * len(rows[0]), *lines[1:], ""])


def rules_table(page: str = "") -> str:
    """Return the rules by which "auto" chooses as Markdown."""
    return _rules(describe("auto"), page)


def _rules(info: TrainerInfo, page: str = "") -> str:
    lines = ["| where | takes | because |", "|---|---|---|"]
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
        lines.append(f"- also called `{alias}`" + (f", with {settings}" if settings else ""))
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
