"""A component for spaCy's pipelines: entities or tags from a crfit model.

After ``pip install 'crfit[spacy]'`` spaCy knows it by name::

    nlp.add_pipe("crfit", config={"model": "parser.crfit"})

Each token becomes the attributes of a function of spaCy's registry of misc functions, which takes a `Doc` and
returns one list or dict of attributes for each token. Without one, models that take tokens get their texts;
tokens of white space then get no label.
"""

import os
import tempfile
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from spacy.language import Language
from spacy.tokens import Doc, Span, Token
from spacy.util import filter_spans, registry

from crfit.data import text
from crfit.errors import OptionError
from crfit.model import Model, load

if TYPE_CHECKING:
    from spacy.vocab import Vocab

__all__ = ["CrfitComponent", "make_crfit"]

#: What is set: ``doc.ents``, the group of ``doc.spans`` named ``spans_key``, or ``token.tag_``.
Sets: TypeAlias = Literal["ents", "spans", "tags"]
Attributes: TypeAlias = "Callable[[Doc], Iterable[Any]]"

_FILE = "model.crfit"
_BATCH = 256


@Language.factory(
    "crfit",
    default_config={
        "model": None,
        "attributes": None,
        "sets": "ents",
        "spans_key": "crfit",
        "threshold": 0.0,
        "overwrite": False,
    },
)
def make_crfit(
    nlp: Language,
    name: str,
    model: str | None = None,
    attributes: str | None = None,
    sets: str = "ents",
    spans_key: str = "crfit",
    threshold: float = 0.0,
    overwrite: bool = False,
) -> "CrfitComponent":
    """Make the component; spaCy calls this for ``nlp.add_pipe("crfit", config=...)``.

    Parameters
    ----------
    nlp, name
        Of spaCy.
    model : str, optional
        Model file. A pipeline saved with ``nlp.to_disk`` carries the model itself and does not need the
        file any more; a missing file is therefore reported by the first document, not here.
    attributes : str, optional
        Name of a function registered with ``@spacy.registry.misc``, which turns a `Doc` into the attributes
        of its tokens. Without it, the model gets the texts of the tokens, except white space.
    sets : {"ents", "spans", "tags"}, default="ents"
        Set ``doc.ents``, ``doc.spans[spans_key]`` or ``token.tag_``.
    spans_key : str, default="crfit"
        Name of the group of spans.
    threshold : float, default=0.0
        Leave out spans, or tags, with a probability below it.
    overwrite : bool, default=False
        Whether ``doc.ents`` replaces entities that are there. If not, those stay, and overlapping new ones
        are left out.
    """
    loaded = load(model) if model is not None and os.path.exists(model) else None
    made = CrfitComponent(
        nlp.vocab,
        loaded,
        name=name,
        attributes=attributes,
        sets=sets,
        spans_key=spans_key,
        threshold=threshold,
        overwrite=overwrite,
    )
    made.file = model
    return made


