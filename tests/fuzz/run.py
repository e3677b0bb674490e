"""Run the fuzzers one after the other and write what they did as a table.

``make fuzz`` builds them and calls this:

    python tests/fuzz/run.py SECONDS [--targets A,B] [--out FILE.csv]

Each target starts from its seeds, from what was found before, and from the inputs that earlier runs kept
in ``build/fuzz/``. An input that fails is written to ``build/fuzz/failed/TARGET/``; put a small one that
shows the fault into ``tests/fuzz/found/TARGET/``.
"""

import argparse
import csv
import os
import re
import subprocess
import sys
from pathlib import Path

import targets

HERE = Path(__file__).parent
BUILD = HERE.parents[1] / "build" / "fuzz"
COLUMNS = ["target", "fuzzer", "seconds", "executions", "covered", "kept", "failed"]


def command(name: str) -> tuple[str, list[str]]:
    """The fuzzer of a target and its command line."""
    program = BUILD / "readers" / f"fuzz_{name}"
    if program.exists():
        return "libFuzzer", [os.fspath(program)]
    return "Atheris", [sys.executable, os.fspath(HERE / "python_fuzzer.py"), name]


def run(name: str, seconds: int) -> dict[str, object]:
    """Run one target for some seconds; what it did, as a row of the table."""
    kept, failed = BUILD / "kept" / name, BUILD / "failed" / name
    for folder in (kept, failed):
        folder.mkdir(parents=True, exist_ok=True)
    for i, seed in enumerate(targets.TARGETS[name].seeds()):
        (kept / f"seed-{i}").write_bytes(seed)
    for path in (HERE / "found" / name).glob("*"):
        (kept / path.name).write_bytes(path.read_bytes())
    fuzzer, program = command(name)
    largest = max(path.stat().st_size for path in kept.iterdir())
    options = [
        f"-max_total_time={seconds}", f"-max_len={max(4096, 2 * largest)}", f"-artifact_prefix={failed}/",
        "-timeout=20", "-rss_limit_mb=3000", "-print_final_stats=1", os.fspath(kept),
    ]  # fmt: skip
    log = BUILD / f"{name}.log"
    with log.open("w") as out:
        code = subprocess.run([*program, *options], stdout=out, stderr=out, check=False).returncode
    said = log.read_text(errors="replace")
    covered = re.findall(r"cov: (\d+)", said)
    executions = re.findall(r"(?:number_of_executed_units: |^#)(\d+)", said, re.MULTILINE)
    if code != 0 or not executions:
        print(f"{name}: failed, see {log} and {failed}", file=sys.stderr)
    return {
        "target": name,
        "fuzzer": fuzzer,
        "seconds": seconds,
        "executions": int(executions[-1]) if executions else 0,
        "covered": int(covered[-1]) if covered else 0,
        "kept": len(list(kept.iterdir())),
        "failed": int(code != 0),
    }


def main() -> int:
    """Fuzz; 1 if any target failed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("seconds", type=int, help="for each target")
    parser.add_argument(
        "--targets", default=",".join(targets.TARGETS), help="only these, with commas between"
    )
    parser.add_argument("--out", type=Path, help="write the table to this file")
    given = parser.parse_args()
    rows = []
    for name in given.targets.split(","):
        rows.append(run(name, given.seconds))
        print("  ".join(f"{key} {value}" for key, value in rows[-1].items()), flush=True)
        if given.out is not None:
            given.out.parent.mkdir(parents=True, exist_ok=True)
            with given.out.open("w", newline="") as file:
                writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
                writer.writeheader()
                writer.writerows(rows)
    return int(any(row["failed"] for row in rows))


if __name__ == "__main__":
    sys.exit(main())
