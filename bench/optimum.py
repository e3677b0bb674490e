"""The optimum on CoNLL-2000 with CRF++'s chunking template, by the command line alone.

    python -m bench.optimum --data DIR     DIR holds conll2000/train.txt.gz and conll2000/test.txt.gz

Runs ``crfit train`` on two threads to a largest gradient entry of 0.05 and ``crfit eval`` on the test part,
for all and for observed weights. What both print as JSON goes to bench/results/optimum.json, a table to
optimum.md.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from bench.setting import THREADS, machine, read_arguments

TRAIN = (
    *("--template", "chunking.template", "--l2", "1", "--trainer", "lbfgs"),
    *("--stop-grad-inf", "0.05", "--threads", str(THREADS), "--json"),
)


def main() -> None:
    setting = read_arguments(__doc__, "optimum")
    runs = {}
    with tempfile.TemporaryDirectory() as folder:
        model = str(Path(folder) / "m.crfit")
        for weights in ("all", "observed"):
            train = crfit("train", setting.train, "-m", model, "--weights", weights, *TRAIN)
            train.pop("model")
            scores = crfit("eval", "-m", model, setting.test, "--json")
            runs[weights] = {"train": train, "test": {name: scores[name] for name in ("accuracy", "f1")}}
    result = {
        "command": "crfit train train.txt.gz --weights WEIGHTS " + " ".join(TRAIN) + " -m m.crfit",
        "machine": machine(),
        "runs": runs,
    }
    (setting.out / "optimum.json").write_text(json.dumps(result, indent=2) + "\n")
    (setting.out / "optimum.md").write_text(table(runs))
    print(table(runs))


def crfit(*arguments: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", "crfit", *arguments], check=True, stdout=subprocess.PIPE, text=True
    )
    record: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return record


def table(runs: dict[str, Any]) -> str:
    rows = [
        "| | weights | objective | passes | seconds | test accuracy | test F1 |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for weights, run in runs.items():
        train, test = run["train"], run["test"]
        rows.append(
            f"| `--weights {weights}` | {train['n_weights']:,} | {train['objective']:.2f} "
            f"| {train['passes']:.0f} | {train['seconds']:.1f} | {test['accuracy']:.2f} | {test['f1']:.2f} |"
        )
    return "\n".join(rows) + "\n"


if __name__ == "__main__":
    main()
