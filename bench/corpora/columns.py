"""Corpora of columns: one token a line, columns separated by one blank, an empty line after each sentence."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from bench.corpora.corpus import Corpus, column_parts, mapped, train_and_test
from crfit.data.text import Input

CHUNKING = "chunking.template"


def _whole(paths: Mapping[str, Path], variant: str) -> dict[str, Input]:
    return column_parts(paths)


def _tags(title: str, how_to_get: str, folder: str, variants: tuple[str, ...]) -> Corpus:
    """Words with several columns of tags, one for each variant."""

    def load(paths: Mapping[str, Path], variant: str) -> dict[str, Input]:
        return column_parts(paths, keep=(0, 1 + variants.index(variant)))

    return Corpus(title, how_to_get, train_and_test(folder), variants, load=load)


def without_marks(paths: Mapping[str, Path], variant: str) -> dict[str, Input]:
    """CoNLL-2003 without the lines that mark the start of a document, which are sentences of one token."""
    return mapped(
        column_parts(paths),
        lambda data: b"\n\n".join(b for b in data.split(b"\n\n") if not b.startswith(b"-DOCSTART-")),
    )


#: 8,936 and 2,012 sentences of Wall Street Journal text, 22 labels.
CONLL2000 = Corpus(
    "CoNLL-2000 chunking",
    "the organisers of the CoNLL-2000 shared task distribute it, and NLTK has it among "
    "its data as conll2000. "
    "One token a line, `word POS chunk` separated by one blank, an empty line after each sentence.",
    train_and_test("conll2000"),
    template=CHUNKING,
    load=_whole,
)
#: Spanish and Dutch newspapers; 8,323 and 15,806 training sentences, 9 labels.
CONLL2002 = Corpus(
    "CoNLL-2002 named entities",
    "NLTK has the files of the CoNLL-2002 shared task among its data as conll2002, for research. One token a "
    "line, `word POS name` in UTF-8 separated by one blank, an empty line after each sentence.",
    {"train": "conll2002/{variant}.train.txt.gz", "test": "conll2002/{variant}.testb.txt.gz"},
    ("esp", "ned"),
    template=CHUNKING,
    load=_whole,
)
#: English news; 14,041 and 3,453 sentences, 8 labels, IOB1 as distributed.
CONLL2003 = Corpus(
    "CoNLL-2003 named entities",
    "the annotation comes from the organisers of the CoNLL-2003 shared task, the text is Reuters RCV1, for "
    "which NIST has an agreement to sign. One token a line, `word POS chunk name` separated by one blank, an "
    "empty line after each sentence.",
    {"train": "conll2003/eng.train.txt.gz", "test": "conll2003/eng.testb.txt.gz"},
    template=CHUNKING,
    load=without_marks,
)
#: Abstracts; 18,546 and 3,856 sentences, 11 labels, words alone: at -2..2 and two pairs, 416,663 attributes.
JNLPBA = Corpus(
    "JNLPBA biomedical entities",
    "the GENIA project distributes it as Genia4ERtask1.iob2 (training) and Genia4EReval1.iob2 (test). One "
    "token a line, `word name` separated by one blank instead of the TAB, without the lines that begin with "
    "###, an empty line after each sentence.",
    train_and_test("jnlpba"),
    load=_whole,
)
#: Web English; 12,544 and 2,077 sentences, 17 or 49 labels.
UD_ENGLISH_EWT = _tags(
    "UD English EWT parts of speech",
    "Universal Dependencies distributes it as UD_English-EWT (here 2.16). One word a line, `word UPOS XPOS` "
    "separated by one blank, an empty line after each sentence; lines of multi-word tokens left out.",
    "ud_english_ewt",
    ("upos", "xpos"),
)
#: American English; 52,596 and 4,744 sentences, 190 or 467 labels.
BROWN = _tags(
    "Brown parts of speech",
    "NLTK has it among its data as brown. One word a line, `word base-tag full-tag` in upper case separated "
    "by one blank, the base tag without FW-, -TL, -HL and -NC, an empty line after each sentence; documents "
    "whose number ends in 0 are for testing.",
    "brown",
    ("base", "full"),
)
#: 60,018 and 6,079 sentences, up to 1,813 labels.
LASLA = _tags(
    "LASLA Latin morphology",
    "CIRCSE distributes it as LASLA in CoNLL-U files. One word a line, `word UPOS XPOS MORPH` separated by "
    "one blank, MORPH being UPOS and the features but InflClass, an empty line after each sentence; every "
    "tenth file is for testing.",
    "lasla",
    ("upos", "xpos", "morph"),
)
#: 31,669 and 4,879 sentences, up to 558 labels.
ICEPAHC = _tags(
    "UD Icelandic IcePaHC morphology",
    "Universal Dependencies distributes it as UD_Icelandic-IcePaHC. One word a line, `word UPOS XPOS IFD` "
    "separated by one blank, an empty line after each sentence.",
    "ud_icelandic_icepahc",
    ("upos", "xpos", "ifd"),
)
#: English, large: 173,292 and 18,254 sentences, 45 labels made by a machine.
AMALGUM = _tags(
    "AMALGUM parts of speech",
    "the Georgetown corpus linguistics lab distributes it as amalgum. One word a line, `word UPOS XPOS` "
    "separated by one blank, an empty line after each sentence; every tenth document of a genre is for "
    "testing.",
    "amalgum",
    ("upos", "xpos"),
)
