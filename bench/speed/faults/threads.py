"""Threads and processes: forks, spawned workers, joblib, pools in pools, signals, training beside tagging."""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from typing import Any

import crfit
from bench.records import Row
from bench.speed.faults.jobs import CHECKPOINTED, Scene, digest, eager, left
from bench.speed.faults.processes import Count, in_process, program
from crfit import demo

N_LINES = 40
STOP = crfit.Stop(max_iter=4)


def fitted(seed: int = 1) -> bytes:
    """Weights of a small training on two threads."""
    X, y = demo.recipe_data(N_LINES, seed=seed)
    objective = crfit.make_objective(crfit.Dataset.from_sequences(X, y), n_threads=2)
    return crfit.train(objective, stop=STOP).weights.tobytes()


def tagged(path: str) -> list[list[str]]:
    """Labels of some lines, on two threads."""
    return crfit.load(path).tag_many(demo.recipe_data(N_LINES, seed=2)[0], n_threads=2)


def nested(path: str) -> list[object]:
    """Training and tagging in threads of this process."""
    with ThreadPoolExecutor(3) as pool:
        return [pool.submit(fitted).result(), *pool.map(tagged, [path] * 3)]


def threads(scene: Scene, n: int) -> Iterator[Row]:
    """Every answer must be that of one thread alone."""
    path = str(scene.saved)
    weights, labels = in_process_result(fitted), in_process_result(tagged, path)
    expected = [weights, *[labels] * 3]

    def pool(method: str) -> None:
        with ProcessPoolExecutor(2, mp_context=get_context(method)) as workers:
            assert list(workers.map(nested, [path] * 2)) == [expected] * 2

    def forks() -> None:
        """Fork again and again while other threads train and tag."""
        fitted()  # this process has threads of its own
        ended = threading.Event()

        def busy(work: Callable[[], object]) -> None:
            while not ended.is_set():
                work()

        others = [threading.Thread(target=busy, args=(one,)) for one in (fitted, lambda: tagged(path))]
        for other in others:
            other.start()
        found = [in_process(lambda: check(nested(path), expected)).code for _ in range(5)]
        ended.set()
        for other in others:
            other.join()
        assert found == [0] * 5, found

    def joblib(backend: str) -> None:
        from joblib import Parallel, delayed

        with Parallel(2, backend=backend) as parallel:
            assert parallel(delayed(nested)(path) for _ in range(2)) == [expected] * 2
        if backend == "loky":  # its workers outlive this process otherwise
            from joblib.externals.loky import get_reusable_executor

            get_reusable_executor().shutdown(wait=True, kill_workers=True)

    def beside() -> None:
        """Eight threads tag with one model while others train and save it."""
        model = crfit.load(path)
        X = demo.recipe_data(N_LINES, seed=2)[0]
        with ThreadPoolExecutor(10) as pool:
            training = [pool.submit(fitted) for _ in range(2)]
            tags = [pool.submit(lambda: [model.tag(x) for x in X]) for _ in range(16)]
            assert all(one.result() == weights for one in training)
            assert all(one.result() == labels for one in tags)

    def ticks() -> None:
        """A signal each millisecond, whose handler runs Python code."""
        seen = list[int]()
        signal.signal(signal.SIGALRM, lambda *_: seen.append(1))
        signal.setitimer(signal.ITIMER_REAL, 1e-3, 1e-3)
        begin = time.monotonic()
        while len(seen) < 50 and time.monotonic() < begin + 10:
            check(nested(path), expected)
        signal.setitimer(signal.ITIMER_REAL, 0)
        assert seen

    works: dict[str, Callable[[], None]] = {
        "forks while other threads train and tag": forks,
        "workers by fork, each with pools of threads": lambda: pool("fork"),
        "workers by spawn": lambda: pool("spawn"),
        "workers by forkserver": lambda: pool("forkserver"),
        "joblib, processes": lambda: joblib("loky"),
        "joblib, threads": lambda: joblib("threading"),
        "tagging in eight threads beside training": beside,
        "a signal each millisecond": ticks,
    }
    for title, work in works.items():
        count = Count("threads", title)
        for _ in range(n if "spawn" not in title and "server" not in title else max(1, n // 4)):
            ended = in_process(work)
            count.add(None if ended.code == 0 else ended.words)
        yield count.row
    yield _signals(scene, n)


def _signals(scene: Scene, n: int) -> Row:
    """SIGTERM to a worker that trains: it saves its model, and resumes to the same bytes."""
    count = Count("threads", "SIGTERM to a process that trains")
    words = CHECKPOINTED.replace("--max-iter 6", "--max-iter 40")
    with scene.copy() as whole:
        in_process(eager(program(words, text=scene.text, here=whole)))
        expected = digest(whole / "model")
    for number in range(n):
        with scene.copy() as here:
            work = eager(program(words, text=scene.text, here=here))
            ended = in_process(lambda w=work, s=number: _terminated(w, 0.02 + 0.1 * s / n))  # type: ignore[misc]
            again = words + " --resume {here}/run" * (here / "run").exists()
            resumed = in_process(program(again, text=scene.text, here=here))
            count.add(
                None if ended.code in (0, 143) else ended.words,
                None if resumed.code == 0 else resumed.words,
                None if digest(here / "model") == expected else "resumed, it has another model",
                *left(here),
            )
    return count.row


def _terminated(work: Callable[[], object], seconds: float) -> object:
    timer = threading.Timer(seconds, lambda: os.kill(os.getpid(), signal.SIGTERM))
    timer.daemon = True
    timer.start()
    return work()


def check(found: object, expected: object) -> None:
    """Raise unless two results are equal."""
    assert found == expected, "another result"


def in_process_result(work: Callable[..., Any], *arguments: Any) -> Any:
    """The result of a call in a process of its own, so that this one stays without threads."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(work, *arguments).result()
