"""A trainer that prints one line per iteration."""

from typing import Any

from crfit.compat.pycrfsuite import Trainer

#: Numbers of an iteration that are shown if it has them: name, label and format.
_SHOWN = (
    *(("time", "time=", "<6.2f"), ("loss", "loss=", "<10.2f"), ("active_features", "active=", "<8d")),
    *(
        ("avg_precision", "precision=", "<6.3f"),
        ("avg_recall", "recall=", "<6.3f"),
        ("avg_f1", "F1=", "<6.3f"),
    ),
    *(("item_accuracy_float", "Acc(item/seq)=", ".3f"), ("instance_accuracy_float", "", "<6.3f")),
    ("feature_norm", "feature_norm=", ".2f"),
)


class LinePerIterationTrainer(Trainer):
    """`Trainer` that prints one line per iteration, and at the end the held-out scores of each label."""

    def on_iteration(self, log: str, info: dict[str, Any]) -> None:
        """Print the numbers of an iteration on one line."""
        parts = [f"{label}{info[name]:{form}}" for name, label, form in _SHOWN if name in info]
        self._print(f"Iter {info['num']:<4}{' '.join(parts)}\n")

    def on_optimization_end(self, log: str) -> None:
        """Print the scores of the last iteration, then why it was the last."""
        last = self.logparser.last_iteration if self.logparser else None
        scores = last["scores"] if last else {}
        if scores:
            width = max(5, *map(len, scores))
            self._print(f"{'Label':<{width}}  Precision  Recall     F1  Support\n")
            for name, score in scores.items():
                fractions = (_shown(score.precision, 9), _shown(score.recall, 6), _shown(score.f1, 5))
                self._print(f"{name:<{width}}  {'  '.join(fractions)}  {score.ref:7d}\n")
        self._print(log)


def _shown(fraction: float | None, width: int) -> str:
    """Three decimals; blank for a label that does not occur in the held-out data."""
    return " " * width if fraction is None else f"{fraction:{width}.3f}"
