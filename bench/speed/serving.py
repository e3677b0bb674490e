"""Answers one by one: recipe lines through a pipe, and over HTTP.

Pipe: a line goes to a process, one token a row, and the next one follows once its answer is there. ``crfit
tag`` makes attributes by its template, a Python loop with python-crfsuite by the usual function. Both take
turns. Service: ``crfit serve`` and clients in processes of their own on the same machine, over loopback; bad
requests; memory before and after many requests.
"""

import http.client
import json
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from itertools import cycle, islice
from multiprocessing import get_context
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np

import crfit
from bench.records import Check, NotAvailable, Results, Row, Task
from bench.setting import Setting
from bench.tables import Column, table_of
from bench.tools import tool
from crfit.data import text
from crfit.demo import attributes, recipe_lines

TITLE = "answers one by one through a pipe and over HTTP"
OURS, RIVAL = "crfit tag", "Python loop with python-crfsuite"
RIVAL_TOOL = "python_crfsuite"
SEED_TEST = 7
N_TRAIN, N_LINES = 2000, 2000
#: Lines and requests before anything is measured.
WARM = 200
#: Requests of one client between two looks at the clock.
CHUNK = 50

_LOOP = """
import sys
import pycrfsuite
from crfit.demo import attributes

tagger = pycrfsuite.Tagger()
tagger.open(sys.argv[1])
words = []
for line in sys.stdin.buffer:
    if word := line.decode().strip():
        words.append(word)
        continue
    labels = tagger.tag(attributes(words))
    answer = "".join(f"{word}\\t{label}\\n" for word, label in zip(words, labels)) + "\\n"
    sys.stdout.buffer.write(answer.encode())
    sys.stdout.buffer.flush()
    words = []
"""


def tasks(quick: bool) -> list[Task]:
    def made(name: str, needs: str = "", **facts: object) -> Task:
        return Task(name, "recipes-few", {"what": name, **facts}, 900.0, needs=needs)

    return [
        made("pipe", RIVAL_TOOL, rounds=2 if quick else 10),
        made("load", seconds=1.0 if quick else 15.0),
        made("bad", n=100 if quick else 1000),
        made("memory", n=2000 if quick else 100_000),
    ]


def measure(task: Task, setting: Setting) -> Iterator[Row]:
    measured = {"pipe": _pipe, "load": _load, "bad": _bad, "memory": _memory}[task.settings["what"]]
    with tempfile.TemporaryDirectory() as folder:
        yield from measured(task, Path(folder))


def _model(folder: Path) -> Path:
    """A model of columns with the words only, by the default template: it takes text."""
    rows = "".join("".join(f"{w} {y}\n" for w, y in line) + "\n" for line in recipe_lines(N_TRAIN))
    source = text.Input("recipes", rows.encode())
    template = text.column_template([source])
    objective = crfit.make_objective(text.read(source, template=template), l2=0.5)
    model = crfit.Model.from_training(objective, crfit.train(objective, "lbfgs"), template=template)
    model.save(folder / "m.crfit")
    return folder / "m.crfit"


def _words() -> list[list[str]]:
    return [[word for word, _ in line] for line in recipe_lines(N_LINES, seed=SEED_TEST)]


def _quantiles(seconds: list[float]) -> Row:
    median, high = np.quantile(seconds, [0.5, 0.99]).tolist()
    return {"median": median, "p99": high, "n": len(seconds)}


# --- through a pipe ----------------------------------------------------------------------------------------


def _pipe(task: Task, folder: Path) -> Iterator[Row]:
    import pycrfsuite

    trainer = pycrfsuite.Trainer(algorithm="lbfgs", verbose=False)
    for line in recipe_lines(N_TRAIN):
        trainer.append(attributes([word for word, _ in line]), [label for _, label in line])
    trainer.set_params({"c1": 0.0, "c2": 0.25, "feature.possible_transitions": True})
    theirs = str(folder / "m.crfsuite")
    trainer.train(theirs)
    commands = {
        OURS: ["-m", "crfit", "tag", "-m", str(_model(folder))],
        RIVAL: ["-c", _LOOP, theirs],
    }
    texts = [("".join(f"{word}\n" for word in words) + "\n").encode() for words in _words()]
    for _ in range(task.settings["rounds"]):
        for name, arguments in commands.items():
            version = tool(RIVAL_TOOL).version() if name == RIVAL else crfit.__version__
            yield {"tool": name, "version": version, **_quantiles(_latencies(arguments, texts))}


