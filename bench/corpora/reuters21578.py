"""Reuters-21578: topics of news, ModApte split; a document is one position with its words as attributes.

``topics``           the documents with exactly one of the nine most frequent topics, which is the label
``earn``             the documents with any topic at all; the label is ``earn`` or ``other``
``apte``             the documents with a common topic, one that both parts have; the first is the label
``apte-TOPIC``       the same documents; the label is one of the nine most frequent topics or ``other``
``apte-500-TOPIC``   the same with the 500 words that tell most about the label in the training part

There are 90 common topics, with 7,770 documents for training, 26,414 words in them, and 3,019 for testing; in
the copy that is known as ApteMod a document and some words are missing, 7,769 and 26,320.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from bench.corpora.corpus import column_parts
from crfit.data.text import Input

#: The most frequent ones, the largest first.
TOPICS = ("earn", "acq", "money-fx", "grain", "crude", "trade", "interest", "wheat", "ship")
#: Words of the small variants.
N_WORDS = 500
#: Documents with a common topic.
N_DOCUMENTS = {"train": 7770, "test": 3019}
#: One topic against the rest.
TOPIC_VARIANTS = (*(f"apte-{topic}" for topic in TOPICS), *(f"apte-{N_WORDS}-{topic}" for topic in TOPICS))
VARIANTS = ("topics", "earn", "apte", *TOPIC_VARIANTS)
OTHER = "other"


def load(paths: Mapping[str, Path], variant: str) -> dict[str, Input]:
    parts = column_parts(paths)
    rows = {
        part: [line.split("\t") for line in whole.data.decode().splitlines()] for part, whole in parts.items()
    }
    in_parts = [{topic for _, topics, _, _ in found for topic in topics.split()} for found in rows.values()]
    common = set.intersection(*in_parts)
    documents = {
        part: [
            (label, dict.fromkeys(re.findall("[a-z0-9]+", f"{title} {body}".lower())))
            for _, topics, title, body in found
            for label in [_label(topics.split(), variant, common)]
            if label is not None
        ]
        for part, found in rows.items()
    }
    if variant.startswith(f"apte-{N_WORDS}-"):
        kept = _telling(documents["train"], variant.removeprefix(f"apte-{N_WORDS}-"))
        documents = {
            part: [(label, dict.fromkeys(word for word in words if word in kept)) for label, words in found]
            for part, found in documents.items()
        }
    return {
        part: Input(whole.name, "".join("\t".join([y, *x]) + "\n\n" for y, x in documents[part]).encode())
        for part, whole in parts.items()
    }


def _label(topics: Sequence[str], variant: str, common: set[str]) -> str | None:
    """Label of a document, None if it is left out."""
    if variant == "earn":
        return ("earn" if "earn" in topics else OTHER) if topics else None
    if variant == "topics":
        among = [topic for topic in topics if topic in TOPICS]
        return among[0] if len(among) == 1 else None
    among = [topic for topic in topics if topic in common]
    if not among or variant == "apte":
        return among[0] if among else None
    topic = variant.removeprefix("apte-").removeprefix(f"{N_WORDS}-")
    return topic if topic in among else OTHER


def _telling(documents: Sequence[tuple[str, Iterable[str]]], topic: str) -> set[str]:
    """The words with the most mutual information about a label: sum p(w, y) log(p(w, y) / (p(w) p(y)))."""
    n, n_topic = len(documents), sum(label == topic for label, _ in documents)
    everywhere = Counter(word for _, words in documents for word in words)
    inside = Counter(word for label, words in documents if label == topic for word in words)

    def information(word: str) -> float:
        with_word, both = everywhere[word], inside[word]
        cells = (
            (both, with_word, n_topic),
            (with_word - both, with_word, n - n_topic),
            (n_topic - both, n - with_word, n_topic),
            (n - n_topic - with_word + both, n - with_word, n - n_topic),
        )
        return sum(k / n * math.log(k * n / (row * column)) for k, row, column in cells if k)

    return set(sorted(everywhere, key=lambda word: (-information(word), word))[:N_WORDS])
