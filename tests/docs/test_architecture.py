"""The examples of docs/architecture.md that belong to no other folder: a format and a corpus.

Those for a trainer and an engine are run by tests/trainers and tests/engines.
"""

import re
from pathlib import Path

import crfit
from bench import corpora
from crfit.demo import recipe_data

PAGE = (Path(__file__).parents[2] / "docs" / "architecture.md").read_text(encoding="utf-8")


def example(heading):
    section = PAGE.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    names = {}
    exec(re.search(r"```python\n(.*?)```", section, re.DOTALL)[1], names)
    return names


def test_a_format(tmp_path):
    names = example("Add a format")
    X, y = recipe_data(60, seed=0)
    model = crfit.CRF(l2=0.5, weights="all").fit(X, y).model_
    names["write"](model, tmp_path / "model.txt")
    read = names["read"](tmp_path / "model.txt")
    assert read.tag(X[0]) == model.tag(X[0])
    for x in X[:10]:
        assert abs(read.nbest(x, 1)[0][1] - model.nbest(x, 1)[0][1]) < 1e-12


def test_a_corpus(monkeypatch, capsys):
    monkeypatch.setattr(corpora, "CORPORA", dict(corpora.CORPORA))
    example("Add a corpus")
    assert "addresses" in corpora.CORPORA
    assert "addresses/train.txt.gz" in capsys.readouterr().out


def test_the_paths_on_the_page_exist():
    root = Path(__file__).parents[2]
    for folder in re.findall(r"^\| `(\w+)/`", PAGE, re.MULTILINE):
        assert (root / folder).is_dir() or (root / "src" / "crfit" / folder).is_dir(), folder
