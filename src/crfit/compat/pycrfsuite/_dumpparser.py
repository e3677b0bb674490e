"""Contents of a model, as returned by `Tagger.info`.

The module has the name that it has in python-crfsuite, because pickled objects refer to it.
"""


class ParsedDump:
    """Contents of a model.

    Attributes
    ----------
    header : dict of str to str
        Fields of the file header.
    labels, attributes : dict of str to str
        Ids by name.
    transitions : dict of (str, str) to float
        Weights by label and next label.
    state_features : dict of (str, str) to float
        Weights by attribute and label.
    """

    def __init__(self) -> None:
        self.header: dict[str, str] = {}
        self.labels: dict[str, str] = {}
        self.attributes: dict[str, str] = {}
        self.transitions: dict[tuple[str, str], float] = {}
        self.state_features: dict[tuple[str, str], float] = {}
