"""Inputs that fuzzers found, and some hundred changed seeds of each target; ``make fuzz`` looks for more."""

import random
from pathlib import Path

import pytest
import targets

FOUND = Path(__file__).parent / "found"
N_CHANGED = 150


@pytest.mark.parametrize(
    "path", sorted(FOUND.glob("*/*")), ids=lambda path: f"{path.parent.name}/{path.name}"
)
def test_what_was_found(path):
    targets.run(path.parent.name, path.read_bytes())


@pytest.mark.parametrize("name", targets.TARGETS)
def test_seeds_are_read(name):
    for seed in targets.TARGETS[name].seeds():
        targets.TARGETS[name].run(seed)


@pytest.mark.parametrize("name", targets.TARGETS)
def test_changed_seeds_are_read_or_refused(name):
    target, chance = targets.TARGETS[name], random.Random(7)
    for seed in target.seeds():
        for _ in range(N_CHANGED):
            targets.run(name, targets.changed(seed, target.with_header, chance))
