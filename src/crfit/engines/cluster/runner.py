"""The trainer's side of a cluster: who holds which shard, and what happens when a worker is lost.

Each worker holds runs of consecutive shards. For every evaluation it gets the weights that its shards use and
gives back sums over nodes of the tree (`crfit.engines.sharded.TreeSum`), which are added here: the result has
the same bytes for any number of workers and any placement.

A worker is lost when its connection breaks, or when it does not answer a ping within `patience` seconds while
a request waits for it, as a frozen process. Its shards are loaded by the others, and only what is missing is
computed again. A worker that joins gets shards at the next evaluation. Dask starts processes, connects them,
restarts those that died and shows them on its dashboard.
"""

from __future__ import annotations

import asyncio
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

import crfit
from crfit.checks import check_number
from crfit.data.shards import FolderShards, Shard, Shards
from crfit.engines.cluster.holder import Answer, Holder, Joined, Node, Request, union_of
from crfit.engines.objective import Curvature
from crfit.engines.profile import Phases
from crfit.engines.sharded import (
    PINNED,
    Facts,
    Part,
    Runner,
    TermOptions,
    TreeSum,
    WorkerReport,
    for_each,
)
from crfit.errors import ClusterError, CrfitError, CrfitWarning, OptionError
from crfit.layout import Layout
from crfit.layout.sharded import ShardLayout, joined_layout, shard_layout
from crfit.threads import cpu_level
from crfit.training.interrupts import InterruptGuard
from crfit.vectors import Vector

if TYPE_CHECKING:
    import distributed
    from distributed import Client

#: Seconds between looks for workers that have joined.
LOOK_EVERY = 2.0
#: Processes that are started here, at most.
MAX_LOCAL = 256
#: Run by them: Ctrl-C goes to all of them, and it is for the trainer to stop.
IGNORE_INTERRUPTS = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)"


class _LostError(Exception):
    """The worker does not answer."""


@dataclass
class _Worker:
    address: str
    n_threads: int
    future: distributed.Future  # of its Holder, which lives as long as this
    shards: set[int] = field(default_factory=set)
    known: dict[tuple[str, Node], int] = field(default_factory=dict)  # numbers of the vectors it has
    curvature: int = 0  # number of what it caches
    seconds: float = 0.0
    sent: int = 0
    received: int = 0
    lost: bool = False


class Cluster:
    """A connection to a Dask cluster, for ``crfit.make_objective(..., device="cluster", client=)``.

    Parameters
    ----------
    client : distributed.Client, str
        A client, the address of a scheduler such as ``"tcp://10.0.0.1:8786"``, or ``"local[4]"`` for four
        processes on this machine.
    wire : {"float64", "float32"}, default="float64"
        Precision of the vectors that travel. Single precision halves the traffic; the objective is then
        exact to about seven digits, enough for the default stopping rules.
    patience : float, default=30.0
        Seconds after which a worker that neither answers nor reacts to a ping is given up.
    wait : float, default=120.0
        Seconds to wait for a worker at the start, or when all were lost.
    """

    def __init__(
        self,
        client: Client | str,
        *,
        wire: Literal["float64", "float32"] = "float64",
        patience: float = 30.0,
        wait: float = 120.0,
    ) -> None:
        if wire not in ("float64", "float32"):
            raise OptionError("wire", wire, "choose 'float64' or 'float32'")
        for name, value in (("patience", patience), ("wait", wait)):
            check_number(name, value, at_least=0)
        self.wire, self.patience, self.wait = wire, float(patience), float(wait)
        self._local: Any = None
        self._own = isinstance(client, str)
        self.client = self._connected(client) if isinstance(client, str) else client

    @property
    def n_workers(self) -> int:
        """Number of workers at the moment."""
        return len(self._threads())

    @property
    def dashboard(self) -> str | None:
        """Address of Dask's dashboard; None without one."""
        link: str | None = self.client.dashboard_link
        return link if self.client.scheduler_info()["services"].get("dashboard") else None

    def _threads(self) -> dict[str, int]:
        """Number of threads of each worker, by address."""
        found: dict[str, int] = self._run(self.client.scheduler.ncores)
        return found

    def _run(self, work: Any, *arguments: Any) -> Any:
        """Run a coroutine where the client runs; ClusterError if the scheduler is gone."""
        try:
            return self.client.sync(work, *arguments)
        except (OSError, RuntimeError) as error:
            raise ClusterError(
                f"the scheduler of the cluster is gone ({error}): start the cluster again and resume the run "
                "from a checkpoint"
            ) from error

    def close(self) -> None:
        """Disconnect, and end processes that were started on this machine."""
        if self._own:
            self.client.close()
        if self._local is not None:
            self._local.close()

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _connected(self, address: str) -> Client:
        distributed = _imported()
        if address.startswith("local[") and address.endswith("]"):
            n, each = _local_size(address)
            with InterruptGuard() as guard:  # Dask cannot close processes that are still starting
                self._local = distributed.LocalCluster(
                    n_workers=n,
                    threads_per_worker=each,
                    memory_limit=0,  # terms cannot be moved to disk, so pausing at a limit is no help
                    dashboard_address=":0",
                    silence_logs=50,
                    preload=[IGNORE_INTERRUPTS],
                )
            if guard.interrupted:
                self._local.close()
                raise KeyboardInterrupt
            return distributed.Client(self._local, set_as_default=False)
        try:
            _check_address(distributed.comm, address)
            timeout = min(self.wait, 30.0)
            return _in_thread(partial(distributed.Client, address, set_as_default=False, timeout=timeout))
        except (OSError, ValueError, TimeoutError, MemoryError) as error:
            # Dask takes the answer of another program, as that of a web server, for a huge size.
            reason = "another program does" if isinstance(error, MemoryError) else error
            remedy = f"no scheduler answers there ({reason}): give tcp://HOST:PORT or local[N]"
            raise OptionError("cluster", address, remedy) from None


