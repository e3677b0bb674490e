"""Generate docs/crfsuite.md: ``python -m docs.make.crfsuite_page``."""

from __future__ import annotations

from crfit.formats.crfsuite import ALGORITHMS, FEATURES, Parameter
from crfit.trainers.registry import describe

__all__ = ["crfsuite_page"]

_HEAD = """# CRFsuite's algorithms and parameters

Reference of the parameters that crfit understands. The guide is [Coming from python-crfsuite and
sklearn-crfsuite](from-crfsuite.md). This page is generated from the code by `make docs`.

`crfit train` accepts CRFsuite's algorithms (`-a`) and parameters (`-p`):

    crfit train train.crfsuite -m parser.crfit -a l2sgd -p c2=1 -p max_iterations=50

Parameters that you leave out get CRFsuite's defaults, not crfit's. You can add crfit's own trainer options,
such as `-o batch=8`, and any [stopping rule](watching.md#when-to-stop). In Python, `translate` does the same:

```python
import crfit
from crfit.demo import recipe_data
from crfit.formats.crfsuite import translate

X, y = recipe_data(100, seed=0)
settings = translate("l2sgd", {"c2": 1.0, "max_iterations": 20})
crf = crfit.CRF(**settings.keywords()).fit(X, y)
print(crf.result_.trainer, crf.result_.options["epochs"])
```

CRFsuite's penalty is `c1 |w| + c2 |w|^2`, crfit's is `l1 |w| + (l2/2) |w|^2`. So `l1 = c1` and `l2 = 2 c2`.
If you do not need one of these algorithms, leave `-a` out: with `l1=0` crfit's default trainer minimises the
same function as CRFsuite's `lbfgs`, usually much faster.

| CRFsuite | crfit |
|---|---|
"""

_PLACES = {"option": "`--{}`", "trainer": "`-o {}`", "stop": "`Stop({}=)`", "none": "no counterpart"}

_DIFFERENCES = """## Small differences

- `l2sgd` returns the weights of its last epoch; CRFsuite returns those of the epoch with the smallest loss.
  crfit computes the gradient of a step before the penalty shrinks the weights, CRFsuite afterwards.
- crfit shuffles sequences with its own random generator, seeded by `--seed`.
- `ap`, `pa` and `arow` are unregularised: `l1` and `l2` are 0.
"""


def crfsuite_page() -> str:
    """Return the page as Markdown."""
    rows = [f"| `{algorithm}` | {_trainer(algorithm)} |\n" for algorithm in ALGORITHMS]
    sections = [_section("Parameters that all algorithms share", FEATURES)]
    sections += [_section(f"`{algorithm}`", entries) for algorithm, entries in ALGORITHMS.items()]
    return _HEAD + "".join(rows) + "\n" + "\n".join([*sections, _DIFFERENCES])


def _trainer(algorithm: str) -> str:
    info = describe(algorithm)
    options = info.aliases.get(algorithm, {})
    settings = "".join(f" -o {key}={value}" for key, value in options.items())
    return f"[`--trainer {info.name}{settings}`](trainers.md#{info.name})"


def _section(title: str, entries: tuple[Parameter, ...]) -> str:
    lines = [f"## {title}", "", "| parameter | CRFsuite's default | crfit | note |", "|---|---|---|---|"]
    for entry in entries:
        default = int(entry.default) if isinstance(entry.default, bool) else entry.default
        place = _PLACES[entry.place].format(
            entry.key.replace("_", "-") if entry.place == "option" else entry.key
        )
        lines.append(f"| `{entry.name}` | `{default}` | {place} | {entry.help} |")
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    print(crfsuite_page(), end="")
