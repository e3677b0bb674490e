"""What the Japanese paper says about its largest task, in our words; it prints no numbers of it."""

from __future__ import annotations

__all__ = ["ADVICE", "MACHINE", "REPORT", "SENTENCES", "TASK"]

#: Section 4, last paragraph: results left out for want of room.
TASK = "tagging parts of speech in the Penn Treebank"
#: "About": the paper rounds.
SENTENCES = 40_000
REPORT = "SGD came to the best score sooner than the proposed method"
ADVICE = "the method suits tasks of small and middle size, as large corpora are hard to come by"
MACHINE = "Java on a Core 2 Quad of 2.4 GHz with 8 GB"
