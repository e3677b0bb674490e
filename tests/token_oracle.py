"""Attributes of tokens in plain Python, from the description of the terms: compared with native code.

Reads the objects of `crfit.features`, but shares nothing else with it: atoms are computed with Python's own
str methods and `unicodedata`.
"""

import unicodedata
from itertools import product

from crfit.features.terms import Join, Shifted, Term

ASCII_DIGIT_SIGNS = "+-.,:/%"


def lower(text):
    return "".join(c.lower() if len(c.lower()) == 1 else c for c in text)


def kind(c):
    category = unicodedata.category(c)
    if category in ("Lu", "Lt"):
        return "upper"
    if category == "Ll":
        return "lower"
    return {"L": "letter", "N": "number", "M": "mark"}.get(category[0], "other")


LETTERS = ("upper", "lower", "letter", "mark")


def is_class(name, token):
    kinds = [kind(c) for c in token]
    if not token:
        return False
    return {
        "alpha": all(k in LETTERS for k in kinds),
        "digit": all(k == "number" for k in kinds),
        "alnum": any(k in LETTERS for k in kinds) and "number" in kinds and "other" not in kinds,
        "upper": "upper" in kinds and "lower" not in kinds,
        "lower": "lower" in kinds and "upper" not in kinds,
        "title": kinds[0] == "upper" and "upper" not in kinds[1:],
        "mixed": "upper" in kinds[1:] and "lower" in kinds,
        "punctuation": all(k == "other" for k in kinds),
        "ascii": token.isascii(),
        "initial": len(token) == 2 and kinds[0] == "upper" and token[1] == ".",
        "number": "number" in kinds
        and all(k == "number" or c in ASCII_DIGIT_SIGNS for c, k in zip(token, kinds, strict=True)),
        "roman": all(c in "IVXLCDM" for c in token),
    }[name]


def has_class(name, token):
    kinds = [kind(c) for c in token]
    return {
        "letter": any(k in LETTERS for k in kinds),
        "upper": "upper" in kinds,
        "lower": "lower" in kinds,
        "digit": "number" in kinds,
        "punctuation": "other" in kinds,
        "hyphen": any(c == "-" or "\u2010" <= c <= "\u2015" for c in token),
        "period": "." in token,
        "comma": "," in token,
        "slash": "/" in token,
        "apostrophe": "'" in token or "\u2019" in token,
        "non_ascii": not token.isascii(),
    }[name]


def shape(token, longest):
    signs = {"upper": "X", "lower": "x", "letter": "c", "number": "d"}
    found = []
    for c in token:
        if kind(c) == "mark":
            continue
        sign = signs.get(kind(c), c)
        if found[-longest:] != [sign] * longest:
            found.append(sign)
    return "".join(found)


def names_of(lines, exact):
    names = [line.split(" ") for line in lines.decode("utf-8", "surrogateescape").split("\n")]
    return {tuple(name if exact else map(lower, name)) for name in names if name != [""]}


def gazetteer_marks(tokens, lines, exact):
    """U, B, I, L at the longest names from left to right."""
    names = names_of(lines, exact)
    tokens = tokens if exact else [lower(token) for token in tokens]
    marks, t = [None] * len(tokens), 0
    while t < len(tokens):
        ends = [end for end in range(len(tokens), t, -1) if tuple(tokens[t:end]) in names]
        if not ends:
            t += 1
            continue
        end = ends[0]
        marks[t:end] = ["U"] if end - t == 1 else ["B", *["I"] * (end - t - 2), "L"]
        t = end
    return marks


def values(term, rows, t):
    """Pairs of a name and a text, "" for a mark without text, of a term at position t."""
    if not 0 <= t < len(rows):
        return []
    tokens = [row[term.column] for row in rows]
    token, name = tokens[t], term.name
    at = f"@{term.column}" if term.column else ""
    most = term.numbers[0] if term.numbers else 0
    if name == "word":
        return [(f"column{term.column}" if term.column else "word", "=" + token)]
    if name == "lower":
        return [(name + at, "=" + lower(token))]
    if name in ("prefix", "suffix", "lower_prefix", "lower_suffix"):
        text = lower(token) if name.startswith("lower") else token
        sizes = [n for n in range(most, term.numbers[1] + 1) if n <= len(token)]
        return [(f"{name}{n}{at}", "=" + (text[:n] if "prefix" in name else text[-n:])) for n in sizes]
    if name in ("shape", "short_shape"):
        return [(name + at, "=" + shape(token, 4 if name == "shape" else 1))]
    if name == "is":
        return [(f"is_{one}{at}", "") for one in term.classes if is_class(one, token)]
    if name == "has":
        return [(f"has_{one}{at}", "") for one in term.classes if has_class(one, token)]
    if name == "clusters":
        lines = term.words.lines.decode("utf-8", "surrogateescape").split("\n")[:-1]
        classes = dict(line.split("\t") for line in lines)
        found = classes.get(token, classes.get(lower(token)))
        if found is None:
            return []
        sizes = term.numbers or (0,)
        return [(f"cluster:{term.label}{n or ''}{at}", "=" + (found[:n] if n else found)) for n in sizes]
    if name == "gazetteer":
        mark = gazetteer_marks(tokens, term.words.lines, term.exact)[t]
        return [] if mark is None else [(f"gazetteer:{term.label}{at}", "=" + mark)]
    if name in ("length", "from_start", "from_end", "commas"):
        count = {
            "length": len(token),
            "from_start": t,
            "from_end": len(rows) - 1 - t,
            "commas": tokens[:t].count(","),
        }[name]
        return [(name + at, f"={min(count, most)}")]
    if name == "in_brackets":
        depth = 0
        for i in range(t + 1):
            if tokens[i] in (")", "]", "}"):
                depth = max(depth - 1, 0)
            if i == t and depth:
                return [(name + at, "")]
            depth += tokens[i] in ("(", "[", "{")
        return []
    return [(name, "")] if {"bias": True, "first": t == 0, "last": t == len(rows) - 1}[name] else []


def made(feature, rows, t, shift=0):
    """Lists of (name with its offset, text) for each attribute of a feature."""
    if isinstance(feature, Term):
        offset = f"[{shift}]" if shift else ""
        return [[(name + offset, text)] for name, text in values(feature, rows, t + shift)]
    if isinstance(feature, Shifted):
        offsets = range(feature.first, feature.last + 1)
        return [one for offset in offsets for one in made(feature.feature, rows, t, shift + offset)]
    assert isinstance(feature, Join)
    parts = [made(part, rows, t, shift) for part in feature.parts]
    return [[piece for part in combination for piece in part] for combination in product(*parts)]


def attributes(features, tokens):
    """As `Features.attributes`; several features may make the same attribute, which counts once."""
    rows = [(token,) if isinstance(token, str) else token for token in tokens]
    found = []
    for t in range(len(rows)):
        names = {}
        for feature in features:
            for pieces in made(feature, rows, t):
                texts = [text[1:] for _, text in pieces if text]
                head = "|".join(name for name, _ in pieces)
                rule = head + ("=" if texts else "")
                # What is left of a text may put escaped bytes together that are UTF-8.
                made_text = (rule + "|".join(texts)).encode("utf-8", "surrogateescape")
                names.setdefault(rule, made_text.decode("utf-8", "surrogateescape"))
        found.append(list(names.values()))
    return found
