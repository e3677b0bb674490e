"""What one request may ask for, and how many may run at once."""

from __future__ import annotations

from dataclasses import dataclass, fields

from crfit.checks import check_number, check_whole_number


@dataclass(frozen=True)
class Limits:
    """Limits of a service.

    Parameters
    ----------
    body : int
        Bytes of a request.
    tokens : int
        Tokens of a request, times the number of labellings with ``nbest``.
    sequences : int
        Sequences of a batch, or items.
    nbest : int
        Labellings of a sequence.
    probabilities : int
        Probabilities in an answer with ``marginals``: tokens times labels.
    seconds : float
        Until a request must have arrived, and until its answer is ready.
    requests : int
        Requests at a time, running or waiting.
    """

    body: int = 1 << 20
    tokens: int = 10_000
    sequences: int = 1_000
    nbest: int = 100
    probabilities: int = 1_000_000
    seconds: float = 10.0
    requests: int = 64

    def __post_init__(self) -> None:
        for field in fields(self):
            if field.name == "seconds":
                check_number(field.name, self.seconds, at_least=0.001)
            else:
                check_whole_number(field.name, getattr(self, field.name), at_least=1)
