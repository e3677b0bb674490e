"""What the benchmarks share: where the corpus is, where results go, how many threads, which machine."""

from __future__ import annotations

import argparse
import os
import platform
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import crfit

RESULTS = Path(__file__).parent / "results"
THREADS = 2  # of crfit, in everything that is measured; python-crfsuite has one


@dataclass(frozen=True)
class Setting:
    """Files of a run."""

    train: str
    test: str
    out: Path


def read_arguments(description: str | None, name: str) -> Setting:
    """Take --data and --out from the command line; ends the program where the corpus is not there.

    Parameters
    ----------
    description : str
        The module's docstring, for --help.
    name : str
        Results are called NAME.json and NAME.md.
    """
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    # An empty variable of make is the same as none.
    data = os.environ.get("CRFIT_DATA") or None
    parser.add_argument(
        "--data",
        type=lambda given: Path(given) if given else data,
        default=data,
        help="folder with conll2000/train.txt.gz and test.txt.gz; by default the variable CRFIT_DATA",
    )
    parser.add_argument("--out", type=Path, default=RESULTS, help=f"folder for {name}.json and {name}.md")
    options = parser.parse_args()
    if options.data is None:
        parser.error("name the folder with the corpora: --data DIR, or make bench DATA=DIR")
    files = [Path(options.data) / "conll2000" / f"{part}.txt.gz" for part in ("train", "test")]
    for file in files:
        if not file.exists():
            parser.error(f"{file} is not there; bench/README.md says where CoNLL-2000 comes from")
    options.out.mkdir(parents=True, exist_ok=True)
    return Setting(str(files[0]), str(files[1]), options.out)


def machine() -> dict[str, Any]:
    """Facts without which a time means nothing."""
    model = platform.processor()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        lines = cpuinfo.read_text().splitlines()
        names = [line.split(":", 1)[1].strip() for line in lines if "model name" in line]
        model = names[0] if names else model
    return {
        "processor": model,
        "cores": os.cpu_count(),
        "cpu_level": crfit.cpu_level(),
        "python": platform.python_version(),
        "system": platform.system(),
    }