class CrfitComponent:
    """Labels the tokens of a `Doc`; probabilities are in ``span._.probability`` and ``token._.probability``.

    Options as in `make_crfit`, with `model` a `crfit.Model` or None, to be loaded by `from_disk` or
    `from_bytes`.
    """

    def __init__(
        self,
        vocab: "Vocab",
        model: Model | None,
        *,
        name: str = "crfit",
        attributes: str | None = None,
        sets: str = "ents",
        spans_key: str = "crfit",
        threshold: float = 0.0,
        overwrite: bool = False,
    ) -> None:
        if sets not in get_args(Sets):
            raise OptionError("sets", sets, f"choose {', '.join(get_args(Sets))}")
        if not 0.0 <= threshold <= 1.0:
            raise OptionError("threshold", threshold, "give a probability, from 0 to 1")
        self.vocab, self.name, self.sets, self.spans_key = vocab, name, sets, spans_key
        self.threshold, self.overwrite = threshold, overwrite
        self.attributes: Attributes | None = None if attributes is None else registry.misc.get(attributes)
        self.model = model
        self.file: str | None = None
        self._check()
        for owner in (Span, Token):
            if not owner.has_extension("probability"):
                owner.set_extension("probability", default=None)

    def __call__(self, doc: Doc) -> Doc:
        """Label one document."""
        return next(self.pipe([doc]))

    def pipe(self, stream: Iterable[Doc], *, batch_size: int = _BATCH) -> Iterator[Doc]:
        """Label documents, many at a time."""
        rest = iter(stream)
        while docs := list(islice(rest, batch_size)):
            self._label(docs)
            yield from docs

    def _label(self, docs: list[Doc]) -> None:
        if self.file is not None:
            self._load(self.file)
        model = self.model
        if model is None:
            remedy = "give a model file in the config, or load a saved pipeline"
            raise OptionError("model", None, remedy)
        tokens = [self._tokens(doc) for doc in docs]
        data = self._data(model, [one for one in tokens if one])
        if self.sets == "tags":
            ids = model.tag_dataset(data)
            table = model.marginals_dataset(data)
            chances = iter(zip(ids.tolist(), table[range(len(ids)), ids].tolist(), strict=True))
            names = model.labels
            for token, (label, p) in zip(chain(*tokens), chances, strict=True):
                if p >= self.threshold:
                    token.tag_ = names[label]
                token._.probability = p
            return
        found = iter(model.spans_many(data))
        for doc, own in zip(docs, tokens, strict=True):
            spans = []
            for start, end, kind, p in next(found) if own else ():
                if p >= self.threshold:
                    span = Span(doc, own[start].i, own[end - 1].i + 1, label=kind)
                    span._.probability = p
                    spans.append(span)
            if self.sets == "spans":
                doc.spans[self.spans_key] = spans
            elif self.overwrite or not doc.ents:
                doc.ents = spans
            else:
                doc.ents = filter_spans([*doc.ents, *_apart(spans, doc.ents)])

    def _load(self, file: str) -> None:
        """Load the model, if it is not there yet."""
        if self.model is None:
            self.model = load(file)
            self._check()

    def _tokens(self, doc: Doc) -> list[Token]:
        """The tokens to label: without white space, unless a function makes attributes of all tokens."""
        return [token for token in doc if self.attributes is not None or not token.is_space]

    def _data(self, model: Model, tokens: list[list[Token]]) -> Any:
        if self.attributes is not None:
            return model.encode([list(self.attributes(one[0].doc)) for one in tokens])
        words = [[token.text for token in one] for one in tokens]
        if model.template is None or not words:
            return model.encode(words)
        # Column files separate cells by white space.
        rows = ([[_cell(word)] for word in one] for one in words)
        return model.read(text.column_text("spaCy", rows), labelled=False, format="columns")

    def _check(self) -> None:
        """Raise OptionError if the model cannot be used with the options."""
        model = self.model
        if model is None:
            return
        if model.task != "tag":
            raise OptionError("model", "a classifier", "labels items, not tokens: give a model of sequences")
        takes_text = model.features is not None or (
            model.template is not None and model.template.n_columns == 1
        )
        if self.attributes is None and not takes_text:
            remedy = "this model needs attributes: name a function registered with @spacy.registry.misc"
            raise OptionError("attributes", None, remedy)

    # --- saving: the model file is part of the pipeline ---

    def to_disk(self, path: str | os.PathLike[str], *, exclude: Iterable[str] = ()) -> None:
        """Write the model into a folder."""
        folder = Path(path)
        folder.mkdir(parents=True, exist_ok=True)
        if self.file is not None and os.path.exists(self.file):
            self._load(self.file)
        if self.model is not None:
            self.model.save(folder / _FILE)

    def from_disk(self, path: str | os.PathLike[str], *, exclude: Iterable[str] = ()) -> "CrfitComponent":
        """Load the model from a folder."""
        file = Path(path) / _FILE
        if file.exists():
            self.model = load(file)
            self._check()
        return self

    def to_bytes(self, *, exclude: Iterable[str] = ()) -> bytes:
        """The model file as bytes, empty without a model."""
        if self.file is not None and os.path.exists(self.file):
            self._load(self.file)
        if self.model is None:
            return b""
        with tempfile.TemporaryDirectory() as folder:
            self.model.save(Path(folder) / _FILE)
            return (Path(folder) / _FILE).read_bytes()

    def from_bytes(self, data: bytes, *, exclude: Iterable[str] = ()) -> "CrfitComponent":
        """Load the model from the bytes of its file."""
        if data:
            with tempfile.TemporaryDirectory() as folder:
                (Path(folder) / _FILE).write_bytes(data)
                self.model = load(Path(folder) / _FILE, mapped=False)
            self._check()
        return self


def _cell(word: str) -> str:
    return "".join("_" if one.isspace() else one for one in word)


def _apart(spans: list[Span], others: Iterable[Span]) -> list[Span]:
    """The spans that share no token with others."""
    taken = {i for span in others for i in range(span.start, span.end)}
    return [span for span in spans if taken.isdisjoint(range(span.start, span.end))]
