"""All trainers of the four papers and ours, on the same code, data and machine.

Gaps against seconds and passes and scores against seconds on ten problems; who is first, and how far the
default is behind; and the open point of the Japanese paper on Newton-CG (2010): on its largest task SGD was
sooner, so who wins on Brown? docs/measuring.md says how it is measured.
"""

from bench.speed.overview.contests import measure, tasks
from bench.speed.overview.pictures import pictures
from bench.speed.overview.tables import CLAIMS, checks, tables

__all__ = ["CLAIMS", "TITLE", "checks", "measure", "pictures", "tables", "tasks"]

TITLE = "All trainers of the four papers and ours on the same data: seconds and passes to gaps and scores"
