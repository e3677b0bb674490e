"""Grammar of the built-in recipe task, which generates ingredient lines word by word.

    line     = measured | in container | without quantity | part of
    measured = QTY [SIZE] [UNIT ["of"]] named after          2 large cloves of garlic , minced
    named    = [PREP] NAME ["or" NAME]                       chopped walnuts or pecans
    after    = [[","] PREP] [[","] COMMENT]                  , peeled and diced ( optional )

A line is a list of spans, each a type ("" for none) and its words. Three stages produce it: the grammar
generates it, an annotator labels it with varying conventions and mistakes, a typist adds typos.
"""

from collections.abc import Callable, Sequence
from typing import TypeAlias, TypeVar

from crfit.demo.vocabulary import KINDS, Kind, is_lexicalised, split_words

Line: TypeAlias = list[tuple[str, str]]
Span: TypeAlias = tuple[str, str]
T = TypeVar("T")

_FRACTIONS = ("1/2", "1/4", "3/4", "1/3", "2/3", "1/8", "½", "¼", "¾", "⅓")
_NUMBER_WORDS = ("one", "two", "three", "a", "an", "half", "half a", "a few", "several", "a couple")
_SINGULAR = frozenset({"1", "one", "a", "an", "half", "half a"})
_SIZES = ("large", "small", "medium", "large", "extra large", "jumbo", "thick", "thin", "big", "medium-size")
_MEASURES = split_words("cup|tablespoon|teaspoon|ounce|pound|quart|liter|g|kg|ml|pinch|dash|splash")
_CONTAINERS = ("can", "can", "package", "jar", "box", "bag", "bottle", "container", "envelope")
_SHORT_UNITS = {
    "teaspoon": ("tsp", "tsp.", "t"),
    "tablespoon": ("tbsp", "Tbsp", "tbsp.", "T", "tbs"),
    "ounce": ("oz", "oz."),
    "pound": ("lb", "lbs", "lb."),
    "cup": ("c", "c.", "C"),
    "package": ("pkg", "pkg.", "packet"),
    "liter": ("l", "L", "litre"),
    "quart": ("qt", "qt."),
    "g": ("g", "gram", "grams", "gr"),
}
_COUNTABLE = split_words(
    "onion|tomato|carrot|potato|lemon|bell pepper|egg|apple|lime|mushroom|cucumber|avocado|orange|shallot|"
    "banana|eggplant|leek|clove|stalk|pear|mango|bulb|beet|scallion|parsnip|heart|herb|walnut|chip|almond|crumb|raisin|"
    "pecan|lentil|chickpea|bean|oat|leaf|stick|flake|breast|sausage|fillet|thigh|chop|scallop|half|berry|root|"
    "fruit|seed|nut|to|bo|do|lla|ga|ya"
)
_CUT = split_words("chopped|diced|minced|sliced|grated|ground|crushed|shredded|toasted|cubed|crumbled")
_ADVERBS = split_words("finely|coarsely|thinly|freshly|lightly|roughly|very finely")
_PIECES = split_words("cubes|strips|pieces|slices|chunks|rounds|wedges|matchsticks|rings|halves")
_COMMENTS = split_words(
    "to taste|optional|for garnish|or to taste|as needed|plus more for dusting|if desired|or more as needed|"
    "for serving|plus extra for greasing|for frying|or as desired|your choice|for the topping|or less|"
    "preferably organic|at room temperature|homemade or bought"
)
_EITHER_WAY = split_words("divided|at room temperature|packed|not drained|undrained|reserved|as desired")
_SLIPS = {"PREP": "COMMENT", "COMMENT": "PREP", "UNIT": "NAME", "SIZE": "COMMENT"}


