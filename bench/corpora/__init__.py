"""Corpora by name: corpora.json says what they are and how to get them, the table below how they are read.

None with files is part of the repository. To add one, add it to both.
"""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from bench.corpora import attributes, generated, reuters21578
from bench.corpora.corpus import Corpus, column_parts, tags, without_marks
from bench.setting import BenchError
from crfit.data.text import Input

_READ: dict[str, dict[str, Any]] = {
    "amalgum": {"load": tags("upos", "xpos")},
    "brown": {"load": tags("base", "full")},
    "conll2000": {"load": column_parts},
    "conll2000_crfsuite": {"load": attributes.crfsuite},
    "conll2002": {"load": column_parts},
    "conll2002_s3": {"load": attributes.spelling},
    "conll2002_tutorial": {"load": attributes.tutorial},
    "conll2003": {"load": without_marks},
    "conll2003_three": {"load": attributes.three},
    "icepahc": {"load": tags("upos", "xpos", "ifd")},
    "jnlpba": {"load": column_parts},  # words at -2..2 and two pairs: 416,663 attributes
    "lasla": {"load": tags("upos", "xpos", "morph")},
    "made_chains": {"datasets": generated.made_chains},
    "ocr": {"load": attributes.pixels},
    "recipes": {"load": generated.recipes},
    "reuters21578": {"load": reuters21578.load, "variants": reuters21578.VARIANTS},
    "ud_english_ewt": {"load": tags("upos", "xpos")},
    "zipf_rows": {"datasets": generated.zipf_rows},
}
_TOLD = json.loads(Path(__file__).with_name("corpora.json").read_text(encoding="utf-8"))
CORPORA = {name: Corpus(**{**_TOLD[name], **read}) for name, read in _READ.items()}


def load(name: str, variant: str, folder: Path | None) -> dict[str, Input]:
    """The text of each part of a corpus below the data folder."""
    check_present([(name, variant)], folder)
    corpus, below = CORPORA[name], folder or Path()
    assert corpus.load is not None
    return corpus.load({part: below / path for part, path in corpus.paths(variant).items()}, variant)


def check_present(wanted: Iterable[tuple[str, str]], folder: Path | None) -> None:
    """Refuse to begin where a file is not there: one message names all of them and how to obtain each."""
    absent = missing(wanted, folder)
    place = "no folder with corpora was named" if folder is None else f"files are missing in {folder}"
    listing = "".join(
        f"\n  {', '.join(paths)}\n    {CORPORA[name].title}: {CORPORA[name].how_to_get}"
        for name, paths in absent.items()
    )
    if absent:
        raise BenchError(
            f"{place}; --data DIR or the variable CRFIT_DATA names the one that has these files:{listing}"
        )


def missing(wanted: Iterable[tuple[str, str]], folder: Path | None) -> dict[str, list[str]]:
    """Files of corpora and their variants that are not there, by the name of the corpus."""
    absent: dict[str, dict[str, None]] = {}  # dictionaries as sets in order: variants may share files
    for name, variant in dict.fromkeys(wanted):
        for path in CORPORA[name].paths(variant).values():
            if folder is None or not (folder / path).is_file():
                absent.setdefault(name, {})[path] = None
    return {name: list(paths) for name, paths in absent.items()}


def sizes(name: str, variant: str, folder: Path | None) -> dict[str, int]:
    """Bytes of the files of a corpus that are there, by their paths below the data folder."""
    paths = CORPORA[name].paths(variant).values() if folder is not None else ()
    return {path: (folder / path).stat().st_size for path in paths if folder and (folder / path).is_file()}
