"""Training on worker processes of Dask: bytes of results, cost of a pass, faults, and a model of the cost.

Passes: gradients on 1, 2 and 4 processes of this machine against the CPU engine on two threads, in turn, and
the bytes that travel. Faults: a training in which workers are killed at random moments, and one in which a
worker is frozen. Links: gradients behind a throttled transport, in which every transfer waits for its bytes
at the one link of the trainer and for a delay each way; a model of the cost is fitted to them and says what
to expect elsewhere. Starts: weights averaged over parts of the data that are trained on their own.
"""

import asyncio
import hashlib
import math
import os
import random
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np

import crfit
from bench import problems
from bench.records import Check, NotAvailable, Results, Row, Task
from bench.setting import THREADS, Setting
from bench.tables import Column, table_of
from crfit.data.shards import Shards
from crfit.engines import EngineObjective
from crfit.engines.sharded import N_SHARDS, ShardedObjective
from crfit.trainers.newton.starts import stochastic_start

TITLE = "training on worker processes of Dask: bytes, faults, and the cost of a pass"
TITLES = {
    "conll2000-observed": "CoNLL-2000",
    "jnlpba-observed": "JNLPBA",
    "amalgum-observed": "AMALGUM",
    "amalgum-few-pairs": "AMALGUM, fine tags",
    "recipes-few": "recipe lines",
}
CHUNKS, QUICK = "conll2000-observed", "recipes-few"
BITS = 1e6  # of a link, in megabits per second
ROUNDS, KILLS, GAP = 7, 10, 1e-3
#: A pass on two processes takes at most so many times as long as one on two threads.
SLOWER = 1.3
#: The cluster on paper: machines, cores each, gigabits per second and delay of the trainer's link.
MACHINES, CORES, GIGABITS, DELAY = 100, 16, 10.0, 5e-4
TOKENS = (10**9, 10**11)


def tasks(quick: bool) -> list[Task]:
    """Passes on each problem, then faults, links and starts."""
    workers = "1 2" if quick else "1 2 4"
    chosen = [QUICK] if quick else list(TITLES)[:-1]
    one = QUICK if quick else CHUNKS
    return [
        *(Task(f"passes.{name}", name, {"kind": "passes", "values": workers}, 1200.0) for name in chosen),
        Task("faults", one, {"kind": "faults"}, 900.0),
        Task("links", one, {"kind": "links", "values": "0 1000" if quick else "0 1000 200"}, 900.0),
        Task("starts", one, {"kind": "starts", "values": "2" if quick else "2 4 8 16"}, 1200.0),
    ]


def measure(task: Task, setting: Setting) -> Iterator[Row]:
    try:
        import distributed  # noqa: F401
    except ImportError:
        raise NotAvailable('pip install "crfit[dask]"') from None
    loaded = problems.problem(task.problem).load(setting.data)
    ways = {"passes": passes, "faults": faults, "links": links, "starts": starts}
    yield from ways[task.settings["kind"]](loaded, task)


