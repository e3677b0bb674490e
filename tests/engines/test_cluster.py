"""Training on processes of Dask: the same bytes, whoever computes, dies, freezes or joins."""

import asyncio
import gc
import os
import signal
import socket
import sys
import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest

import crfit
from crfit import Dataset, make_objective
from crfit.data import indexing
from crfit.data.indexing import index_files
from crfit.data.shards import Shards
from crfit.demo import recipe_data
from crfit.engines.cluster.holder import Node, union_of
from crfit.engines.cluster.runner import Cluster, ClusterRunner, nodes_of, spread
from crfit.engines.objective import Curvature
from crfit.errors import ClusterError, DataError, OptionError
from text_helpers import random_columns, write_columns

distributed = pytest.importorskip("distributed", reason="Dask is not installed")
dask = pytest.importorskip("dask")
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore:all workers of the cluster are lost"),
]


@pytest.fixture(scope="module")
def data():
    X, y = recipe_data(120, seed=0)
    return Dataset.from_sequences(X, y)


@pytest.fixture(scope="module")
def local():
    # By default Dask gives up workers that are killed twice within 15 s.
    with (
        dask.config.set({"distributed.deploy.lost-worker-timeout": "10m"}),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, memory_limit=0, dashboard_address=None, silence_logs=50
        ) as processes,
    ):
        yield processes


@pytest.fixture
def cluster(local):
    """Two workers, whatever happened to those of the last test."""
    with distributed.Client(local, set_as_default=False) as client:
        client.wait_for_workers(2, timeout=30)
        yield Cluster(client, patience=1.5, wait=180)  # a busy machine is no frozen worker


def pids(cluster) -> dict[str, int]:
    return cluster.client.run(os.getpid)


def results(objective) -> list[bytes]:
    """Bytes of everything that batch trainers ask for."""
    w, v, d = np.random.default_rng(0).normal(size=(3, objective.n_weights)) / 3.0
    value, gradient = objective.value_and_grad(w)
    line = objective.along(d)
    numbers = [value, objective.value(v), *line(0.5), *objective.along(v)(0.1), *line(0.2)]
    subset = objective.value_and_grad(w, subset=[0, 50, 119])
    arrays = [gradient, objective.hvp(v), objective.hessian_diagonal(), objective.expectations(w), subset[1]]
    arrays += [objective.observed(), objective.observed([3, 80]), objective.feature_totals()]
    return [np.array([*numbers, subset[0]]).tobytes(), *(array.tobytes() for array in arrays)]


@pytest.mark.parametrize("options", [{}, {"weights": "all", "order": 2, "boundary": True}])
def test_a_cluster_gives_the_bytes_of_this_process(data, cluster, options):
    shards = Shards.of(data, 5)
    objective = make_objective(shards, device="cluster", client=cluster, **options)
    assert results(objective) == results(make_objective(shards, **options))
    assert [report.shards for report in objective.workers] in ([2, 3], [3, 2])
    whole = make_objective(shards, objective.layout, device="cluster", client=cluster)
    assert results(whole) == results(objective)


def test_a_folder_is_read_by_the_workers(cluster, tmp_path, monkeypatch):
    monkeypatch.setattr(indexing, "BLOCK_BYTES", 300)
    (tmp_path / "train.txt").write_text(write_columns(random_columns(60, 1, n_words=60)))
    shards = index_files([tmp_path / "train.txt"], tmp_path / "data", shard_bytes=9000)
    assert shards.n_shards > 2
    objective = make_objective(shards, device="cluster", client=cluster)
    w = np.linspace(-0.1, 0.1, objective.n_weights)
    assert objective.value(w) == make_objective(shards).value(w)
    (tmp_path / "data").rename(tmp_path / "elsewhere")
    with pytest.raises(DataError, match="crfit index"):
        make_objective(shards, device="cluster", client=cluster)


