"""One feature in readable form, and which one a weight belongs to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from crfit.errors import OptionError
from crfit.layout import feature_codes

if TYPE_CHECKING:
    from crfit.alphabet import HasAlphabets
    from crfit.layout import Layout

__all__ = ["Feature", "describe"]


@dataclass(frozen=True)
class Feature:
    """One feature in readable form.

    Attributes
    ----------
    kind : {"state", "transition", "start", "end", "edge"}
        Block of the weight vector.
    attribute : str or None
        The attribute or edge attribute; None for the other kinds.
    labels : tuple of str
        The labels, earliest first.
    """

    kind: str
    attribute: str | None
    labels: tuple[str, ...]

    def __str__(self) -> str:
        labels = self.labels
        if self.kind == "start":
            labels = ("START", *labels)
        elif self.kind == "end":
            labels = (*labels, "END")
        path = " -> ".join(labels)
        return path if self.attribute is None else f"{self.attribute}: {path}"


def describe(layout: Layout, weight_id: int, alphabets: HasAlphabets) -> Feature:
    """Say which feature a weight belongs to; see `crfit.layout.Layout.describe`."""
    if not 0 <= weight_id < layout.n_weights:
        raise OptionError("weight_id", weight_id, f"weights are numbered 0 to {layout.n_weights - 1}")
    Y, names = layout.n_labels, alphabets.label_alphabet
    if weight_id < layout.n_state_weights:
        a, label = feature_codes.locate(weight_id, layout.state_ptr, layout.state_labels, Y)
        return Feature("state", alphabets.attribute_alphabet[a], (names[label],))
    if weight_id < layout.start_offset:
        m = sum(offset <= weight_id for offset in layout.transition_offsets)
        # An empty block starts where the next one does: the last block that starts here is the one.
        place, codes = weight_id - layout.transition_offsets[m - 1], layout.transition_codes[m - 1]
        code = place if codes is None else int(codes[place])
        return Feature("transition", None, tuple(names[y] for y in feature_codes.digits(code, Y, m + 1)))
    if weight_id < layout.edge_offset:
        is_end, label = divmod(weight_id - layout.start_offset, Y)
        return Feature("end" if is_end else "start", None, (names[label],))
    b, code = feature_codes.locate(weight_id - layout.edge_offset, layout.edge_ptr, layout.edge_codes, Y * Y)
    return Feature(
        "edge", alphabets.edge_alphabet[b], tuple(names[y] for y in feature_codes.digits(code, Y, 2))
    )
