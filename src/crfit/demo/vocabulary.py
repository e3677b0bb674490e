"""Vocabulary of the built-in recipe task: kitchen words and a long tail of invented ingredients.

The vocabulary does not depend on the seed, so data from one seed can test a model trained on data from
another. Invented names are built from morphemes; the last one hints at the kind of ingredient, as in real
names (-berry, -seed). The frequency of the name of rank r is proportional to

    1 / ((r + 10) (1 + r / 150)),

which gives the invented names about half of all occurrences; most of them are seen once or twice.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from random import Random


@dataclass(frozen=True)
class Kind:
    """A kind of ingredient: its names, units and preparations."""

    names: tuple[str, ...]
    cumulative: tuple[float, ...]
    units: tuple[str, ...]
    adjectives: tuple[str, ...]
    preparations: tuple[str, ...]

    def name_at(self, u: float) -> str:
        """Name at the quantile ``u`` in [0, 1) of the frequency distribution."""
        return self.names[bisect_right(self.cumulative, u * self.cumulative[-1])]


def split_words(text: str) -> tuple[str, ...]:
    """Split a string at bars."""
    return tuple(text.split("|"))


_FIRST = split_words(
    "bar|bel|bren|cal|cor|dal|dra|fen|fla|gar|gul|hal|hor|jin|jor|kal|kes|lam|lor|mar|mel|mos|nar|nor|pel|pim|"
    "quin|quor|ras|rov|sal|sel|shi|tam|tor|ul|ur|ver|vos|wen|wil|yar|yel|zan|zim"
)
_MIDDLE = ("a", "e", "i", "o", "u", "an", "el", "en", "il", "in", "or", "ul", "am", "et", "is")
_LAST = {
    "produce": ("berry", "root", "fruit", "choke", "cress", "ga", "to", "ya", "bo"),
    "dry": ("seed", "nut", "bean", "meal", "flour", "rice", "no", "ta"),
    "liquid": ("milk", "oil", "wine", "gar", "water", "rin", "tto"),
    "spice": ("wort", "mint", "leaf", "weed", "mom", "ric", "ma"),
    "meat": ("fish", "fin", "fowl", "loin", "lla", "do", "ccio"),
}
_N_INVENTED = 1500

_NAMES = {
    "produce": (
        "onion|garlic|tomato|carrot|potato|lemon|bell pepper|celery|egg|apple|lime|ginger|mushroom|"
        "zucchini|red onion|green onion|sweet potato|cucumber|avocado|orange|jalapeno pepper|shallot|"
        "spinach|broccoli|cabbage|banana|eggplant|corn|leek|baby carrot|baby spinach|plum tomato|"
        "head lettuce|garlic clove|celery stalk|pear|mango|fennel bulb|scallion|parsnip|beet|radish|kale|"
        "romaine heart|fresh herb"
    ),
    "dry": (
        "flour|sugar|butter|brown sugar|all-purpose flour|powdered sugar|cream cheese|cheddar cheese|"
        "rice|parmesan cheese|walnut|oat|cornstarch|chocolate chip|almond|bread crumb|coconut|raisin|"
        "cocoa powder|pecan|mozzarella cheese|pasta|lentil|chickpea|black bean|whole wheat flour|"
        "sour cream|half and half|graham cracker crumb|small curd cottage cheese|ground almond|"
        "dry milk powder|quick oat|yeast|quinoa"
    ),
    "liquid": (
        "water|milk|olive oil|vegetable oil|chicken broth|heavy cream|lemon juice|soy sauce|white wine|"
        "vinegar|orange juice|buttermilk|whole milk|cream|coconut milk|honey|maple syrup|"
        "red wine vinegar|half and half|beef stock|hot water|dry sherry|whipping cream|sesame oil|"
        "tomato juice|hot sauce|cream of coconut"
    ),
    "spice": (
        "salt|pepper|black pepper|vanilla extract|cinnamon|baking powder|baking soda|cumin|paprika|"
        "oregano|ground cinnamon|nutmeg|cayenne pepper|thyme|chili powder|garlic powder|clove|basil|"
        "ginger|kosher salt|cream of tartar|ground clove|dry mustard|rosemary|turmeric|bay leaf|"
        "cinnamon stick|red pepper flake|coriander|sea salt|parsley|cilantro|allspice|whole clove|"
        "white pepper|sage|dill weed"
    ),
    "meat": (
        "chicken breast|ground beef|bacon|chicken|shrimp|ham|sausage|ground turkey|pork|beef|"
        "salmon fillet|chicken thigh|pork shoulder|stewing beef|tuna|crab meat|pork chop|lamb|"
        "smoked sausage|turkey breast|boneless chicken|ground pork|cod|scallop|chicken half|beef chuck"
    ),
}
_UNITS = {
    "produce": "||||cup|pound|clove|stalk|bunch|head|can|medium|piece|slice|kg|ear|sprig|bag",
    "dry": "cup|cup|tablespoon|ounce|g|package|can|stick|box|pound|kg|bag|jar",
    "liquid": "cup|cup|tablespoon|teaspoon|ml|can|quart|ounce|dash|bottle|splash|liter",
    "spice": "teaspoon|teaspoon|tablespoon|pinch|dash|sprig|clove||stick|cup|bunch|leaf",
    "meat": "pound|pound|ounce|slice||kg|g|package|can|piece|half|link",
}
_ADJECTIVES = {
    "produce": (
        "chopped|diced|sliced|fresh|minced|ripe|grated|crushed|roasted|frozen|shredded|whole|dried|"
        "cooked|sweet"
    ),
    "dry": (
        "chopped|melted|softened|grated|toasted|shredded|cooked|packed|sifted|crushed|dried|sweetened|"
        "ground|cold"
    ),
    "liquid": (
        "warm|cold|boiling|fresh|hot|melted|unsweetened|prepared|whipped|light|chilled|fresh squeezed"
    ),
    "spice": (
        "ground|dried|fresh|chopped|crushed|freshly ground|coarse|minced|smoked|whole|hot|sweet|powdered"
    ),
    "meat": (
        "cooked|ground|boneless|skinless|smoked|cubed|shredded|lean|sliced|thick cut|crumbled|frozen|cured"
    ),
}
_PREPARATIONS = {
    "produce": (
        "chopped|diced|minced|sliced|peeled|seeded|grated|halved|quartered|cored|crushed|julienned|"
        "trimmed|beaten"
    ),
    "dry": (
        "chopped|softened|melted|divided|sifted|grated|toasted|shredded|crushed|drained|rinsed|packed|soaked"
    ),
    "liquid": "divided|warmed|chilled|whipped|melted|heated|scalded|strained|lukewarm|cold",
    "spice": "chopped|divided|crushed|minced|crumbled|ground|toasted|torn|bruised",
    "meat": "cubed|sliced|cooked|drained|trimmed|crumbled|deveined|halved|shredded|thawed|pounded|browned",
}

_ADJECTIVE_RANK = {
    word: i
    for i, word in enumerate(sorted({w for words in _ADJECTIVES.values() for w in split_words(words)}))
}


def is_lexicalised(adjective: str, name: str) -> bool:
    """Whether an adjective belongs to the name ("dried oregano") or is a preparation ("chopped onion").

    There is no rule, a model must have seen the pair: an arbitrary but fixed third of the pairs belongs
    together.
    """
    head = name.split()[-1]
    code = sum((i + 1) * ord(letter) for i, letter in enumerate(head))
    return (7 * _ADJECTIVE_RANK[adjective] + code) % 11 < 4


def _invented(kind: str, random: Random) -> list[str]:
    """Distinct names of one kind; one in five is a noun phrase of two words."""
    names: dict[str, None] = {}

    def pick(items: Sequence[str]) -> str:
        return items[int(random.random() * len(items))]

    while len(names) < _N_INVENTED:
        word = pick(_FIRST) + pick(_MIDDLE) + pick(_LAST[kind])
        if random.random() < 0.2:
            word = f"{pick(_FIRST)}{pick(_MIDDLE)}{pick(('n', 'sh', 'l', 'ed', 'ic'))} {word}"
        names[word] = None
    return list(names)


def _make_kind(kind: str, seed: int) -> Kind:
    common = split_words(_NAMES[kind])
    names = (*common, *_invented(kind, Random(seed)))
    return Kind(
        names=names,
        cumulative=tuple(accumulate(1.0 / ((r + 10.0) * (1.0 + r / 150.0)) for r in range(len(names)))),
        units=split_words(_UNITS[kind]),
        adjectives=split_words(_ADJECTIVES[kind]),
        preparations=split_words(_PREPARATIONS[kind]),
    )


KINDS = {kind: _make_kind(kind, seed) for seed, kind in enumerate(_NAMES, start=1)}
