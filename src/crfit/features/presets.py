"""Sets of features that come with crfit."""

#: Texts by name.
PRESETS = {
    "default": """\
bias
word
lower[-2..2]
lower_prefix 1..5
lower_suffix 1..5
lower_suffix 2..3[-1]
lower_suffix 2..3[1]
shape[-1..1]
short_shape[-2..2]
is title upper digit punctuation
has digit hyphen period
first
last
in_brackets
(lower & lower[1])[-1..0]
(short_shape & short_shape[1])[-1..0]
short_shape[-1] & short_shape & short_shape[1]
""",
}
