"""Size of the wheels, and time and memory of `import crfit`, beside NumPy alone and python-crfsuite.

The wheels are those of ``make wheel`` in dist/wheelhouse. Memory is the peak resident size of the process.
"""

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from zipfile import ZipFile

from bench.command_line import with_bytecode
from bench.records import Check, NotAvailable, Results, Row, Task
from bench.setting import Setting
from bench.tables import markdown, shown
from bench.tools import tool

TITLE = "size of the wheels, time and memory of an import"
PROBLEM = "recipes-observed"  # not read
WHEELS = Path(__file__).resolve().parents[2] / "dist" / "wheelhouse"
SERVES = {
    "cp310-cp310": "Python 3.10",
    "cp311-cp311": "Python 3.11",
    "cp312-abi3": "Python 3.12 and later",
    "cp314-cp314t": "Python 3.14 without the GIL",
}
#: Statements of new processes, and how the table calls them.
IMPORTS = {
    "pass": "`python -c pass`",
    "import numpy": "`import numpy`",
    "import crfit": "`import crfit`",
    "import crfit; crfit.load": "`import crfit; crfit.load`, as programs that tag",
    "import pycrfsuite": "`import pycrfsuite`",
}
ROUNDS, QUICK_ROUNDS = 15, 3
#: Not getrusage, whose peak includes the process that started this one.
PEAK = "; print(next(line.split()[1] for line in open('/proc/self/status') if line.startswith('VmHWM')))"
#: Largest wheel, and most seconds and MB of a program that tags above those of NumPy alone, on any machine.
MOST_MB, MOST_SECONDS, MOST_MEMORY = 8.0, 0.5, 40.0


def tasks(quick: bool) -> list[Task]:
    rounds = QUICK_ROUNDS if quick else ROUNDS
    return [Task("wheels", PROBLEM, {}, 60.0), Task("imports", PROBLEM, {"rounds": rounds}, 300.0)]


def measure(task: Task, setting: Setting) -> Iterator[Row]:
    yield from _wheels() if task.id == "wheels" else _imports(task.settings["rounds"])


def _wheels() -> Iterator[Row]:
    found = sorted(WHEELS.glob("*.whl"))
    if not found:
        raise NotAvailable("there are no wheels: run make wheel")
    for wheel in found:
        _, _, python, abi, platform = wheel.stem.split("-")
        with ZipFile(wheel) as archive:
            unpacked = sum(entry.file_size for entry in archive.infolist())
        size = wheel.stat().st_size
        yield {"tag": f"{python}-{abi}", "platform": platform, "bytes": size, "unpacked": unpacked}


def _imports(rounds: int) -> Iterator[Row]:
    """Cases take turns; the first round makes the bytecode and does not count."""
    absent = {"import pycrfsuite"} if tool("python_crfsuite").absent() else set()
    for number in range(1 + rounds):
        for case in IMPORTS:
            if case in absent:
                continue
            command = [sys.executable, "-c", case + PEAK]
            begin = time.perf_counter()
            run = subprocess.run(command, check=True, capture_output=True, env=with_bytecode())
            seconds = time.perf_counter() - begin
            if number > 0:
                yield {"case": case, "seconds": seconds, "peak_kb": int(run.stdout)}


def _least(results: Results, case: str, measured: str) -> float | None:
    return min((row[measured] for row in results.where(task="imports", case=case)), default=None)


def tables(results: Results) -> dict[str, str]:
    sizes = [
        [f"{SERVES.get(row['tag'], row['tag'])}", f"`{row['tag']}-{row['platform']}`", *_megabytes(row)]
        for row in results.where(task="wheels")
        if row["outcome"] == "done"
    ]
    imports = []
    for case, title in IMPORTS.items():
        seconds, peak = (_least(results, case, measured) for measured in ("seconds", "peak_kb"))
        if seconds is not None and peak is not None:
            imports.append([title, shown(1000 * seconds, ".0f", " ms"), shown(peak / 1000, ".0f", " MB")])
    return {
        "wheels": markdown(["wheel for", "tags", "size", "installed"], sizes) if sizes else "",
        "imports": markdown(["a new process", "time", "peak memory"], imports) if imports else "",
    }


def _megabytes(row: Row) -> list[str]:
    return [shown(row[key] / 1e6, ".1f", " MB") for key in ("bytes", "unpacked")]


def checks(results: Results) -> list[Check]:
    made = [
        Check(row["tag"], f"{row['tag']}: {row['bytes'] / 1e6:.1f} MB.", row["bytes"] <= MOST_MB * 1e6)
        for row in results.where(task="wheels")
        if row["outcome"] == "done"
    ]
    limits = {"seconds": (1.0, " s", MOST_SECONDS / results.slack), "peak_kb": (1e-3, " MB", MOST_MEMORY)}
    for measured, (unit, name, most) in limits.items():
        ours = _least(results, "import crfit; crfit.load", measured)
        numpy = _least(results, "import numpy", measured)
        if ours is not None and numpy is not None:
            more = (ours - numpy) * unit
            made.append(
                Check(measured, f"A program that tags: {more:.2f}{name} above NumPy's.", more <= most)
            )
    return made