def _latencies(arguments: list[str], texts: list[bytes]) -> list[float]:
    """Seconds from the start of each line to the end of its answer."""
    found = []
    with subprocess.Popen(
        [sys.executable, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for one in texts:
            begin = time.perf_counter()
            process.stdin.write(one)
            process.stdin.flush()
            while process.stdout.readline() != b"\n":
                if process.poll() is not None:
                    raise RuntimeError(f"{arguments[:3]} ended")
            found.append(time.perf_counter() - begin)
        process.stdin.close()
    return found[WARM:]


# --- over HTTP ---------------------------------------------------------------------------------------------


@contextmanager
def _served(folder: Path, *arguments: str) -> Iterator[int]:
    """The port of a service."""
    try:
        import prometheus_client  # noqa: F401
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        raise NotAvailable(f"no {error.name}: pip install 'crfit[serve]'") from None
    command = [sys.executable, "-m", "crfit", "serve", str(_model(folder)), "--port", "0", *arguments]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        line = process.stderr.readline()
        try:
            yield int(line.partition("http://127.0.0.1:")[2].partition("/")[0])
        finally:
            process.terminate()
            process.communicate(timeout=60)


def ask(port: int, n: int, seconds: float) -> tuple[list[float], int]:
    """Seconds of each request of one client, and how many failed; ends after `n` or `seconds`."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    found, failed, end = [], 0, time.perf_counter() + seconds
    bodies = [json.dumps({"text": " ".join(words)}) for words in _words()]
    requests = islice(cycle(bodies), n)
    while chunk := list(islice(requests, CHUNK)):
        for body in chunk:
            begin = time.perf_counter()
            connection.request("POST", "/tag", body)
            response = connection.getresponse()
            response.read()
            found.append(time.perf_counter() - begin)
            failed += response.status != 200
        if time.perf_counter() > end:
            break
    connection.close()
    return found, failed


def _load(task: Task, folder: Path) -> Iterator[Row]:
    seconds = task.settings["seconds"]
    with _served(folder) as port, ProcessPoolExecutor(8, mp_context=get_context("spawn")) as pool:
        list(pool.map(ask, [port] * 8, [WARM] * 8, [60.0] * 8))  # also starts the processes
        for n_clients in (1, 8):
            begin = time.perf_counter()
            parts = list(pool.map(ask, [port] * n_clients, [10**9] * n_clients, [seconds] * n_clients))
            took = time.perf_counter() - begin
            every = [one for found, _ in parts for one in found]
            failed = sum(n for _, n in parts)
            yield {
                "clients": n_clients,
                "per_second": len(every) / took,
                "failed": failed,
                **_quantiles(every),
            }


def _request(port: int, body: bytes, seconds: float = 60.0) -> int:
    """Status of the answer, 0 if the connection was closed without one."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=seconds)
    try:
        connection.request("POST", "/tag", body)
        return connection.getresponse().status
    except OSError:
        return 0
    finally:
        connection.close()


def _bad(task: Task, folder: Path) -> Iterator[Row]:
    wrong = [
        b"", b"[", b"null", b"\xff\xfe", b'{"text": 1}', b'{"tokens": [1]}', b'{"tokens": {}}', b"[" * 50_000,
        b'{"text": "a", "nbest": -1}', b'{"text": "a", "threshold": "x"}',
    ]  # fmt: skip
    head = b"POST /tag HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n"
    with _served(folder, "--seconds", "1") as port:

        def opened(data: bytes) -> socket.socket:
            connection = socket.create_connection(("127.0.0.1", port), timeout=60)
            connection.sendall(data)
            return connection

        def cut() -> int:
            opened(head + b'{"te').close()
            return 0

        def slow(data: bytes) -> Callable[[], int]:
            def send() -> int:
                waiting.append(opened(data))
                return 0

            return send

        waiting: list[socket.socket] = []
        kinds: dict[str, Callable[[], int]] = {
            "wrong": lambda: _request(port, next(bodies)),
            "huge": lambda: _request(port, b"x" * (2 << 20)),
            "cut off": cut,
            "slow head": slow(b"POST /tag HT"),
            "slow body": slow(head + b"{"),
        }
        bodies = cycle(wrong)
        refused = dict.fromkeys(kinds, 0)
        turns = cycle(["wrong", "wrong", "huge", "cut off", "slow head", "slow body"])
        longest, answered = 0.0, 0
        for kind in islice(turns, task.settings["n"]):
            status = kinds[kind]()
            refused[kind] += 400 <= status < 500 or status in (0, 503)
            begin = time.perf_counter()
            answered += _health(port)
            longest = max(longest, time.perf_counter() - begin)
        for connection in waiting:
            connection.close()
        end = time.perf_counter() + 10
        while (status := _request(port, b'{"text": "2 cups"}')) != 200 and time.perf_counter() < end:
            time.sleep(0.1)
        facts = {"n": task.settings["n"], "refused": sum(refused.values()), "answered": answered}
        yield {**facts, "longest_health": longest, "works": status == 200}


def _health(port: int) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("GET", "/health")
    status = connection.getresponse().status
    connection.close()
    return status == 200


def _memory(task: Task, folder: Path) -> Iterator[Row]:
    with _served(folder) as port, ProcessPoolExecutor(4, mp_context=get_context("spawn")) as pool:

        def requests(n: int) -> int:
            return sum(failed for _, failed in pool.map(ask, [port] * 4, [n // 4] * 4, [600.0] * 4))

        requests(2000)
        before = _resident(port)
        failed = requests(task.settings["n"])
        yield {"n": task.settings["n"], "before": before, "after": _resident(port), "failed": failed}


def _resident(port: int) -> float:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("GET", "/metrics")
    lines = connection.getresponse().read().decode().splitlines()
    connection.close()
    return float(next(line.split()[1] for line in lines if line.startswith("process_resident_memory_bytes ")))


# --- what follows ------------------------------------------------------------------------------------------

#: Seconds for a line that are still prompt, and growth of memory in bytes that is still flat.
PROMPT, FLAT = 0.5e-3, 8e6


def _by_tool(results: Results) -> list[Row]:
    """Medians over rounds."""
    found = []
    for name in (OURS, RIVAL):
        medians = results.numbers("median", what="pipe", tool=name)
        if medians:
            p99 = results.median("p99", what="pipe", tool=name)
            found.append({"tool": name, "median": float(np.median(medians)), "p99": p99})
    return found


def tables(results: Results) -> dict[str, str]:
    times: list[Column[Any]] = [
        Column("median, ms", lambda row: 1e3 * row["median"], ".2f"),
        Column("99 %, ms", lambda row: 1e3 * row["p99"], ".2f"),
    ]
    pipe = table_of(_by_tool(results), Column("one line through a pipe", itemgetter("tool")), *times)
    load = table_of(
        results.where(what="load"),
        Column("clients", itemgetter("clients"), "d"),
        Column("requests per second", itemgetter("per_second"), ",.0f"),
        *times,
    )
    made = {"pipe": pipe, "load": load, "robust": ""}
    bad, memory = results.where(what="bad"), results.where(what="memory")
    if bad and memory:
        grown = (memory[0]["after"] - memory[0]["before"]) / 1e6
        made["robust"] = (
            f"After {bad[0]['n']:,} bad requests (wrong, huge, slow, cut off) the service answers as before; "
            f"during them `/health` took at most {1e3 * bad[0]['longest_health']:.0f} ms. Over "
            f"{memory[0]['n']:,} requests its memory grew by {grown:.1f} MB, from "
            f"{memory[0]['before'] / 1e6:.0f} MB.\n"
        )
    return made


def checks(results: Results) -> list[Check]:
    made = []
    by_tool = {row["tool"]: row for row in _by_tool(results)}
    if len(by_tool) == 2:
        ours, theirs = by_tool[OURS]["median"], by_tool[RIVAL]["median"]
        words = f"Through a pipe a line takes {1e3 * ours:.2f} ms ({1e3 * theirs:.2f} ms in a Python loop), "
        words += f"at most {1e3 * PROMPT:g} ms."
        made.append(Check("pipe", words, ours <= PROMPT / results.slack))
    for row in results.where(what="load"):
        words = f"{row['clients']} clients: {row['failed']} of {row['n']} requests failed."
        made.append(Check(f"load-{row['clients']}", words, row["failed"] == 0))
    for row in results.where(what="bad"):
        words = f"{row['refused']} of {row['n']} bad requests refused, {row['answered']} times healthy."
        made.append(Check("bad", words, row["works"] and row["refused"] == row["answered"] == row["n"]))
    for row in results.where(what="memory"):
        grown = row["after"] - row["before"]
        words = f"Memory grew by {grown / 1e6:.1f} MB over {row['n']:,} requests, at most {FLAT / 1e6:g} MB."
        made.append(Check("memory", words, grown <= FLAT and row["failed"] == 0))
    return made
