"""The optimum on CoNLL-2000 with CRF++'s chunking template, by the command line alone.

    python -m bench.optimum --data DIR     DIR holds conll2000/train.txt.gz and conll2000/test.txt.gz

Runs ``crfit train`` to a largest gradient entry of 0.05 and ``crfit eval`` on the test part, for all and for
observed weights, and stores what both print as JSON in bench/results/optimum.json and a table in optimum.md.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from bench.core import RESULTS, machine

TRAIN = (
    "--template",
    "chunking.template",
    "--l2",
    "1",
    "--trainer",
    "lbfgs",
    "--stop-grad-inf",
    "0.05",
    "--json",
)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--data", type=Path, required=True, help="folder with conll2000/train.txt.gz, test.txt.gz"
    )
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder for optimum.json and optimum.md")
    options = parser.parse_args()
    corpus = options.data / "conll2000"
    runs = {}
    with tempfile.TemporaryDirectory() as folder:
        model = str(Path(folder) / "m.crfit")
        for weights in ("all", "observed"):
            train = crfit("train", str(corpus / "train.txt.gz"), "-m", model, "--weights", weights, *TRAIN)
            train.pop("model")
            scores = crfit("eval", "-m", model, str(corpus / "test.txt.gz"), "--json")
            runs[weights] = {"train": train, "test": {name: scores[name] for name in ("accuracy", "f1")}}
    result = {
        "command": "crfit train train.txt.gz --weights WEIGHTS " + " ".join(TRAIN) + " -m m.crfit",
        "machine": machine(),
        "runs": runs,
    }
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "optimum.json").write_text(json.dumps(result, indent=2) + "\n")
    (options.out / "optimum.md").write_text(table(runs))
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