def _imported() -> Any:
    try:
        import distributed
    except ImportError:
        raise ClusterError('a cluster needs Dask: pip install "crfit[dask]"') from None
    return distributed


def _in_thread(work: Callable[[], Any]) -> Any:
    """What a function returns. Ctrl-C does not wait for it: a client that Dask ends itself takes a minute."""
    done: Future[Any] = Future()

    def run() -> None:
        try:
            done.set_result(work())
        except BaseException as error:
            done.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    while not done.done():
        time.sleep(0.01)
    return done.result()


def _check_address(comm: Any, address: str) -> None:
    """Raise ValueError unless Dask can read the address; its client would then wait a minute to close."""
    scheme, place = comm.parse_address(address)
    comm.registry.get_backend(scheme)
    if scheme in ("tcp", "tls"):
        comm.parse_host_port(place)


def _local_size(text: str) -> tuple[int, int]:
    from crfit.threads import resolve_threads

    number = text[len("local[") : -1]
    if not number.isdigit() or not 1 <= int(number) <= MAX_LOCAL:
        raise OptionError(
            "cluster", text, f"give the number of processes, at most {MAX_LOCAL}, as in local[4]"
        )
    return int(number), max(1, resolve_threads(None) // int(number))


def nodes_of(shards: Iterable[int]) -> list[Node]:
    """The largest nodes of the tree whose shards are all among these."""
    there = set(shards)
    found: list[Node] = []
    for first in sorted(there):
        if found and first < found[-1].first + found[-1].size:
            continue
        size = 1
        while first % (2 * size) == 0 and there.issuperset(range(first + size, first + 2 * size)):
            size *= 2
        found.append(Node(first, size))
    return found


def spread(shards: Sequence[int], tokens: Sequence[int], threads: Mapping[str, int]) -> dict[str, list[int]]:
    """Runs of shards for each worker, their positions in proportion to its threads."""
    ends = np.cumsum([threads[name] for name in threads]) / sum(threads.values())
    done = np.cumsum([tokens[i] for i in shards], dtype=np.float64)
    middles = (done - [tokens[i] / 2 for i in shards]) / done[-1]
    of = np.minimum(np.searchsorted(ends, middles), len(ends) - 1)
    return {name: [i for i, k in zip(shards, of, strict=True) if k == n] for n, name in enumerate(threads)}


class ClusterRunner(Runner):
    """Computes on the workers of a Dask cluster."""

    def __init__(
        self, shards: Shards, cluster: Cluster, layout: Layout | None, how: TermOptions, **features: Any
    ) -> None:
        self.cluster, self.how = cluster, how
        self._shards, self._tokens = shards, [size[1] for size in shards.sizes]
        self._workers: dict[str, _Worker] = {}
        self._lost: list[_Worker] = []
        self._banned: set[str] = set()
        self._curvature: Curvature | None = None
        self._n_curvatures = 0
        self._looked = 0.0
        self._unions: dict[Node, NDArray[np.int64]] = {}
        self.phases = Phases()
        self._parts: list[ShardLayout] = []
        self._welcome(wait=True)
        options = {k: v for k, v in features.items() if k in ("weights", "transitions", "order")}
        joined = self._look(options if layout is None else None)
        every = [joined[i] for i in range(shards.n_shards)]
        if layout is None:
            layout = joined_layout(shards, (one.seen for one in every if one.seen is not None), **features)
        self.layout = layout
        self._parts = [shard_layout(layout, one.attributes, one.edges) for one in every]
        self._found: dict[int, Facts] = {}
        self._assign()
        self.facts = [self._found[i] for i in range(shards.n_shards)]

    # What the objective calls.

    def sum(
        self, call: str, *arguments: Vector | float, own: Sequence[tuple[Any, ...]] | None = None
    ) -> tuple[list[float], Vector | None]:
        """The sums of a call of `Term` over all shards."""
        self._welcome()
        self._assign()
        parts: dict[Node, tuple[list[float], NDArray[Any] | None]] = {}
        slowest = Phases()
        while missing := self._missing(parts):
            requests = {}
            for name, worker in self._workers.items():
                if nodes := nodes_of(worker.shards & missing):
                    requests[name] = self._request(worker, call, nodes, arguments, own)
            answers = self._ask({name: ("compute", (one,)) for name, one in requests.items()})
            for name, answer in answers.items():
                assert isinstance(answer, Answer)
                worker, request = self._workers[name], requests[name]
                parts.update(zip(request.nodes, answer.parts, strict=True))
                self._learn(worker, request, answer)
                if answer.phases.total > slowest.total:
                    slowest = answer.phases
            if self._missing(parts):
                self._assign()
        self.phases += slowest
        total = TreeSum(self.layout.n_weights, self.cluster.wire)
        for node in sorted(parts):
            numbers, vector = parts[node]
            total.add(Part(tuple(numbers), vector), self._union(node), node.size)
        numbers, vector = total.result()
        return numbers, None if vector is None else vector.astype(np.float64, copy=False)

    def each(self, call: str) -> list[Any]:
        """What a call of `Term` returns for each shard."""
        found: dict[int, Any] = {}
        everything = set(range(self._shards.n_shards))
        while missing := everything - found.keys():
            self._assign()
            asked = {name: sorted(worker.shards & missing) for name, worker in self._workers.items()}
            answers = self._ask({name: ("each", (call, ids)) for name, ids in asked.items() if ids})
            for answer in answers.values():
                found |= answer
        return [found[i] for i in sorted(found)]

    def keep_curvature(self, curvature: Curvature | None) -> None:
        """Choose what later gradients cache."""
        # Sent with the next request: a trainer may be closed when there is no cluster any more.
        self._curvature = for_each(curvature, self._shards.n_shards)
        self._n_curvatures += 1

    def close(self) -> None:
        """Let the workers forget the data."""
        for worker in self._workers.values():
            worker.future.release()
        self._workers.clear()

    def reports(self) -> list[WorkerReport]:
        """What each worker has done so far, the lost ones last."""
        return [
            WorkerReport(one.address, len(one.shards), one.seconds, one.sent, one.received, one.lost)
            for one in [*self._workers.values(), *self._lost]
        ]

    # Requests.

    def _missing(self, parts: Iterable[Node]) -> set[int]:
        return set(range(self._shards.n_shards)).difference(*(node.shards for node in parts))

    def _union(self, node: Node) -> NDArray[np.int64]:
        if node not in self._unions:
            self._unions[node] = union_of([self._parts[i].places for i in node.shards])
        return self._unions[node]

    def _request(
        self,
        worker: _Worker,
        call: str,
        nodes: list[Node],
        arguments: Sequence[Vector | float],
        own: Sequence[tuple[Any, ...]] | None,
    ) -> Request:
        """The call for the nodes of a worker, with the weights that they use."""

        def of_nodes(whole: Vector) -> list[NDArray[Any]]:
            return [whole[self._union(node)].astype(self.cluster.wire, copy=False) for node in nodes]

        kept = {}
        wanted = {"point": self.at.point} if call in PINNED else {}
        if call == "along":
            wanted["direction"] = self.at.line
        for name, number in wanted.items():
            if any(worker.known.get((name, node)) != number for node in nodes):
                whole: Vector = getattr(self, name)
                kept[name] = of_nodes(whole)
        further = None if own is None else {i: own[i] for node in nodes for i in node.shards}
        split = [of_nodes(one) if isinstance(one, np.ndarray) else one for one in arguments]
        curvature = None if worker.curvature == self._n_curvatures else (self._curvature,)
        return Request(call, self.at, nodes, split, further, kept, curvature, self.cluster.wire)

    def _learn(self, worker: _Worker, request: Request, answer: Answer) -> None:
        """Set what the worker has now, and what it did."""
        if request.curvature is not None:
            worker.curvature = self._n_curvatures
        if request.call == "gradient":
            worker.known = {("point", node): request.at.point for node in request.nodes}
        numbers = {"point": request.at.point, "direction": request.at.line}
        worker.known |= {(name, node): numbers[name] for name in request.kept for node in request.nodes}
        there = [one for one in (*request.arguments, *request.kept.values()) if isinstance(one, list)]
        worker.seconds += answer.seconds
        worker.sent += sum(vector.nbytes for one in there for vector in one)
        worker.received += sum(0 if vector is None else vector.nbytes for _, vector in answer.parts)

    # Who holds which shard.

    def _look(self, options: dict[str, Any] | None) -> dict[int, Joined]:
        """Let the workers read the shards that they will get."""
        found: dict[int, Joined] = {}
        while missing := [i for i in range(self._shards.n_shards) if i not in found]:
            self._welcome(wait=not self._workers)
            plan = spread(missing, self._tokens, self._threads())
            asked = {name: ("look", (self._source(ids), ids, options)) for name, ids in plan.items() if ids}
            for answer in self._ask(asked).values():
                found |= answer
        return found

    def _assign(self) -> None:
        """Have every shard held by exactly one worker."""
        n_shards = self._shards.n_shards
        while True:
            if not self._workers:
                self._welcome(wait=True)
            held = {i for worker in self._workers.values() for i in worker.shards}
            free = [i for i in range(n_shards) if i not in held]
            idle = [name for name, worker in self._workers.items() if not worker.shards]
            if not free and not (idle and n_shards >= len(self._workers)):
                return
            if idle:  # at the start, and when workers join
                plan = spread(range(n_shards), self._tokens, self._threads())
                if not free and all(set(plan[name]) == w.shards for name, w in self._workers.items()):
                    return
            else:
                more = spread(free, self._tokens, self._threads())
                plan = {name: sorted({*ids, *self._workers[name].shards}) for name, ids in more.items()}
            self._load(plan)

    def _load(self, plan: Mapping[str, Sequence[int]]) -> None:
        """Load what is new to each worker, then drop what it does not hold any more."""
        asked = {}
        for name, ids in plan.items():
            new = [i for i in ids if i not in self._workers[name].shards]
            if new:
                parts = {i: self._parts[i] for i in new}
                asked[name] = ("load", (self._source(new), parts, self.how, self._curvature))
        answers = self._ask(asked)
        drops = {}
        for name, ids in plan.items():
            if name not in self._workers or (name in asked and name not in answers):
                continue
            worker = self._workers[name]
            if gone := sorted(worker.shards.difference(ids)):
                drops[name] = ("drop", (gone,))
            self._found |= answers.get(name, {})
            worker.shards = set(ids)
        self._ask(drops)

    def _source(self, ids: Iterable[int]) -> str | dict[int, Shard]:
        """Where workers read shards: a folder, or the shards themselves if they are only in this process."""
        if isinstance(self._shards, FolderShards):
            return str(self._shards.folder.resolve())
        return {i: self._shards.load(i) for i in ids}

    def _threads(self) -> dict[str, int]:
        return {name: worker.n_threads for name, worker in self._workers.items()}

    def _welcome(self, wait: bool = False) -> None:
        """Take in workers that have joined; with `wait`, until there is one. Raises `ClusterError`."""
        begin = time.monotonic()
        if not wait and begin - self._looked < LOOK_EVERY:
            return
        said = False
        while True:
            self._looked = time.monotonic()
            there = self.cluster._threads()
            for name in [name for name in self._workers if name not in there]:
                self._give_up(name)
            self._banned &= there.keys()  # another process may get the address of one that died
            new = {
                name: n for name, n in there.items() if name not in self._workers and name not in self._banned
            }
            self._start(dict(sorted(new.items())))
            if self._workers or not wait:
                return
            if self.cluster._local is not None and not self.cluster._local.workers:
                # Dask starts no process again that ended twice within some seconds.
                remedy = "resume the run from a checkpoint"
                raise ClusterError(f"all processes of the cluster have ended: {remedy}")
            if self._lost and not said:
                message = f"all workers of the cluster are lost: waiting {self.cluster.wait:g} s for others"
                warnings.warn(message, CrfitWarning, stacklevel=2)
                said = True
            if time.monotonic() - begin > self.cluster.wait:
                raise ClusterError(
                    f"no worker of the cluster answers, and none came in {self.cluster.wait:g} s: start some"
                )
            time.sleep(0.1)

    def _start(self, new: Mapping[str, int]) -> None:
        """Create a holder on new workers and check their versions."""
        client = self.cluster.client
        futures = {
            name: client.submit(Holder, n, workers=[name], allow_other_workers=False, actor=True, pure=False)
            for name, n in new.items()
        }
        if not futures:
            return
        there, looked = set(futures), time.monotonic()
        until = looked + max(self.cluster.patience, 10.0)
        while not all(futures[name].done() for name in there) and time.monotonic() < until:
            time.sleep(0.01)
            if time.monotonic() - looked > LOOK_EVERY:
                there, looked = futures.keys() & self.cluster._threads().keys(), time.monotonic()
        started = {}
        for name, future in futures.items():
            if future.status == "error":
                raise ClusterError(
                    f"worker {name} cannot start: {future.exception()}; install crfit "
                    f"{crfit.__version__} there"
                )
            if future.status == "finished":
                started[name] = _Worker(name, new[name], future)
            else:
                self._banned.add(name)
        self._workers |= started
        wanted = {"crfit": crfit.__version__, "kernels": cpu_level()}
        for name, about in self._ask(dict.fromkeys(started, ("about", ()))).items():
            for what, here in wanted.items():
                if about[what] != here:
                    self.close()
                    raise ClusterError(_different(name, what, about[what], here))

    def _give_up(self, name: str) -> None:
        worker = self._workers.pop(name)
        worker.lost, worker.shards = True, set()
        self._banned.add(name)
        self._lost.append(worker)
        worker.future.release()

    # Calls.

    def _ask(self, calls: Mapping[str, tuple[str, tuple[Any, ...]]]) -> dict[str, Any]:
        """Call a method of each holder; workers that do not answer are given up and missing in the result."""
        if not calls:
            return {}
        answers: dict[str, Any] = self.cluster._run(self._ask_all, calls)
        for name, answer in list(answers.items()):
            if isinstance(answer, _LostError):
                self._give_up(name)
                del answers[name]
            elif isinstance(answer, Exception):
                if isinstance(answer, CrfitError):
                    raise answer
                raise ClusterError(f"worker {name} failed: {type(answer).__name__}: {answer}") from answer
        return answers

    async def _ask_all(self, calls: Mapping[str, tuple[str, tuple[Any, ...]]]) -> dict[str, Any]:
        answers = await asyncio.gather(*(self._call(name, *call) for name, call in calls.items()))
        return dict(zip(calls, answers, strict=True))

    async def _call(self, name: str, method: str, arguments: tuple[Any, ...]) -> Any:
        """The answer of a holder, the error that it raised, or `_LostError`."""
        from distributed.protocol import to_serialize

        key, given = self._workers[name].future.key, [to_serialize(one) for one in arguments]
        asked = self.cluster.client.rpc(name).actor_execute(function=method, actor=key, args=given, kwargs={})
        task = asyncio.ensure_future(asked)
        # Its error is not asked for after Ctrl-C, and asyncio would print it.
        task.add_done_callback(lambda done: done.cancelled() or done.exception())
        pinged = time.monotonic()
        pause = max(min(self.cluster.patience, LOOK_EVERY), 0.05)
        try:
            while not (await asyncio.wait({task}, timeout=pause))[0]:
                late = time.monotonic() - pinged >= self.cluster.patience
                if not await self._listed(name) or (late and not await self._alive(name)):
                    task.cancel()
                    return _LostError()
                pinged = time.monotonic() if late else pinged
            answer = task.result()
        except (OSError, KeyError):  # the connection broke; or another process has the address now
            return _LostError()
        return answer["result"] if answer["status"] == "OK" else answer["exception"]

    async def _listed(self, name: str) -> bool:
        """Whether the scheduler has the worker: it knows of an end at once, Dask connects for 30 s."""
        try:
            return name in await asyncio.wait_for(self.cluster.client.scheduler.ncores(), LOOK_EVERY)
        except (OSError, asyncio.TimeoutError):
            return True  # `_welcome` sees whether there still is a scheduler

    async def _alive(self, name: str) -> bool:
        """Whether the process reacts, even if it is busy."""
        try:
            await asyncio.wait_for(self.cluster.client.rpc(name).identity(), max(self.cluster.patience, 0.05))
        except (OSError, asyncio.TimeoutError):
            return False
        return True


def _different(name: str, what: str, there: str, here: str) -> str:
    if what == "kernels":
        return (
            f"worker {name} computes with {there} instructions and this process with {here}, which round "
            f"differently: set CRFIT_CPU_LEVEL={min(there, here)} here and on all workers"
        )
    return f"worker {name} has crfit {there}, this process {here}: install the same version everywhere"