@pytest.mark.parametrize("trainer", ["lbfgs", "newton_cg"])
def test_workers_killed_in_the_middle_change_no_byte(data, cluster, trainer):
    stop = crfit.Stop(max_iter=12)
    expected = crfit.train(make_objective(Shards.of(data, 8)), trainer, stop=stop)
    objective = make_objective(data, device="cluster", client=cluster)
    runner, asked, killed = objective.runner, 0, []
    ask = runner._ask

    def ask_and_kill(calls):
        nonlocal asked
        asked += 1
        if asked in (4, 11):  # the second time it may be the only one
            victim = sorted(runner._workers)[-1]
            pid = pids(cluster)[victim]
            killed.append(threading.Timer(0.002, os.kill, (pid, signal.SIGKILL)))
            killed[-1].start()
        return ask(calls)

    runner._ask = ask_and_kill
    result = crfit.train(objective, trainer, stop=stop)
    assert result.weights.tobytes() == expected.weights.tobytes()
    assert len(killed) == 2
    for timer in killed:
        timer.join()
    assert objective.value(result.weights) == make_objective(Shards.of(data, 8)).value(result.weights)
    assert sum(report.lost for report in runner.reports()) == 2


def test_workers_killed_between_two_evaluations_are_noticed_soon(data):
    with Cluster("local[2]") as own:
        objective = make_objective(data, device="cluster", client=own)
        w = np.linspace(-0.1, 0.1, objective.n_weights)
        expected = objective.value(w)
        for pid in pids(own).values():
            os.kill(pid, signal.SIGKILL)
        time.sleep(0.3)  # until the connections are closed here
        objective.runner._looked = begin = time.monotonic()  # the list of workers is not read again before
        assert objective.value(w) == expected
        assert time.monotonic() - begin < 28  # Dask tries to connect for 30 s
        assert [report.lost for report in objective.workers].count(True) == 2


def test_a_run_without_workers_says_so_before_it_waits(data, cluster):
    objective = make_objective(data, device="cluster", client=cluster)
    for name in list(objective.runner._workers):
        objective.runner._give_up(name)
    cluster.wait = 0.2
    lost = pytest.warns(crfit.errors.CrfitWarning, match=r"all workers .* are lost: waiting 0.2 s for others")
    with lost, pytest.raises(ClusterError, match=r"none came in 0.2 s"):
        objective.value(np.zeros(objective.n_weights))


def test_processes_that_do_not_start_again_are_not_waited_for(data):
    with Cluster("local[1]") as own:
        objective = make_objective(data, device="cluster", client=own)
        own._local.scale(0)  # as Dask does with workers that ended twice
        begin = time.monotonic()
        while own.n_workers:
            assert time.monotonic() - begin < 30
            time.sleep(0.01)
        objective.runner._looked = 0.0
        with pytest.raises(ClusterError, match="all processes of the cluster have ended: resume the run"):
            objective.value(np.zeros(objective.n_weights))
        assert time.monotonic() - begin < 30


def test_a_frozen_worker_is_given_up(data, cluster):
    objective = make_objective(data, device="cluster", client=cluster)
    expected = results(objective)
    victim = max(pids(cluster).items())
    os.kill(victim[1], signal.SIGSTOP)
    try:
        assert results(objective) == expected
        assert [report.lost for report in objective.workers] == [False, True]
    finally:
        os.kill(victim[1], signal.SIGCONT)
        os.kill(victim[1], signal.SIGKILL)  # another one takes its place


def test_a_worker_that_joins_gets_shards(data, cluster, local, monkeypatch):
    monkeypatch.setattr("crfit.engines.cluster.runner.LOOK_EVERY", 0.0)
    objective = make_objective(data, device="cluster", client=cluster)
    objective.keep_curvature(Curvature())
    expected = results(objective)
    w, v, _ = np.random.default_rng(0).normal(size=(3, objective.n_weights)) / 3.0
    objective.value_and_grad(w)
    product = objective.hvp(v)
    local.scale(3)
    cluster.client.wait_for_workers(3, timeout=30)
    assert objective.hvp(v).tobytes() == product.tobytes()  # at the point of a gradient before it joined
    shares = [report.shards for report in objective.workers]
    assert (len(shares), sum(shares)) == (3, 8)
    assert min(shares) >= 2
    assert results(objective) == expected
    local.scale(2)


