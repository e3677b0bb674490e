"""The example of docs/architecture.md, "Add a trainer", works as it stands."""

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

import crfit
from crfit.cli import cli
from crfit.trainers import registry

PAGE = Path(__file__).resolve().parents[2] / "docs" / "architecture.md"


@pytest.fixture
def made(monkeypatch):
    """What the example defines; the registry is as before afterwards."""
    monkeypatch.setattr(registry, "_registry", dict(registry._registry))
    section = re.search(r"^## Add a trainer$(.*?)(?=^## |\Z)", PAGE.read_text(encoding="utf-8"), re.M | re.S)
    assert section is not None, "the page has no section 'Add a trainer'"
    (code,) = re.findall(r"```python\n(.*?)```", section.group(1), re.S)
    names = {"__name__": "__main__"}
    exec(compile(code, str(PAGE), "exec"), names)
    return names


def test_the_example_trains_and_is_listed(made):
    result, objective = made["result"], made["objective"]
    assert (result.trainer, result.iterations) == ("descent", 5)
    start, _ = objective.value_and_grad(objective.xp.zeros(objective.n_weights))
    assert result.objective < start
    listed = CliRunner().invoke(cli, ["trainers"])
    assert "descent" in [line.split()[0] for line in listed.output.splitlines() if line.strip()]
    shown = CliRunner().invoke(cli, ["trainers", "descent"]).output
    texts = "Plain gradient descent.", "w <- w - rate g", "step length", "never: its steps are too short"
    for words in texts:
        assert words in shown
    assert "rate : float, default=0.001\n    Step length." in made["Descent"].__doc__
    assert crfit.train(objective, made["Descent"](rate=1e-4), stop=crfit.Stop(max_iter=1)).iterations == 1


def test_it_is_gone_afterwards():
    assert "descent" not in registry.names()
