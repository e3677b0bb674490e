"""The reference page of the trainers, made from the registry: ``python -m crfit.trainers.reference_page``."""

from __future__ import annotations

from crfit.trainers.base import TrainerInfo, describe, names

__all__ = ["reference_page"]

_HEAD = """# Trainers

Made from the registry by `make docs`; `crfit trainers NAME` shows the same. All that have a penalty minimise

    F(w) = sum_i c_i (-log p(y_i | x_i; w)) + (l2/2) |w|^2 + l1 |w|_1

The others learn from wrong best paths. A run ends by the rules of [`Stop`](choosing.md#when-to-stop).
"""


def reference_page() -> str:
    """Return the page as Markdown."""
    return "\n".join([_HEAD, *(_section(describe(name)) for name in names())])


def _section(info: TrainerInfo) -> str:
    needs = ", ".join(f"`{need}`" for need in sorted(info.needs)) or "nothing"
    lines = [f"## `{info.name}`", "", info.summary, "", f"- step: `{info.formula}`"]
    lines += [f"- penalties: {info.penalties}", f"- needs of the objective: {needs}"]
    for alias, options in info.aliases.items():
        settings = ", ".join(f"`{key}={value}`" for key, value in options.items())
        lines.append(f"- also called `{alias}`" + (f", with {settings}" if settings else ""))
    lines.append("")
    if info.options:
        lines += ["| option | type | default | what it does |", "|---|---|---|---|"]
        for o in info.options:
            kinds, words = (text.replace("|", r"\|") for text in (o.type, o.help))  # a bar ends a cell
            lines.append(f"| `{o.name}` | {kinds} | `{o.default}` | {words} |")
        lines.append("")
    return "\n".join(lines)


if __name__ == "__main__":
    print(reference_page(), end="")