@contextmanager
def processes(n: int, **options: Any) -> Iterator[Any]:
    """A cluster of `n` processes, with two threads together."""
    import distributed

    each = max(1, THREADS // n)
    with (
        distributed.LocalCluster(
            n_workers=n, threads_per_worker=each, memory_limit=0, dashboard_address=None, silence_logs=50
        ) as local,
        distributed.Client(local, set_as_default=False) as client,
    ):
        yield crfit.Cluster(client, **options)


def passes(loaded: problems.Loaded, task: Task) -> Iterator[Row]:
    plain = loaded.objective(THREADS)
    w, v = np.random.default_rng(0).normal(size=(2, plain.n_weights)) / 10.0
    value, gradient = plain.value_and_grad(w)
    for n in map(int, task.settings["values"].split()):
        with processes(n) as cluster:
            objective: Any = loaded.objective(device="cluster", client=cluster)
            own, own_gradient = objective.value_and_grad(w)
            digest = hashlib.sha256(np.float64(own).tobytes() + own_gradient.tobytes())
            digest.update(objective.hvp(v).tobytes() + objective.hessian_diagonal().tobytes())
            seconds, on_cluster, busy = list[float](), list[float](), list[float]()
            before = objective.workers
            for _ in range(ROUNDS):  # in turn, because the load of the machine changes
                begin = time.perf_counter()
                plain.value_and_grad(w)
                middle = time.perf_counter()
                objective.value_and_grad(w)
                seconds.append(middle - begin)
                on_cluster.append(time.perf_counter() - middle)
            after = objective.workers
            busy = [b.seconds - a.seconds for a, b in zip(before, after, strict=True)]
            moved = sum(b.sent + b.received - a.sent - a.received for a, b in zip(before, after, strict=True))
            yield {
                "workers": n,
                "seconds": min(on_cluster),
                "plain_seconds": min(seconds),
                "busy": max(busy) / ROUNDS,
                "bytes": moved / ROUNDS,
                "all_bytes": 2 * n * 8 * objective.n_weights,
                "difference": abs(own - value) / abs(value),
                "gradient_difference": float(np.abs(own_gradient - gradient).max() / np.abs(gradient).max()),
                "digest": digest.hexdigest()[:16],
                "n_weights": objective.n_weights,
                "n_tokens": loaded.train.n_tokens,
            }


def faults(loaded: problems.Loaded, task: Task) -> Iterator[Row]:
    stop = crfit.Stop(rel_change=1e-13, max_iter=20 if task.problem == QUICK else 400)
    local = crfit.train(loaded_shards(loaded), "lbfgs", stop=stop)
    yield {"what": "here", "digest": digest_of(local), "seconds": local.seconds, "lost": 0}
    with processes(3, patience=2.0) as cluster:
        for what in ("nothing", "kills", "freeze"):
            cluster.client.wait_for_workers(3, timeout=60)
            objective: Any = loaded.objective(device="cluster", client=cluster)
            chosen, ended = random.Random(0), threading.Event()
            done = list[int]()
            work = partial({"kills": kill, "freeze": freeze}.get(what, leave), cluster, chosen, ended, done)
            worker = threading.Thread(target=work)
            worker.start()
            result = crfit.train(objective, "lbfgs", stop=stop)
            ended.set()
            worker.join()
            yield {
                "what": what,
                "digest": digest_of(result),
                "seconds": result.seconds,
                "lost": sum(one.lost for one in objective.workers),
                "hit": len(done),
            }
            for pid in done if what == "freeze" else ():
                os.kill(pid, signal.SIGKILL)


def loaded_shards(loaded: problems.Loaded) -> EngineObjective:
    """The same sum over shards in this process."""
    asked = loaded.problem
    shards = Shards.of(loaded.train, N_SHARDS)
    return crfit.make_objective(
        shards, l2=asked.l2, weights=asked.weights, transitions=asked.transitions, n_threads=THREADS
    )


def digest_of(result: crfit.Result) -> str:
    return hashlib.sha256(result.weights.tobytes()).hexdigest()[:16]


def leave(cluster: Any, chosen: random.Random, ended: threading.Event, done: list[int]) -> None:
    """Do nothing."""


def kill(cluster: Any, chosen: random.Random, ended: threading.Event, done: list[int]) -> None:
    """Kill workers at random moments."""
    while len(done) < KILLS and not ended.wait(chosen.uniform(0.2, 1.5)):
        if alive := sorted(set(_pids(cluster)).difference(done)):
            done.append(chosen.choice(alive))
            os.kill(done[-1], signal.SIGKILL)


def freeze(cluster: Any, chosen: random.Random, ended: threading.Event, done: list[int]) -> None:
    """Freeze one worker."""
    pid = chosen.choice(_pids(cluster))
    if not ended.wait(chosen.uniform(0.2, 2.0)):
        os.kill(pid, signal.SIGSTOP)
        done.append(pid)


def _pids(cluster: Any) -> list[int]:
    """Processes of the workers that run now; a killed one is replaced after a second or two."""
    return [nanny.pid for nanny in cluster.client.cluster.workers.values() if nanny.pid]


def links(loaded: problems.Loaded, task: Task) -> Iterator[Row]:
    for n in (1, 2):
        with processes(n) as cluster:
            objective: Any = loaded.objective(device="cluster", client=cluster)
            w, own = np.zeros(objective.n_weights), objective.runner._call
            for bandwidth in map(float, task.settings["values"].split()):
                for delay in (0.0, 0.01, 0.05):
                    objective.runner._call = throttled(own, bandwidth * BITS / 8, delay)
                    for shape in ("gradient", "line"):
                        yield {
                            "workers": n, "bandwidth": bandwidth, "delay": delay, "shape": shape,
                            **timed(objective, w, shape),
                        }  # fmt: skip


def throttled(own: Any, bandwidth: float, delay: float) -> Any:
    """A call whose transfers share a link of so many bytes per second; 0: no limit."""
    ways = {"there": asyncio.Lock(), "back": asyncio.Lock()}

    async def transfer(way: str, n_bytes: int) -> None:
        if bandwidth:
            async with ways[way]:
                await asyncio.sleep(n_bytes / bandwidth)
        if delay:
            await asyncio.sleep(delay)

    async def call(name: str, method: str, arguments: tuple[Any, ...]) -> Any:
        await transfer("there", sum(map(n_bytes_of, arguments)))
        answer = await own(name, method, arguments)
        await transfer("back", n_bytes_of(answer))
        return answer

    return call


def n_bytes_of(thing: Any) -> int:
    """Bytes of the arrays in a request or an answer."""
    if isinstance(thing, np.ndarray):
        return thing.nbytes
    if isinstance(thing, dict):
        return sum(map(n_bytes_of, thing.values()))
    return sum(map(n_bytes_of, thing)) if isinstance(thing, list | tuple) else 0


def timed(objective: ShardedObjective, w: np.ndarray, shape: str) -> Row:
    """The fastest of some gradients, or of points on a line, which send only numbers."""
    objective.value_and_grad(w)
    along = objective.along(w)
    along(0.0)
    found = []
    for _ in range(3):
        before, begin = objective.workers, time.perf_counter()
        if shape == "gradient":
            objective.value_and_grad(w)
        else:
            along(1.0)
        seconds, after = time.perf_counter() - begin, objective.workers
        busy = max(b.seconds - a.seconds for a, b in zip(before, after, strict=True))
        moved = sum(b.sent + b.received - a.sent - a.received for a, b in zip(before, after, strict=True))
        found.append({"seconds": seconds, "busy": busy, "bytes": moved})
    return min(found, key=itemgetter("seconds"))


def starts(loaded: problems.Loaded, task: Task) -> Iterator[Row]:
    whole = loaded.objective(THREADS)
    best = crfit.train(whole, "newton_cg", stop=crfit.Stop(tol=1e-7)).objective
    stop = crfit.Stop(objective=best * (1.0 + GAP), max_passes=500)
    for n in (1, *map(int, task.settings["values"].split())):
        begin, w = time.process_time(), None
        if n > 1:
            w = averaged(loaded, n)
        spent = time.process_time() - begin
        gap = None if w is None else float(whole.full_value(w)) / best - 1.0
        result = crfit.train(whole, "lbfgs", w0=w, stop=stop)
        yield {
            "parts": n,
            "start_gap": gap,
            "start_seconds": spent,
            "rounds": result.passes + (n > 1),
            "gap": result.objective / best - 1.0,
        }


def averaged(loaded: problems.Loaded, n: int) -> np.ndarray:
    """Weights of SGD on each part, averaged over the parts that use a weight; each has a share of l2."""
    objective = crfit.make_objective(
        Shards.of(loaded.train, n), l2=loaded.problem.l2, weights=loaded.problem.weights,
        transitions=loaded.problem.transitions, n_threads=THREADS,
    )  # fmt: skip
    assert isinstance(objective, ShardedObjective)
    runner: Any = objective.runner
    total, count = np.zeros(objective.n_weights), np.zeros(objective.n_weights)
    for term, places in zip(runner.terms(), runner.places, strict=True):
        part = term.objective
        part.l2 = objective.l2 / n
        w = np.zeros(part.n_weights)
        for _ in stochastic_start(part, w, 0):
            pass
        total[places] += w
        count[places] += 1.0
    return total / np.maximum(count, 1.0)


# --- what follows ------------------------------------------------------------------------------------------


class Model(NamedTuple):
    """Seconds of a pass beyond the computing of the slowest worker: fixed + per_byte bytes + the link."""

    fixed: float
    per_byte: float
    error: float  # largest relative error on what it was fitted to

    def seconds(self, busy: float, n_bytes: float, bandwidth: float, delay: float) -> float:
        link = n_bytes / bandwidth if bandwidth else 0.0
        return busy + self.fixed + self.per_byte * n_bytes + link + 2.0 * delay


def fitted(rows: list[Row]) -> Model:
    """Least squares of what is left after computing and the link, weighted by the time of the pass."""
    bare = Model(0.0, 0.0, 0.0)

    def known(row: Row) -> float:
        return bare.seconds(row["busy"], row["bytes"], row["bandwidth"] * BITS / 8, row["delay"])

    seconds = np.array([row["seconds"] for row in rows])
    rest = seconds - [known(row) for row in rows]
    inputs = np.array([[1.0, row["bytes"]] for row in rows])
    fixed, per_byte = np.linalg.lstsq(inputs / seconds[:, None], rest / seconds, rcond=None)[0]
    model = Model(max(0.0, float(fixed)), max(0.0, float(per_byte)), 0.0)
    told = [
        model.seconds(row["busy"], row["bytes"], row["bandwidth"] * BITS / 8, row["delay"]) for row in rows
    ]
    return model._replace(error=float(np.median(np.abs(np.array(told) / seconds - 1.0))))


class Paper(NamedTuple):
    """A pass on the cluster of the model, in seconds."""

    tokens: int
    wire: str
    compute: float
    link: float
    trainer: float
    n_bytes: float

    @property
    def total(self) -> float:
        return self.compute + self.link + self.trainer


def on_paper(results: Results) -> list[Paper]:
    """What the model says of a cluster; weights that a machine uses grow as a power of its tokens."""
    rows = [row for row in results.where(kind="passes") if row["problem"] == "amalgum-observed"]
    if len(rows) < 2:
        rows = results.where(kind="passes")
    model = fitted(results.where(kind="links"))
    rows = sorted(rows, key=itemgetter("workers"))
    used = [row["bytes"] / 16.0 / row["workers"] for row in rows]  # weights of a worker
    tokens = [row["n_tokens"] / row["workers"] for row in rows]
    power, level = np.polyfit(np.log(tokens), np.log(used), 1)
    rate = max(row["n_tokens"] / row["plain_seconds"] for row in rows) / THREADS  # per core and second
    found = []
    for n in TOKENS:
        each = n / MACHINES
        weights = math.exp(level) * each**power
        for wire, width in (("float64", 8), ("float32", 4)):
            n_bytes = 2.0 * width * weights * MACHINES
            link = n_bytes / (GIGABITS * 1e9 / 8) + 2.0 * DELAY
            found.append(
                Paper(n, wire, each / (CORES * rate), link, model.fixed + model.per_byte * n_bytes, n_bytes)
            )
    return found


def tables(results: Results) -> dict[str, str]:
    passes_ = table_of(
        results.where(kind="passes"),
        Column("", lambda row: TITLES[row["problem"]]),
        Column("processes", itemgetter("workers"), ".0f"),
        Column("seconds per gradient", itemgetter("seconds"), ".3f"),
        Column("two threads, no cluster", itemgetter("plain_seconds"), ".3f"),
        Column("ratio", lambda row: row["seconds"] / row["plain_seconds"], ".2f"),
        Column("MB per pass", lambda row: row["bytes"] / 1e6, ".1f"),
        Column("if all weights travelled", lambda row: row["all_bytes"] / 1e6, ".1f"),
        Column("difference of F", itemgetter("difference"), ".0e"),
    )
    names = {
        "here": "no cluster, in parts",
        "nothing": "3 processes",
        "kills": "3 processes, {hit:.0f} killed at random moments",
        "freeze": "3 processes, one frozen",
    }
    faulty = results.where(kind="faults")
    same = {row["digest"] for row in faulty if row["what"] == "here"}
    broken = table_of(
        faulty,
        Column("", lambda row: names[str(row["what"])].format(hit=row["hit"])),
        Column("workers lost", itemgetter("lost"), ".0f"),
        Column("seconds", itemgetter("seconds"), ".1f"),
        Column("weights", lambda row: "same bytes" if {row["digest"]} == same else "**other bytes**"),
    )
    model = fitted(results.where(kind="links"))
    lines: list[Column[Paper]] = [
        Column("tokens", lambda one: f"{one.tokens:.0e}".replace("e+", "e")),
        Column("precision", lambda one: f"`{one.wire}`"),
        Column("computing, s", lambda one: one.compute, ",.1f"),
        Column("the trainer's link, s", lambda one: one.link, ",.1f"),
        Column("the trainer itself, s", lambda one: one.trainer, ",.1f"),
        Column("a pass, s", lambda one: one.total, ",.0f"),
        Column("GB per pass", lambda one: one.n_bytes / 1e9, ",.1f"),
        Column("L-BFGS, hours", lambda one: one.total * _rounds(results, 1) / 3600.0, ".1f"),
    ]
    paper = table_of(on_paper(results), *lines)
    begun = table_of(
        results.where(kind="starts"),
        Column(
            "", lambda row: "zero weights" if row["parts"] == 1 else f"average of {row['parts']:.0f} parts"
        ),
        Column("gap of the start", itemgetter("start_gap"), ".2f", none=""),
        Column("passes to 1e-3", itemgetter("rounds"), ".0f"),
    )
    formula = (
        f"fixed = {model.fixed * 1e3:.1f} ms and {model.per_byte * 1e9:.2f} ns per byte; half of the "
        f"measurements are within {model.error:.0%} of it.\n"
    )
    return {"passes": passes_, "faults": broken, "model": formula, "paper": paper, "starts": begun}


def _rounds(results: Results, parts: int) -> float:
    return float(next(row["rounds"] for row in results.where(kind="starts") if row["parts"] == parts))


def checks(results: Results) -> list[Check]:
    made = []
    for name in dict.fromkeys(row["problem"] for row in results.where(kind="passes")):
        rows = results.where(kind="passes", problem=name)
        text = f"{TITLES[name]}: the same bytes for {len(rows)} numbers of processes."
        made.append(Check(f"bytes.{name}", text, len({row["digest"] for row in rows}) == 1))
        most = max(row["difference"] for row in rows)
        text = f"{TITLES[name]}: F differs from that of the CPU engine by at most {most:.0e} (relative)."
        made.append(Check(f"objective.{name}", text, most <= 1e-12))
        text = f"{TITLES[name]}: less travels than all weights to and from every process."
        made.append(Check(f"traffic.{name}", text, all(row["bytes"] <= row["all_bytes"] for row in rows)))
    faulty = results.where(kind="faults")
    text = (
        f"{sum(row['hit'] or 0 for row in faulty if row['what'] == 'kills'):.0f} kills at random moments and "
    )
    text += "a frozen process change no byte."
    made.append(Check("faults", text, len({row["digest"] for row in faulty}) == 1))
    return made
