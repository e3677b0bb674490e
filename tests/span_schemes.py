"""Spans of label sequences, read one label after another, and spelled again in a scheme."""

#: Letters of B, I, E and S.
LETTERS = {"BIO": "BI", "IOB1": "BI", "IOBES": "BIES", "BILOU": "BILU", "BMES": "BMES"}


def read(labels, *, iobes):
    """Set of (start, end, type), as evaluation reads labels in one of its two schemes."""
    roles = {"M": "I", "L": "E", "U": "S", "W": "S"} if iobes else {}
    spans, begin, kind, before = set(), None, None, "O"
    for t, label in enumerate([*labels, "O"]):
        prefix, _, own = label.partition("-")
        prefix = roles.get(prefix, prefix)
        goes_on = begin is not None and own == kind and prefix != "O"
        if iobes:
            goes_on = goes_on and prefix in "IE" and before not in "ES"
        elif prefix == "B":
            goes_on = goes_on and before == "E"  # as in conlleval
        else:
            goes_on = goes_on and before != "E"
        if not goes_on:
            if begin is not None:
                spans.add((begin, t, kind))
            begin, kind = (t, own) if prefix != "O" else (None, None)
        before = prefix
    return spans


def spell(spans, length, scheme):
    """Labels of these spans in a scheme."""
    labels = ["O"] * length
    for start, end, kind in sorted(spans):
        letters = LETTERS[scheme]
        names = [letters[0], *letters[1] * (end - start - 1)]
        if scheme == "IOB1":
            touches = any(other[1:] == (start, kind) for other in spans)
            names[0] = "B" if touches else "I"
        elif len(letters) == 4:
            names[-1] = letters[3] if end - start == 1 else letters[2]
        labels[start:end] = [f"{name}-{kind}" if kind else name for name in names]
    return labels


def is_valid(labels, scheme):
    """Whether spelling the spans of the labels gives the labels."""
    spans = read(labels, iobes=len(LETTERS[scheme]) == 4)
    return spell(spans, len(labels), scheme) == list(labels)
