"""Corpora by name. None with files is part of the repository; to add one, add its `Corpus` to the table."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from bench.corpora import attributes, columns, generated
from bench.corpora.corpus import Corpus
from bench.corpora.reuters21578 import REUTERS21578
from bench.setting import BenchError
from crfit.data.text import Input

CORPORA: dict[str, Corpus] = {
    "amalgum": columns.AMALGUM,
    "brown": columns.BROWN,
    "conll2000": columns.CONLL2000,
    "conll2000_crfsuite": attributes.CONLL2000_CRFSUITE,
    "conll2002": columns.CONLL2002,
    "conll2002_s3": attributes.CONLL2002_S3,
    "conll2003": columns.CONLL2003,
    "conll2003_three": attributes.CONLL2003_THREE,
    "icepahc": columns.ICEPAHC,
    "jnlpba": columns.JNLPBA,
    "lasla": columns.LASLA,
    "made_chains": generated.MADE_CHAINS,
    "ocr": attributes.OCR,
    "recipes": generated.RECIPES,
    "reuters21578": REUTERS21578,
    "ud_english_ewt": columns.UD_ENGLISH_EWT,
    "zipf_rows": generated.ZIPF_ROWS,
}


def load(name: str, variant: str, folder: Path | None) -> dict[str, Input]:
    """The text of each part of a corpus below the data folder."""
    check_present([(name, variant)], folder)
    corpus = CORPORA[name]
    assert corpus.load is not None
    return corpus.load(
        {part: (folder or Path()) / path for part, path in corpus.paths(variant).items()}, variant
    )


def check_present(wanted: Iterable[tuple[str, str]], folder: Path | None) -> None:
    """Refuse to begin where a file is not there: one message names all of them and how to obtain each.

    ``wanted`` has names of corpora with their variants.
    """
    absent = missing(wanted, folder)
    if not absent:
        return
    place = "no folder with corpora was named" if folder is None else f"files are missing in {folder}"
    listing = "".join(
        f"\n  {', '.join(paths)}\n    {CORPORA[name].title}: {CORPORA[name].how_to_get}"
        for name, paths in absent.items()
    )
    raise BenchError(
        f"{place}; --data DIR or the variable CRFIT_DATA names the one that has these files:{listing}"
    )


def missing(wanted: Iterable[tuple[str, str]], folder: Path | None) -> dict[str, list[str]]:
    """Files that are not there, by the name of the corpus."""
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
