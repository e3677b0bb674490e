"""The group about clusters: its model of the cost, its tables and checks."""

import asyncio
import time

import numpy as np
import pytest
from made_results import checks, lines_of, results_of

from bench.speed import cluster


def link(bandwidth, delay, n_bytes, busy=0.1, fixed=0.004, per_byte=2e-9):
    rate = bandwidth * 1e6 / 8
    seconds = busy + fixed + per_byte * n_bytes + (n_bytes / rate if rate else 0.0) + 2 * delay
    return {"kind": "links", "bandwidth": bandwidth, "delay": delay, "bytes": n_bytes, "busy": busy,
            "seconds": seconds}  # fmt: skip


def made(digest="a", difference=1e-16, broken="x"):
    passes = [
        {
            "kind": "passes", "problem": "amalgum-observed", "workers": n,
            "seconds": 0.6, "plain_seconds": 0.5,
            "bytes": 16.0 * n * 3e6 * n**-0.5, "all_bytes": 16 * n * 3e6, "difference": difference,
            "digest": digest if n == 4 else "a", "n_tokens": 4e6,
        }
        for n in (1, 2, 4)
    ]  # fmt: skip
    faults = [
        {"kind": "faults", "what": what, "digest": broken if what == "kills" else "x", "seconds": 3.0,
         "lost": lost, "hit": lost}
        for what, lost in (("here", 0), ("nothing", 0), ("kills", 10), ("freeze", 1))
    ]  # fmt: skip
    links = [link(b, d, n) for b in (0.0, 1000.0, 200.0) for d in (0.0, 0.05) for n in (0.0, 1e7)]
    starts = [
        {"kind": "starts", "parts": n, "start_gap": None if n == 1 else 0.5, "rounds": rounds}
        for n, rounds in ((1, 120.0), (4, 40.0))
    ]
    return results_of(passes, faults, links, starts)


def test_the_model_is_recovered_from_measurements_that_follow_it():
    model = cluster.fitted(made().where(kind="links"))
    assert (model.fixed, model.per_byte) == pytest.approx((0.004, 2e-9))
    assert model.error < 1e-9


def test_on_paper_weights_grow_as_a_power_of_the_tokens():
    first, _, last, _ = cluster.on_paper(made())
    assert (first.tokens, last.tokens) == (10**9, 10**11)
    assert last.n_bytes / first.n_bytes == pytest.approx(10.0)  # the square root of 100
    assert first.compute == pytest.approx(1e7 / (16 * 4e6))
    assert first.n_bytes == pytest.approx(100 * 16 * 3e6 * (1e7 / 4e6) ** 0.5)


def test_tables():
    found = cluster.tables(made())
    assert [row[:2] for row in lines_of(found["passes"])] == [["AMALGUM", n] for n in "124"]
    faults = {row[0]: row[1:] for row in lines_of(found["faults"])}
    assert faults["3 processes, 10 killed at random moments"] == ["10", "3.0", "same bytes"]
    assert found["model"].startswith("fixed = 4.0 ms and 2.00 ns per byte")
    assert lines_of(found["starts"])[1] == ["average of 4 parts", "0.50", "40"]


@pytest.mark.parametrize(
    ("results", "failed"),
    [
        (made(), set()),
        (made(digest="b"), {"bytes.amalgum-observed"}),
        (made(difference=1e-9), {"objective.amalgum-observed"}),
        (made(broken="y"), {"faults"}),
    ],
)
def test_checks(results, failed):
    assert {name for name, one in checks(cluster, results).items() if not one.holds} == failed


def test_a_throttled_transport_takes_its_time():
    async def own(*_):
        return [np.zeros(1000)]

    call = cluster.throttled(own, 1e6, 0.01)
    begin = time.perf_counter()
    asyncio.run(call("worker", "compute", (np.zeros(1000),)))
    assert time.perf_counter() - begin >= 2 * (8e-3 + 0.01)
