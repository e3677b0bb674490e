"""The page of CRFsuite's algorithms and parameters: ``python -m docs.make.crfsuite_page``."""

from __future__ import annotations

from crfit.formats.crfsuite import ALGORITHMS, FEATURES, Parameter
from crfit.trainers.registry import describe

__all__ = ["crfsuite_page"]

_HEAD = """# Coming from CRFsuite

Made from the code by `make docs`. CRFsuite's files are [read as they are](input.md#crfsuite-attribute-files),
and its algorithms and parameters are understood:

    crfit train train.crfsuite -m m.crfit -a l2sgd -p c2=1 -p max_iterations=50

`-a` names the algorithm, `lbfgs` unless given, and `-p` sets a parameter; those that are not set have
CRFsuite's defaults and not those of `crfit`. Further options of the trainer go with `-o`, as in `-o batch=8`,
and every [stopping rule](choosing.md#when-to-stop) may be added. In Python:

```python
import crfit
from crfit.demo import recipe_data
from crfit.formats.crfsuite import translate

X, y = recipe_data(100, seed=0)
found = translate("l2sgd", {"c2": 1.0, "max_iterations": 20})
crf = crfit.CRF(**found.keywords()).fit(X, y)
print(crf.result_.trainer, crf.result_.options["epochs"])
```

CRFsuite's penalty is `c1 |w| + c2 |w|^2`, that of `crfit` is `l1 |w| + (l2/2) |w|^2`. Without `-a` the
default trainer, `newton_cg`, minimises the same function as `lbfgs` in a fraction of the time.

| CRFsuite | here |
|---|---|
"""

_PLACES = {"option": "`--{}`", "trainer": "`-o {}`", "stop": "`Stop({}=)`", "none": "nothing"}

_DIFFERENCES = """## What differs

- `l2sgd` ends with the weights of its last epoch, CRFsuite's with those of the epoch that met the smallest
  loss. The gradient of a step is at the weights before it, CRFsuite's at weights that the penalty of this
  step has made smaller already.
- Orders of the sequences are drawn by another generator, from `--seed`.
- `ap`, `pa` and `arow` have no penalty: l1 and l2 are 0.
"""


def crfsuite_page() -> str:
    """Return the page as Markdown."""
    rows = [f"| `{algorithm}` | {_here(algorithm)} |\n" for algorithm in ALGORITHMS]
    sections = [_section("Parameters of all algorithms", FEATURES)]
    sections += [_section(f"`{algorithm}`", entries) for algorithm, entries in ALGORITHMS.items()]
    return _HEAD + "".join(rows) + "\n" + "\n".join([*sections, _DIFFERENCES])


def _here(algorithm: str) -> str:
    info = describe(algorithm)
    options = info.aliases.get(algorithm, {})
    settings = "".join(f" -o {key}={value}" for key, value in options.items())
    return f"[`--trainer {info.name}{settings}`](trainers.md#{info.name})"


def _section(title: str, entries: tuple[Parameter, ...]) -> str:
    lines = [f"## {title}", "", "| parameter | CRFsuite's default | here | |", "|---|---|---|---|"]
    for entry in entries:
        default = int(entry.default) if isinstance(entry.default, bool) else entry.default
        place = _PLACES[entry.place].format(
            entry.key.replace("_", "-") if entry.place == "option" else entry.key
        )
        lines.append(f"| `{entry.name}` | `{default}` | {place} | {entry.help} |")
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    print(crfsuite_page(), end="")
