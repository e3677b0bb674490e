"""Data that does not fit into memory: indexing and training under a limit, against training in memory.

A generated corpus is four times as large, as shards, as the memory that processes get (``ulimit -d``: what
they allocate, not files that they map). `crfit index` and a streamed training run with the limit, training in
memory without. The latter ends when F changes little, and its F counts as the optimum.
"""

import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bench.records import Check, NotAvailable, Results, Row, Task
from bench.setting import THREADS, Setting
from bench.tables import Column, table_of

TITLE = "training on data four times as large as the memory limit"
#: Tokens, memory limit and size of a shard in megabytes.
FULL = {"n_tokens": 20_000_000, "allowed": 300.0, "shard": 5.0}
QUICK = {"n_tokens": 100_000, "allowed": 250.0, "shard": 1.0}
GAP, TIMES, SLOWER = 1e-3, 4.0, 5.0
#: Relative change of F over ten iterations at which the training in memory ends.
CHANGE = 1e-5
N_WORDS, N_CLASSES, N_LABELS, SEED, AT_ONCE = 5000, 40, 6, 5, 1 << 20
WINDOW = range(-2, 3)
MEGABYTE = 1e6


def tasks(quick: bool) -> list[Task]:
    return [Task("streaming", "chains-made", QUICK if quick else FULL, 1800.0)]


def measure(task: Task, setting: Setting) -> Iterator[Row]:
    if not Path("/proc/self/status").exists():
        raise NotAvailable("memory is read from /proc: run it on Linux")
    limit, facts = task.settings["allowed"], dict[str, Any]()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        text, template, shards = folder / "train.txt", folder / "template", folder / "shards"
        write_text(text, task.settings["n_tokens"])
        template.write_text(template_text(), encoding="utf-8")
        index = ["index", text, "-o", shards, "--template", template, "--shard-size", task.settings["shard"]]
        ran = crfit(*index, limit=limit)
        facts = {"shards_mb": ran.report["n_bytes"] / MEGABYTE, "n_shards": ran.report["n_shards"]}
        yield {"what": "index", "text_mb": text.stat().st_size / MEGABYTE, **facts, **ran.row}
        train = ["train", shards, "-m", folder / "model", "--trainer", "lbfgs"]
        ran = crfit(*train, "--stop-rel-change", CHANGE, "--max-memory", 1e6)
        best = float(ran.report["objective"])
        yield {"what": "memory", **facts, **ran.row, **_training(ran.report, best)}
        streamed = ["--max-memory", 0] if setting.quick else []  # small data would fit
        ran = crfit(*train, "--stop-objective", best * (1.0 + GAP), *streamed, limit=limit)
        yield {"what": "streaming", **facts, **ran.row, **_training(ran.report, best)}


def _training(report: dict[str, Any], best: float) -> Row:
    return {
        "passes": report["passes"],
        "training_seconds": report["seconds"],
        "gap": report["objective"] / best - 1.0,
        "n_weights": report["n_weights"],
    }