def test_only_weights_that_a_shard_uses_travel(data, cluster):
    shards = Shards.of(data, 4)
    objective = make_objective(shards, device="cluster", client=cluster)
    w = np.zeros(objective.n_weights)
    objective.value_and_grad(w)
    places = [part.places for part in objective.runner._parts]
    used = 8 * sum(len(union_of(places[first : first + 2])) for first in (0, 2))
    reports = objective.workers
    assert sum(report.sent for report in reports) == used < 8 * 2 * objective.n_weights
    assert sum(report.received for report in reports) == used
    objective.hvp(w)  # the point is there
    assert sum(report.sent for report in objective.workers) == 2 * used
    line = objective.along(w)
    line(1.0)
    line(2.0)  # the direction is there
    assert sum(report.sent for report in objective.workers) == 3 * used


def test_single_precision_on_the_wire_is_close_and_the_same_for_every_placement(data, cluster):
    objectives = [
        make_objective(data, device="cluster", client=Cluster(cluster.client, wire="float32"))
        for _ in range(2)
    ]
    one, other = sorted(pids(cluster))
    uneven = {one: [0, 3, 4], other: [i for i in range(8) if i not in (0, 3, 4)]}
    objectives[1].runner._load(uneven)
    first, second = (results(one) for one in objectives)
    assert first == second
    w = np.random.default_rng(0).normal(size=objectives[0].n_weights) / 3.0
    value, gradient = objectives[0].value_and_grad(w)
    exact, exact_gradient = make_objective(data).value_and_grad(w)
    assert value == pytest.approx(exact, rel=1e-6)
    np.testing.assert_allclose(gradient, exact_gradient, rtol=1e-5, atol=1e-4)
    assert not np.array_equal(gradient, exact_gradient)


def test_another_version_of_crfit_is_refused(data, cluster):
    name = min(pids(cluster))

    def pretend(version):
        import crfit

        crfit.__version__ = version

    cluster.client.run(pretend, "0.0.1", workers=[name])
    try:
        with pytest.raises(
            ClusterError, match=rf"worker {name} has crfit 0.0.1, this process {crfit.__version__}"
        ):
            make_objective(data, device="cluster", client=cluster)
    finally:
        cluster.client.run(pretend, crfit.__version__, workers=[name])


def test_other_instructions_are_refused_because_they_round_differently(data, cluster, monkeypatch):
    monkeypatch.setattr("crfit.engines.cluster.runner.cpu_level", lambda: "v1")
    with pytest.raises(ClusterError, match="CRFIT_CPU_LEVEL=v1 here and on all workers"):
        make_objective(data, device="cluster", client=cluster)


def test_an_error_of_a_worker_is_raised_here(cluster):
    broken = Dataset.from_sequences([[{"a": -1.0}], [["b"]]], [["X"], ["Y"]])
    objective = make_objective(broken, device="cluster", client=cluster)
    with pytest.raises(DataError, match="negative"):
        objective.feature_totals()


def test_without_workers():
    with (
        distributed.LocalCluster(n_workers=0, dashboard_address=None, silence_logs=50) as empty,
        distributed.Client(empty, set_as_default=False) as client,
        pytest.raises(ClusterError, match=r"none came in 0.2 s"),
    ):
        make_objective(
            Dataset.from_sequences([[["a"]]], [["A"]]), device="cluster", client=Cluster(client, wait=0.2)
        )


def test_a_scheduler_that_is_not_there():
    begin = time.monotonic()
    with pytest.raises(OptionError, match=r"cluster='tcp://127.0.0.1:9': no scheduler answers"):
        Cluster("tcp://127.0.0.1:9", wait=0.5)
    assert time.monotonic() - begin < 20


