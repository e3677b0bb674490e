"""Load: the same calls again and again in equal windows; memory, open files and threads after each."""

import gc
import os
import resource
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import crfit
from bench.records import Row
from bench.speed.faults.jobs import Scene
from crfit import demo

N_THREADS = 8
WINDOWS = 10
#: What is measured after a window.
MEASURED = ("bytes", "files", "threads")


def load(scene: Scene, calls: int, trainings: int, loads: int) -> Iterator[Row]:
    """Tag calls from threads, trainings of a few lines, and loads; each begins with a window unmeasured."""
    path = scene.saved
    model, (X, y) = crfit.load(path), demo.recipe_data(50, seed=2)
    tagged, marginals = [model.tag(x) for x in X], model.marginals(X[0])

    def tag(n: int) -> int:
        """Calls that gave other labels than the first."""
        return sum(model.tag(X[i % len(X)]) != tagged[i % len(X)] for i in range(n))

    def train(n: int) -> int:
        """Trainings of the same few lines whose weights differ from those of the first."""
        return sum(fitted(i) != weights[i % len(weights)] for i in range(n))

    def fitted(i: int) -> bytes:
        some = slice(10 * (i % 4), 10 * (i % 4) + 5)
        crf = crfit.CRF(stop=crfit.Stop(max_iter=3), n_threads=2).fit(X[some], y[some])
        return crf.result_.weights.tobytes()

    def opened(n: int) -> int:
        return sum(crfit.load(path, mapped=bool(i % 2)).marginals(X[0]) != marginals for i in range(n))

    weights, all_started = [fitted(i) for i in range(4)], Barrier(N_THREADS)
    with ThreadPoolExecutor(N_THREADS) as pool:
        list(pool.map(lambda _: all_started.wait(), range(N_THREADS)))

        def tag_in_threads(n: int) -> int:
            return sum(pool.map(tag, [n // N_THREADS] * N_THREADS))

        yield from _windows(f"calls of `tag` from {N_THREADS} threads", tag_in_threads, calls)
    yield from _windows("trainings of five lines", train, trainings)
    yield from _windows("loads of a model", opened, loads)


def _windows(what: str, work: Callable[[int], int], n: int) -> Iterator[Row]:
    """A row after each window, with what has been done and measured by then."""
    each, wrong = n // WINDOWS, 0
    for window in range(WINDOWS + 1):
        wrong += work(each)
        gc.collect()
        if window > 0:
            yield {"what": what, "window": window, "done": window * each, "wrong": wrong, **in_use()}


def in_use() -> Row:
    """Bytes in memory, open files and threads of this process."""
    resident = int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
    found = (resident, len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task")))
    return dict(zip(MEASURED, found, strict=True))
