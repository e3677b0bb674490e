"""Fuzz a target of `targets.py`, guided by coverage: ``python python_fuzzer.py TARGET [OPTIONS]``."""

import inspect
import random
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import atheris

sys.path.insert(0, str(Path(__file__).parent))
import targets


def functions() -> Iterator[Callable[..., Any]]:
    """The functions and methods of crfit's modules that have been imported."""
    for name, module in list(sys.modules.items()):
        if not name.startswith("crfit"):
            continue
        for found in list(vars(module).values()):
            if getattr(found, "__module__", None) != name:
                continue
            for one in vars(found).values() if inspect.isclass(found) else [found]:
                function = one.fget if isinstance(one, property) else getattr(one, "__func__", one)
                if inspect.isfunction(function):
                    yield function


def main() -> None:
    """Fuzz the target named by the first argument."""
    name = sys.argv.pop(1)
    target = targets.TARGETS[name]
    for seed in target.seeds():
        target.run(seed)  # imports what it needs
    for function in functions():  # instrument_imports does not see the modules of an editable install
        atheris.instrument_func(function)

    def mutate(data: bytes, max_size: int, seed: int) -> bytes:
        chance = random.Random(seed)
        if chance.random() < 0.3:
            return bytes(atheris.Mutate(data, max_size))
        return targets.changed(data, target.with_header, chance)[:max_size]

    atheris.Setup(sys.argv, lambda data: targets.run(name, data), custom_mutator=mutate)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
