"""Too little memory: limits on the address space, from a megabyte above what is in use to enough.

Each try is a process of its own, in which all modules are imported before the limit holds. Below that Python
itself may wait for ever for a thread that cannot start.
"""

import contextlib
import resource
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

import crfit
from bench.records import Row
from bench.speed.faults.jobs import Scene, left, unclean
from bench.speed.faults.processes import Count, Ended, Work, in_process, program, spread
from crfit import demo

MEGABYTE, BLOCK = 1 << 20, 1 << 15
N_LINES = 3000
#: How glibc ends a process that cannot have the thread-local data of a library; no program can answer that.
EXIT_OF_LIBRARY, NO_STORAGE = 127, "cannot allocate memory for thread-local data"
PROGRAMS = {
    "`crfit train`": "train {here}/text -m {here}/new --max-iter 3 -q",
    "`crfit train --features default`": "train {here}/text -m {here}/new --features default --max-iter 2 -q",
    "`crfit train --trainer sgd`": "train {here}/text -m {here}/new --trainer sgd -o epochs=2 -q",
    "`crfit index`": "index {here}/text -o {here}/new-shards --overwrite -q",
    "`crfit train` on shards": "train {here}/shards -m {here}/new --max-memory 0 --max-iter 3 -q",
    "`crfit tag`": "tag -m {here}/model {here}/text --marginals",
    "`crfit eval`": "eval -m {here}/model {here}/text",
}


def memory(scene: Scene, n: int) -> Iterator[Row]:
    """Programs, then calls of the library."""
    with scene.copy() as here:
        demo.write_columns(here / "text", demo.recipe_lines(N_LINES))
        X, y = demo.recipe_data(N_LINES, seed=1)
        works = {title: program(words, here=here) for title, words in PROGRAMS.items()}
        works |= {title: partial(call, X, y, here / "model") for title, call in CALLS.items()}
        for title, work in works.items():
            tried = Count("memory", title)
            needed = next(i for i in count() if _limited(work, MEGABYTE << i).code == 0)
            for extra in spread(MEGABYTE, MEGABYTE << needed, n):
                ended = _limited(work, extra)
                print(title, extra, ended.words, flush=True)
                by_library = ended.code == EXIT_OF_LIBRARY and NO_STORAGE in ended.said
                told = None if by_library else unclean(ended)
                tried.add(told, *left(here), refused=ended.code != 0 and not by_library, ended=by_library)
            yield tried.row


def _limited(work: Work, extra: int) -> Ended:
    """Do the work with so many bytes more than are in use before it."""

    def run() -> object:
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used, resource.RLIM_INFINITY))
        taken = []  # what the allocator has from before
        with contextlib.suppress(MemoryError):
            while True:
                taken.append(bytearray(BLOCK))
        resource.setrlimit(resource.RLIMIT_AS, (used + extra, used + extra))
        return work()

    return in_process(run)


def _fit(X: Any, y: Any, model: Path) -> None:
    crfit.CRF(stop=crfit.Stop(max_iter=2), n_threads=2).fit(X, y)


def _gradients(X: Any, y: Any, model: Path) -> None:
    objective = crfit.make_objective(crfit.Dataset.from_sequences(X, y), n_threads=2)
    w = np.zeros(objective.n_weights)
    objective.value_and_grad(w)
    objective.hvp(w)


def _tags(X: Any, y: Any, model: Path) -> None:
    loaded = crfit.load(model, mapped=False)
    loaded.tag_many(X, n_threads=2)
    loaded.marginals_many(X, n_threads=2)
    loaded.nbest(X[0], 5)


CALLS: dict[str, Callable[[Any, Any, Path], None]] = {
    "`CRF.fit`": _fit,
    "gradients and Hessian products": _gradients,
    "`crfit.load`, `tag_many`, `nbest`": _tags,
}