def write_text(path: Path, n_tokens: int) -> None:
    """Sentences of words with classes, whose labels follow the class and the label before, with noise."""
    rng = np.random.default_rng(SEED)
    of_class = rng.integers(0, N_LABELS, (N_CLASSES, N_LABELS))
    shares = np.cumsum(1.0 / (np.arange(N_WORDS) + 5.0))
    shares /= shares[-1]
    rows = [
        [f"w{word} c{word % N_CLASSES} L{label}\n".encode() for label in range(N_LABELS)]
        for word in range(N_WORDS)
    ]
    flat = np.array([row for one in rows for row in one], dtype=object)
    with path.open("wb") as file:
        for first in range(0, n_tokens, AT_ONCE):
            n = min(AT_ONCE, n_tokens - first)
            words = np.searchsorted(shares, rng.random(n))
            before = np.roll(words, 1) % N_LABELS
            labels = of_class[words % N_CLASSES, before]
            noisy = rng.random(n) < 0.2
            labels[noisy] = rng.integers(0, N_LABELS, noisy.sum())
            lines = flat[words * N_LABELS + labels]
            ends = np.cumsum(rng.integers(5, 36, n // 5))
            lines[ends[ends < n] - 1] += b"\n"
            lines[-1] += b"\n" * (not lines[-1].endswith(b"\n\n"))
            file.write(b"".join(lines.tolist()))


def template_text() -> str:
    lines = [f"U{column}[{row}]:%x[{row},{column}]" for column in range(2) for row in WINDOW]
    return "\n".join([*lines, "B", ""])


class Ran(NamedTuple):
    """What a program printed, how long it took and how much memory it had."""

    report: dict[str, Any]
    row: Row


def crfit(*arguments: object, limit: float | None = None) -> Ran:
    """Run ``crfit`` with --json; `limit` is that of memory, in megabytes."""

    def set_limit() -> None:
        if limit is not None:
            n_bytes = int(limit * MEGABYTE)
            resource.setrlimit(resource.RLIMIT_DATA, (n_bytes, n_bytes))

    command = [sys.executable, "-m", "crfit", *map(str, arguments), "--json", "-q", "--threads", str(THREADS)]
    begin, peak = time.perf_counter(), {"RssAnon": 0.0, "VmHWM": 0.0}
    with tempfile.TemporaryFile() as printed, tempfile.TemporaryFile() as said:
        process = subprocess.Popen(command, stdout=printed, stderr=said, preexec_fn=set_limit)
        while process.poll() is None:
            for name, value in _memory(process.pid).items():
                peak[name] = max(peak[name], value)
            time.sleep(0.02)
        printed.seek(0)
        said.seek(0)
        if process.returncode:
            raise RuntimeError(said.read().decode(errors="replace")[-2000:])
        report = json.loads(printed.read().splitlines()[-1])
    row = {"seconds": time.perf_counter() - begin, "limit_mb": limit}
    return Ran(report, row | {"allocated_mb": peak["RssAnon"], "resident_mb": peak["VmHWM"]})


def _memory(process: int) -> dict[str, float]:
    """Allocated memory now, and the most resident memory so far, mapped files included; in megabytes."""
    try:
        lines = Path(f"/proc/{process}/status").read_text(encoding="utf-8").splitlines()
    except OSError:
        return {}
    pairs = (line.split(":", 1) for line in lines)
    return {k: float(v.split()[0]) * 1024 / MEGABYTE for k, v in pairs if k in ("RssAnon", "VmHWM")}


# --- what follows ------------------------------------------------------------------------------------------

WORDS = {"index": "`crfit index`", "memory": "training in memory", "streaming": "streamed training"}


def _per_pass(row: Row) -> float | None:
    return row["training_seconds"] / row["passes"] if row.get("passes") else None


def tables(results: Results) -> dict[str, str]:
    columns: list[Column[Row]] = [
        Column("", lambda row: WORDS[row["what"]]),
        Column("shards, MB", itemgetter("shards_mb"), ",.0f"),
        Column("limit, MB", itemgetter("limit_mb"), ",.0f", none="none"),
        Column("most allocated, MB", itemgetter("allocated_mb"), ",.0f"),
        Column("most resident, files included", itemgetter("resident_mb"), ",.0f"),
        Column("seconds", itemgetter("seconds"), ",.0f"),
        Column("passes", lambda row: row.get("passes"), ",.0f", none=""),
        Column("seconds per pass", _per_pass, ".2f", none=""),
        Column("gap", lambda row: row.get("gap"), ".0e", none=""),
    ]
    return {"passes": table_of([row for what in WORDS for row in results.where(what=what)], *columns)}


def checks(results: Results) -> list[Check]:
    found = {what: results.where(what=what) for what in WORDS}
    if not all(found.values()):
        return []
    index, memory, streamed = (rows[0] for rows in found.values())
    times = streamed["shards_mb"] / streamed["limit_mb"]
    large = times >= TIMES or results.config["quick"]
    limit, gap = streamed["limit_mb"], streamed["gap"]
    text = f"Data {times:.1f} times as large as the limit of {limit:.0f} MB trains to a gap of {gap:.1e}."
    made = [Check("trains", text, large and gap <= GAP)]
    most = max(index["allocated_mb"], streamed["allocated_mb"])
    text = f"Indexing and streamed training allocate at most {most:.0f} MB."
    made.append(Check("memory", text, most <= limit))
    ratio = (_per_pass(streamed) or 0.0) / (_per_pass(memory) or 1.0)
    text = f"A streamed pass takes {ratio:.1f} times as long as one in memory, at most {SLOWER:g}."
    made.append(Check("passes", text, ratio <= SLOWER / results.slack))
    return made