class LineWriter:
    """Draws random lines: spans from the grammar, labelled by an annotator, typed with errors."""

    def __init__(self, draw: Callable[[], float]) -> None:
        self._draw = draw

    def line(self) -> Line:
        """Draw the next line."""
        kind = KINDS[self._pick(("produce", "produce", "dry", "dry", "liquid", "spice", "spice", "meat"))]
        form = self._draw()
        if form < 0.07:
            spans = self._without_quantity(kind)
        elif form < 0.10:
            spans = self._part_of()
        elif form < 0.24:
            spans = self._in_container(kind)
        else:
            spans = self._measured(kind)
        return self._typed(self._annotated(spans))

    def _chance(self, probability: float) -> bool:
        return self._draw() < probability

    def _pick(self, items: Sequence[T]) -> T:
        return items[int(self._draw() * len(items))]

    # The grammar: each method returns the spans, or the words, of one part of a line.

    def _measured(self, kind: Kind) -> list[Span]:
        unit = self._pick(kind.units)
        quantity = self._quantity(whole=unit not in _MEASURES)
        plural = quantity not in _SINGULAR and quantity not in _FRACTIONS
        spans: list[Span] = [("", "about")] if self._chance(0.03) else []
        if unit in ("g", "kg", "ml") and self._chance(0.5):
            spans.append(("QTY", self._pick(("100", "125", "200", "250", "500", "2", "50")) + unit))
        else:
            spans.append(("QTY", quantity))
            if unit not in _MEASURES and self._chance(0.3):
                spans.append(("SIZE", self._pick(_SIZES)))
            if unit:
                spans.append(("UNIT", self._unit(unit, plural)))
        if unit and self._chance(0.12):
            spans.append(("", "of"))
        return spans + self._named(kind, plural=plural or unit != "") + self._after(kind)

    def _in_container(self, kind: Kind) -> list[Span]:
        quantity = self._quantity(whole=True)
        amount = self._pick(("14.5", "15", "8", "28", "6", "10 3/4", "16", "4", "3.5"))
        words = f"{amount} {self._pick(('oz', 'ounce', 'oz.'))}"
        if self._chance(0.2):
            words = f"{self._pick(('400', '250', '125', '800'))} {self._pick(('g', 'ml'))}"
        size: list[Span] = [("SIZE", words)]
        if self._chance(0.15):
            size = [("SIZE", words.replace(" ", "-"))]
        elif self._chance(0.8):
            size = [("", "("), *size, ("", ")")]
        unit = self._unit(self._pick(_CONTAINERS), plural=quantity not in _SINGULAR)
        named = self._named(kind, plural=True, canned=True)
        return [("QTY", quantity), *size, ("UNIT", unit), *named, *self._after(kind)]

    def _without_quantity(self, kind: Kind) -> list[Span]:
        spans = self._named(kind, plural=False)
        if self._chance(0.35):
            spans += [
                ("", self._pick(("and", "&", "and/or"))),
                ("NAME", KINDS["spice"].name_at(self._draw())),
            ]
        if self._chance(0.3):
            spans.append(("", ","))
        return [*spans, ("COMMENT", self._comment(kind))]

    def _part_of(self) -> list[Span]:
        kind = KINDS["produce"]
        quantity = self._quantity(whole=True)
        part = self._pick(("juice", "zest", "grated zest", "juice and zest", "whites", "seeds"))
        name = _inflected(kind.name_at(self._draw()), plural=quantity not in _SINGULAR)
        return [("NAME", part), ("", "of"), ("QTY", quantity), ("NAME", name), *self._after(kind)]

    def _quantity(self, *, whole: bool) -> str:
        """Words of a quantity; fractions mostly occur with measures, rarely with counted things."""
        number = str(1 + int(8 * self._draw() * self._draw()))
        u = self._draw() * (0.75 if whole and self._chance(0.85) else 1.0)
        if u < 0.48:
            return number
        if u < 0.60:
            upper = str(int(number) + 1 + int(2 * self._draw()))
            return number + self._pick(("-", " - ", " to ", " or ")) + upper
        if u < 0.68:
            return self._pick(_NUMBER_WORDS)
        if u < 0.86:
            return self._pick(_FRACTIONS)
        if u < 0.95:
            return f"{number} {self._pick(_FRACTIONS)}"
        return number + self._pick((".5", ".25", "½", "¼"))

    def _unit(self, unit: str, plural: bool) -> str:
        short = _SHORT_UNITS.get(unit)
        if short and self._chance(0.45):
            return self._pick(short)
        if unit in ("g", "kg", "ml", "medium"):
            return unit
        words = unit
        if plural:
            words = unit[:-1] + "ves" if unit.endswith("f") else unit + ("es" if unit[-1] in "hx" else "s")
        heaped = unit in ("cup", "tablespoon", "teaspoon") and self._chance(0.05)
        return f"{self._pick(('heaping', 'scant', 'rounded'))} {words}" if heaped else words

    def _named(self, kind: Kind, *, plural: bool, canned: bool = False) -> list[Span]:
        """Name with an adjective, sometimes an alternative; in cans the adjective is part of the name."""
        name = kind.name_at(self._draw())
        words = _inflected(name, plural and self._chance(0.8))
        spans: list[Span] = [("NAME", words)]
        if self._chance(0.38):
            adjective = self._pick(kind.adjectives)
            if canned or is_lexicalised(adjective, name):
                spans = [("NAME", f"{adjective} {words}")]
            else:
                if adjective in _CUT and self._chance(0.3):
                    adjective = f"{self._pick(_ADVERBS)} {adjective}"
                spans = [("PREP", adjective), *spans]
        if self._chance(0.06):
            spans += [("", "or"), ("NAME", _inflected(kind.name_at(self._draw()), plural))]
        return spans

    def _after(self, kind: Kind) -> list[Span]:
        """Preparations and comments after the name, with or without a comma."""
        spans: list[Span] = []
        if self._chance(0.42):
            if self._chance(0.9):
                spans.append(("", ","))
            spans.append(("PREP", self._preparation(kind)))
        if self._chance(0.16):
            comment: Span = ("COMMENT", self._comment(kind))
            if self._chance(0.4):
                return [*spans, ("", "("), comment, ("", ")")]
            if self._chance(0.6):
                spans.append(("", ","))
            spans.append(comment)
        elif self._chance(0.05):
            spans += [("", ","), (self._pick(("PREP", "COMMENT")), self._pick(_EITHER_WAY))]
        return spans

    def _preparation(self, kind: Kind) -> str:
        words = self._pick(kind.preparations)
        u = self._draw()
        if words in _CUT:
            if u < 0.35:
                return f"{self._pick(_ADVERBS)} {words}"
            if u < 0.55:
                length = self._pick(("1/2-inch", "1 inch", "thin", "bite-size", "1/4 inch", "small"))
                verb = words if u < 0.45 else "cut"
                return f"{verb} {self._pick(('into', 'in'))} {length} {self._pick(_PIECES)}"
        second = self._pick(kind.preparations)
        return f"{words} and {second}" if u > 0.85 and second != words else words

    def _comment(self, kind: Kind) -> str:
        u = self._draw()
        if u < 0.1:
            return f"{self._pick(('such as', 'preferably', 'or use'))} {kind.name_at(self._draw())}"
        if u < 0.2:
            return f"about {self._quantity(whole=False)} {self._pick(('cups', 'pounds', 'oz', 'total'))}"
        return self._pick(_COMMENTS)

    def _annotated(self, spans: list[Span]) -> list[Span]:
        """Label by one of three sets of conventions; one line in twenty has a mistake."""
        u = self._draw()
        if u < 0.06:  # adjectives belong to the name, alternatives are comments
            spans = _joined([("PREP", "NAME", "NAME"), ("", "NAME", "COMMENT")], spans)
        elif u < 0.11:  # a size belongs to the span after it
            spans = _joined([("SIZE", "UNIT", "UNIT"), ("SIZE", "NAME", "NAME")], spans)
        if self._chance(0.05):
            i = int(self._draw() * len(spans))
            kind, words = spans[i]
            first, _, rest = words.partition(" ")
            slip = [(_SLIPS.get(kind, kind), words)]
            if kind == "NAME" and rest:
                slip = [("PREP", first), ("NAME", rest)]
            spans = [*spans[:i], *slip, *spans[i + 1 :]]
        return spans

    def _typed(self, spans: list[Span]) -> Line:
        """Words with labels and typos: missing commas, swapped, dropped or doubled letters, odd capitals."""
        case = self._draw()
        line: Line = []
        for kind, text in spans:
            if text == "," and self._chance(0.1):
                continue
            for i, word in enumerate(text.split(" ")):
                typed = self._misspelt(word)
                if case < 0.02:
                    typed = typed.upper()
                elif case < 0.04 or (case < 0.12 and not line):
                    typed = typed[:1].upper() + typed[1:]
                line.append((typed, f"{'I' if i else 'B'}-{kind}" if kind else "O"))
        return line

    def _misspelt(self, word: str) -> str:
        if len(word) < 4 or not word.isalpha() or not self._chance(0.02):
            return word
        i = 1 + int(self._draw() * (len(word) - 2))
        error = self._draw()
        if error < 0.4:
            return word[:i] + word[i + 1] + word[i] + word[i + 2 :]
        return word[:i] + word[i + 1 :] if error < 0.75 else word[:i] + word[i] + word[i:]


def _inflected(name: str, plural: bool) -> str:
    if not plural or not name.endswith(_COUNTABLE):
        return name
    if name.endswith(("leaf", "half")):
        return name[:-1] + "ves"
    if name.endswith("berry"):
        return name[:-1] + "ies"
    return name + ("es" if name.endswith("to") else "s")


def _joined(rules: Sequence[tuple[str, str, str]], spans: list[Span]) -> list[Span]:
    """Join neighbouring spans by rules (first type, second type, joint type); type "" means "or"."""
    joined: list[Span] = []
    for kind, words in spans:
        last, before = joined[-1] if joined else ("", "")
        for first, second, both in rules:
            if (last, kind) == (first, second) and (first or before == "or"):
                joined[-1] = (both, f"{before} {words}")
                break
        else:
            joined.append((kind, words))
    return joined
