"""Write models of each kind in today's format, and what they say, into this folder.

``python tests/golden/make.py`` before a release that changes the format of models; the files of earlier
releases stay as they are. test_golden.py reads all of them.
"""

import json
import tempfile
from pathlib import Path

import numpy as np

import crfit
from crfit.cli import main
from crfit.demo import recipe_data, recipe_lines, write_columns
from crfit.model import Model

FOLDER = Path(__file__).parent
STOP = crfit.Stop(max_iter=3)
TEMPLATE = "U0:%x[0,1]\nU1:%x[-1,1]\nB0\nB1:%x[0,1]\n"


def alphabets(model: Model) -> dict[str, list[str]]:
    """The names in a model, by id."""
    names = ("attribute_alphabet", "label_alphabet", "edge_alphabet")
    return {name: list(getattr(model, name)) for name in names}


def answers(model: Model, X: list) -> dict:
    """What a model says, to compare with later."""
    return {
        "weights": [float(w) for w in model.weights],
        **alphabets(model),
        "order": model.layout.order,
        "X": X,
        "labels": [model.tag(x) for x in X],
        "marginals": [model.marginals(x) for x in X],
    }


def models() -> dict[str, tuple[Model, list]]:
    """Models by kind, with sequences to tag."""
    X, y = recipe_data(6, seed=0)
    X = [[item[:4] for item in x] for x in X]
    words = [[word for word, *_ in line] for line in recipe_lines(6, seed=0)]
    values = [[{"length": 0.5 * t, "kind": item[0]} for t, item in enumerate(x)] for x in X]
    made = {
        "plain": (crfit.CRF(stop=STOP).fit(X, y), X),
        "boundary": (crfit.CRF(stop=STOP, boundary=True, transitions="observed", scheme=None).fit(X, y), X),
        "values": (crfit.CRF(stop=STOP, weights="all", l1=0.1, trainer="lbfgs").fit(values, y), values),
        "order2": (crfit.CRF(stop=STOP, order=2, transitions="observed").fit(X, y), X),
        "features": (crfit.CRF(stop=STOP, features="lower\nshape\nbias", l2=0.5).fit(words, y), words),
    }
    found = {name: (crf.model_, x[:3]) for name, (crf, x) in made.items()}
    items = [{"cheap": 1.0, "long": 0.5}, {"soon": 2.0}, {"long": 1.0}]
    found["classes"] = (
        crfit.LogLinear(stop=STOP).fit(items, ["a", "b", "c"]).model_,
        [[item] for item in items],
    )
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "template").write_text(TEMPLATE)
        write_columns(folder / "train.txt", recipe_lines(6, seed=0))
        options = [
            "--template",
            folder / "template",
            "--max-iter",
            3,
            "--no-progress",
            "-m",
            folder / "m.crfit",
        ]
        try:
            main([str(word) for word in ("train", folder / "train.txt", *options)])
        except SystemExit as end:
            if end.code:
                raise
        found["template"] = (crfit.load(folder / "m.crfit", mapped=False), [])
    return found


if __name__ == "__main__":
    for kind, (model, X) in models().items():
        path = FOLDER / f"{crfit.__version__}-{kind}.crfit"
        model.save(path, dtype="float32" if kind == "boundary" else "float64")
        loaded = crfit.load(path)
        assert np.allclose(loaded.weights, model.weights, rtol=1e-6)
        path.with_suffix(".json").write_text(json.dumps(answers(loaded, X), ensure_ascii=True) + "\n")
