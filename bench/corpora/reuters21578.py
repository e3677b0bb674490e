"""Reuters-21578: topics of news, ModApte split; a document is one position with its words as attributes.

``topics``   the documents with exactly one of the nine most frequent topics, which is the label
``earn``     the documents with any topic at all; the label is ``earn`` or ``other``
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from bench.corpora import column_parts
from crfit.text import Input

TITLE = "Reuters-21578 topics, ModApte split"
FILES = {"train": "reuters21578/modapte.train.tsv.gz", "test": "reuters21578/modapte.test.tsv.gz"}
VARIANTS = ("topics", "earn")
HOW_TO_GET = """
D. Lewis distributes it for research as reut2-*.sgm. One document a line, separated by TABs: number, topics
(separated by blanks, may be empty), title, body; 9,603 documents for training and 3,299 for testing.
"""
FORMAT = "crfsuite"
TEMPLATE = None
N_TOPICS = 9


def load(paths: dict[str, Path], variant: str) -> dict[str, Input]:
    parts = column_parts(paths)
    rows = {
        part: [line.split("\t") for line in whole.data.decode().splitlines()] for part, whole in parts.items()
    }
    counts = Counter(topic for _, topics, _, _ in rows["train"] for topic in topics.split())
    frequent = {topic for topic, _ in counts.most_common(N_TOPICS)}
    made = {}
    for part, whole in parts.items():
        lines = []
        for _, topics, title, body in rows[part]:
            label = _label(topics.split(), variant, frequent)
            if label is not None:
                words = dict.fromkeys(re.findall("[a-z0-9]+", f"{title} {body}".lower()))
                lines.append("\t".join([label, *words]) + "\n\n")
        made[part] = Input(whole.name, "".join(lines).encode())
    return made


def _label(topics: Sequence[str], variant: str, frequent: set[str]) -> str | None:
    """Label of a document, None if it is left out."""
    if variant == "earn":
        return ("earn" if "earn" in topics else "other") if topics else None
    among = [topic for topic in topics if topic in frequent]
    return among[0] if len(among) == 1 else None
