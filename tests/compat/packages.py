"""Run a package that imports pycrfsuite on some hundred inputs, and print what it gives as JSON.

``python tests/compat/packages.py usaddress`` needs the package and any library named pycrfsuite; two
environments can be compared by the output. `test_packages` does so in one.
"""

import itertools
import json
import random
import sys
import tempfile
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

N = 240
STREETS = [
    "Main",
    "Oak",
    "2nd",
    "Martin Luther King",
    "Old Mill",
    "Route 9",
    "N Sheridan",
    "County Line",
    "Élysée",
    "Park",
]
TYPES = ["St", "Ave.", "Boulevard", "Rd", "Lane", "Hwy", "", "Ct"]
UNITS = ["Apt 4B", "Suite 100", "#7", "PO Box 12", "Unit C", "", "", ""]
CITIES = ["Chicago, IL", "New York NY 10001", "St. Louis, MO 63101", "Fargo, North Dakota", "", "El Paso TX"]
GIVEN = [
    "George",
    "Mary Ann",
    "J. R.",
    "Dr. Ada",
    "Mr. Wei",
    "Zoë",
    "Jean-Luc",
    "Ms Priya",
    "Prof. Otto",
    "O.",
]
FAMILY = [
    "Bluth",
    "Smith Jr.",
    "de la Cruz",
    "O'Neill",
    "van Dyke III",
    "Müller",
    "Li",
    "Acme Inc.",
    "Brown & Sons LLC",
]
AMOUNTS = ["2", "1 1/2", "about 3", "a pinch of", "½", "200 g", "1 (14 oz) can", "3-4", ""]
FOODS = [
    "yellow onion",
    "flour",
    "olive oil",
    "fresh basil leaves",
    "chicken thighs",
    "sea salt",
    "crème fraîche",
]
NOTES = [
    ", finely chopped",
    ", to taste",
    " (optional)",
    "",
    ", plus more for serving",
    ", drained and rinsed",
]


def texts(*parts: list[str], form: str) -> list[str]:
    """Some of all combinations of the parts."""
    all_of_them = [form.format(*words) for words in itertools.product(*parts)]
    return [" ".join(text.split()) for text in random.Random(0).sample(all_of_them, N)]


def labelled() -> list[list[tuple[str, str]]]:
    """Addresses, with a label for each word."""
    found = []
    for k, text in enumerate(texts(STREETS, TYPES, UNITS, CITIES, form="{} {} | {} | {}")):
        pieces = zip(text.split("|"), ("Street", "Unit", "Place"), strict=True)
        words = [(word, label) for piece, label in pieces for word in piece.split()]
        found.append([(str(100 + 7 * k), "Number"), *words])
    return found


def addresses() -> Iterator[Any]:
    """Labels of usaddress, with the probabilities that its model has."""
    import usaddress

    for k, text in enumerate(texts(STREETS, TYPES, UNITS, CITIES, form="{} {} {} {}")):
        yield usaddress.parse(f"{11 * k} {text}")
        yield [round(usaddress.TAGGER.marginal("PlaceName", 0), 9)]


def people() -> Iterator[Any]:
    """Labels of probablepeople."""
    import probablepeople

    for text in texts(GIVEN, FAMILY, ["and", "&", "c/o", ","], GIVEN, form="{} {} {} {}"):
        yield probablepeople.parse(text)
        yield probablepeople.parse(text, type="person")


def parserator_model() -> Iterator[Any]:
    """Labels of a model that parserator trains."""
    import pycrfsuite
    from parserator.training import trainModel

    def features(tokens: list[str]) -> list[dict[str, Any]]:
        plain = [{"word": t.lower(), "digits": t.isdigit(), "n": float(len(t))} for t in tokens]
        return [{**item, "next": plain[i + 1] if i + 1 < len(plain) else {}} for i, item in enumerate(plain)]

    data = labelled()
    module = SimpleNamespace(tokens2features=features)
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "model.crfsuite")
        trainModel([("", row) for row in data[::2]], module, path)
        with pycrfsuite.Tagger().open(path) as tagger:
            for row in data:
                yield tagger.tag(features([word for word, _ in row]))


def nltk_tagger() -> Iterator[Any]:
    """Labels of NLTK's CRFTagger, trained and applied."""
    from nltk.tag import CRFTagger

    data = labelled()
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "model.crfsuite")
        CRFTagger(training_opt={"c2": 0.1}).train(data[::2], path)
        tagger = CRFTagger()
        tagger.set_model_file(path)
        yield from tagger.tag_sents([[word for word, _ in row] for row in data])


def thai() -> Iterator[Any]:
    """Syllables, sentences and chunks of PyThaiNLP, with the models that come with it."""
    from pythainlp.chunk import CRFChunkParser
    from pythainlp.corpus import thai_words
    from pythainlp.tokenize import crfcut, han_solo

    words, rng = sorted(thai_words()), random.Random(0)
    parser = CRFChunkParser()
    for _ in range(N):
        chosen = rng.sample(words, 12)
        yield han_solo.segment("".join(chosen))
        yield crfcut.segment(" ".join(chosen))
        yield parser.parse([(word, rng.choice(["NCMN", "VACT", "PREP"])) for word in chosen])


def ingredients() -> Iterator[Any]:
    """Parsed sentences of ingredient-parser-nlp; its versions before 2 use pycrfsuite."""
    from ingredient_parser import parse_ingredient

    for text in texts(AMOUNTS, ["cups", "tbsp", "large"], FOODS, NOTES, form="{} {} {}{}"):
        yield str(parse_ingredient(text))


def explained() -> Iterator[Any]:
    """What eli5 shows of a CRF: weights of attributes and transitions."""
    import eli5
    import sklearn_crfsuite

    data = labelled()
    X = [[[word, word[:2], word[-2:]] for word, _ in row] for row in data]
    y = [[label for _, label in row] for row in data]
    crf = sklearn_crfsuite.CRF(c1=0.01, c2=0.1, epsilon=1e-7, delta=1e-9).fit(X, y)
    for options in ({"top": 10}, {"feature_re": "^[A-S]", "top": 50}, {"targets": ["Place", "Unit"]}):
        shown = eli5.explain_weights(crf, **options)
        yield {
            target.target: {
                feature.feature: feature.weight
                for feature in [*target.feature_weights.pos, *target.feature_weights.neg]
            }
            for target in shown.targets
        }
        yield [row.tolist() for row in shown.transition_features.coef]
        assert "<table" in eli5.format_as_html(shown)
    yield from crf.predict(X).tolist()


PACKAGES: dict[str, Callable[[], Iterator[Any]]] = {
    "usaddress": addresses,
    "probablepeople": people,
    "parserator": parserator_model,
    "nltk": nltk_tagger,
    "pythainlp": thai,
    "ingredient_parser": ingredients,
    "eli5": explained,
}

if __name__ == "__main__":
    found = list(PACKAGES[sys.argv[1]]())
    if not {"pycrfsuite", "sklearn_crfsuite"} & set(sys.modules):
        sys.exit(f"this version of {sys.argv[1]} does not import pycrfsuite")
    trainer = import_module("pycrfsuite").Trainer
    print(json.dumps({"trainer": trainer.__module__, "found": found}))