def test_a_web_server_is_no_scheduler():
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer():
            connection, _ = server.accept()
            connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        threading.Thread(target=answer, daemon=True).start()
        with pytest.raises(OptionError, match=r"no scheduler answers there \(another program does\): give"):
            Cluster(f"tcp://127.0.0.1:{server.getsockname()[1]}", wait=5)


@pytest.mark.parametrize("address", ["local", "10.0.0.1", "tcp://", "tcp://a:b", "http://localhost:80", ""])
def test_an_address_that_cannot_be_read(address, monkeypatch):
    # A client with such an address waits a minute when the program ends, and prints a traceback.
    monkeypatch.setattr(distributed, "Client", lambda *given, **options: pytest.fail("a client was made"))
    with pytest.raises(OptionError, match=r"no scheduler answers there .*: give tcp://HOST:PORT"):
        Cluster(address)


@pytest.mark.skipif(sys.platform == "win32", reason="os.kill ends the process there")
def test_an_interrupt_waits_for_processes_that_start(monkeypatch):
    closed = []

    class Starting:
        def __init__(self, **options):
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.1)
            self.close = lambda: closed.append(True)

    monkeypatch.setattr(distributed, "LocalCluster", Starting)
    with pytest.raises(KeyboardInterrupt):
        Cluster("local[1]")
    assert closed == [True]


def test_a_call_that_was_cancelled_leaves_no_error_behind():
    unhandled = []

    async def scenario():
        async def ask(**given):
            await lost.wait()
            raise OSError

        lost = asyncio.Event()
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: unhandled.append(context))
        runner = object.__new__(ClusterRunner)
        client = SimpleNamespace(rpc=lambda name: SimpleNamespace(actor_execute=ask))
        runner.cluster = SimpleNamespace(client=client, patience=30.0)
        runner._workers = {"a": SimpleNamespace(future=SimpleNamespace(key="k"))}
        call = asyncio.ensure_future(runner._call("a", "about", ()))
        await asyncio.sleep(0)
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
        lost.set()
        await asyncio.sleep(0.01)
        del call
        gc.collect()

    asyncio.run(scenario())
    assert unhandled == []


@pytest.mark.parametrize(("options", "message"), [
    ({"wire": "float16"}, "wire='float16': choose"),
    ({"patience": -1}, "patience=-1"),
    ({"client": "local[no]"}, "as in local"),
])  # fmt: skip
def test_options(options, message):
    with pytest.raises(OptionError, match=message):
        Cluster(**({"client": object()} | options))


def test_the_client_is_needed_and_only_for_a_cluster(data):
    with pytest.raises(OptionError, match="client=None"):
        make_objective(data, device="cluster")
    with pytest.raises(OptionError, match="device='cluster'"):
        make_objective(data, client="local[2]")


def test_without_dask(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ClusterError, match=r"pip install \"crfit\[dask\]\""):
        Cluster("local[2]")


def test_nodes_are_the_largest_that_fit():
    assert nodes_of(range(16)) == [Node(0, 16)]
    assert nodes_of([1, 2, 3, 4, 5, 6, 7, 8]) == [Node(1, 1), Node(2, 2), Node(4, 4), Node(8, 1)]
    assert nodes_of([6, 7, 4]) == [Node(4, 1), Node(6, 2)]
    assert nodes_of([]) == []


def test_shards_are_spread_by_positions_and_threads():
    assert spread(range(4), [10] * 4, {"a": 1, "b": 1}) == {"a": [0, 1], "b": [2, 3]}
    assert spread(range(4), [10] * 4, {"a": 3, "b": 1}) == {"a": [0, 1, 2], "b": [3]}
    assert spread([0, 2, 3], [30, 1, 10, 20], {"a": 1, "b": 1}) == {"a": [0], "b": [2, 3]}
