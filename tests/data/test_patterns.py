"""Wapiti's patterns: documented results, an independent matcher, hostile expressions, and Wapiti itself."""

import logging
import pickle
import string
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import crfit
from crfit.data.templates import Template, detect_dialect, load_template
from crfit.data.text import Input
from crfit.errors import DataError, OptionError

ROWS = [["He", "PRP"], ["reckons", "VBZ"], ["THE", "DT"]]


def patterns(text, **options):
    return Template(text, dialect="wapiti", **options)


def expanded(pattern, token):
    """What a pattern makes of a sequence of one token."""
    return patterns(f"u{pattern}").expand([[token]])[0][0][0][1:]


def test_every_kind_of_line():
    template = patterns(
        "# comment\n\nU00:%x[-1,0]/%X[0,0]  # more\n*both:%x[0,1]\nb\nB1:%X[0,1]\n*\nubias\n   \n"
    )
    attributes, edges = template.expand(ROWS)
    assert attributes == [
        ["u00:_x-1/he", "*both:PRP", "*", "ubias"],
        ["u00:He/reckons", "*both:VBZ", "*", "ubias"],
        ["u00:reckons/the", "*both:DT", "*", "ubias"],
    ]
    assert edges == [[], ["*both:VBZ", "b1:vbz", "*"], ["*both:DT", "b1:dt", "*"]]
    assert template.plain_transitions
    assert (template.n_columns, template.n_attributes, template.n_edge_attributes) == (2, 4, 3)
    assert template.lines == ["u00:%x[-1,0]/%X[0,0]", "*both:%x[0,1]", "b", "b1:%X[0,1]", "*", "ubias"]


def test_equal_lines_count_twice():
    template = patterns("b\nb\n*c\nu\nu\n")
    assert template.expand([["a"], ["b"]]) == ([["*c", "u", "u"]] * 2, [[], ["b", "b"]])
    assert template.plain_transitions  # *c, the first line that is there once
    assert not patterns("b\nb\nu:%x[0,0]").plain_transitions


def test_cells_outside():
    attributes, _ = patterns("".join(f"u%x[{row},0]\n" for row in range(-6, 7))).expand([["w"]])
    before = ["_x-#", "_x-#", "_x-4", "_x-3", "_x-2", "_x-1"]
    after = [name.replace("-", "+") for name in reversed(before)]
    assert attributes == [[f"u{name}" for name in (*before, "w", *after)]]
    assert expanded(r'%t[-1,0,"^_x-\d$"]%X[1,0]%m[-9,0,"#"]'.replace("#", "."), "w") == "true_x+1_"


def test_absolute_positions():
    attributes, _ = patterns("u%x[@1,0]%x[@-1,0]\nu%x[@2,0]%x[@-2,0]\nu%x[@0,0]\nu%x[@4,0]%x[@-4,0]").expand(
        ROWS
    )
    assert attributes == [["uHeTHE", "ureckonsreckons", "u_x-1", "u_x+1_x-1"]] * 3


def test_numbers_are_read_as_c_does():
    rows = [[str(i)] for i in range(20)]
    for text, row in (
        ("+1", 1),
        ("010", 8),
        ("0x10", 16),
        ("0XA", 10),
        (" -0", 0),
        ("-01", -1),
        ("\t+07", 7),
    ):
        assert patterns(f"u%x[{text},\t0]").expand(rows)[0][1] == [f"u{1 + row}"]


@pytest.mark.parametrize(
    ("expression", "token", "found"),
    [
        (r"\d\d*", "Abc123", "1"), (r"\d*", "Abc123", ""), (r"^\u\l*", "Abc123", "A"),
        (r"c.*$", "Abc123", "c123"), (r"\u?\l\l", "Abc", "Abc"), (r"b?c", "Abc", "bc"), (r"^b", "Abc", None),
        (r"c$", "abcc", "c"), (r"^$", "a", None), ("", "a", ""), (r"$", "a", ""), (r"^a*$", "aaa", "aaa"),
        (r"\.\*", "a.*", ".*"), (r"\"", 'a"b', '"'), (r"a^", "a^", "a^"), (r"$a", "$a", "$a"),
        (r"$*", "$", ""),
        (r"\p\P", "a-b", "-b"), (r"\w\W", "a-b", "a-"), (r"\S\S", "ab", "ab"), (r"\s", "ab", None),
        (r"\A", "aé", "é"), (r"\a", "é1", None), (r"\L\U", "Aa", "Aa"), (r"\D\d", "a1", "a1"),
        (r"\q", "q", "q"),
        ("..", "é", "é"), ("é", "aé", "é"),
    ],
)  # fmt: skip
def test_expressions(expression, token, found):
    if expression in (r"\A",):  # one byte of a character
        assert expanded(f'%m[0,0,"{expression}"]', token).encode("utf-8", "surrogateescape") == b"\xc3"
    else:
        assert expanded(f'%m[0,0,"{expression}"]', token) == (found or "")
    assert expanded(f'%t[0,0,"{expression}"]', token) == str(found is not None).lower()
    assert expanded(f'%T[0,0,"{expression}"]', token) == str(found is not None).lower()


def test_upper_case_commands_lower_ascii():
    assert expanded('%M[0,0,"^.*$"]/%m[0,0,"^.*$"]', "ÀB") == "Àb/ÀB"


def test_after_a_question_mark_wapiti_counts_too_many_bytes():
    # The tool's own results. The string ends where the count passes the end of the token.
    assert expanded('1:%m[0,0,"a?ab"]|z', "abX") == "1:abX|z"
    assert expanded('1:%m[0,0,"a?ab"]|z', "ab") == "1:ab"
    assert expanded('2:%m[0,0,"a?abX"]/%x[0,0]', "abXabb") == "2:abXa/abXabb"
    assert expanded('2:%M[0,0,"a?ABX"]/%x[0,0]', "ABX") == "2:abx/ABX"


def match_by_backtracking(items, end, text):
    """Position and size of a match as Wapiti finds it: by trying, with its count; None without a match."""

    def fits(item, rest):
        return bool(rest) and rest[0] in item[0]

    def attempt(i, rest, count):
        """Whether items i, i + 1, ... match, and the count afterwards."""
        if i == len(items):
            return (not end or not rest), count
        item = items[i]
        if item[1] == "*":
            while True:
                found, after = attempt(i + 1, rest, count)
                if found:
                    return True, after
                count += 1
                if not fits(item, rest):
                    return False, count
                rest = rest[1:]
        if item[1] == "?":
            if fits(item, rest):
                found, count = attempt(i + 1, rest[1:], count + 1)
                if found:
                    return True, count
                count -= 1
            return attempt(i + 1, rest, count)
        if not fits(item, rest):
            return False, count + 1
        return attempt(i + 1, rest[1:], count + 1)

    for start in range(len(text) + 1):
        found, size = attempt(0, text[start:], 0)
        if found:
            return start, size
    return None


ASCII = "".join(map(chr, range(33, 127)))
CLASSES = {
    ".": ASCII, r"\d": string.digits, r"\a": string.ascii_letters,
    r"\w": string.ascii_letters + string.digits,
    r"\l": string.ascii_lowercase, r"\u": string.ascii_uppercase, r"\p": string.punctuation,
    "a": "a", "B": "B",
    r"\.": ".", "1": "1",
}  # fmt: skip
CLASSES |= {rf"\{name[1].upper()}": set(ASCII) - set(CLASSES[name]) for name in (r"\d", r"\l", r"\u", r"\p")}
items = st.lists(st.tuples(st.sampled_from(sorted(CLASSES)), st.sampled_from(["", "", "*", "?"])), max_size=6)


@settings(max_examples=500, deadline=None)
@given(items, st.booleans(), st.text("aaB1.", min_size=1, max_size=8))
def test_matches_agree_with_backtracking(found_items, end, text):
    expression = "".join(name + repeat for name, repeat in found_items) + "$" * end
    found = match_by_backtracking([(CLASSES[name], repeat) for name, repeat in found_items], end, text)
    assert expanded(f'%t[0,0,"{expression}"]', text) == str(found is not None).lower()
    start, size = found or (0, 0)
    cut = start + size > len(text)
    assert expanded(f'%m[0,0,"{expression}"]|', text) == text[start : start + size] + ("" if cut else "|")


@pytest.mark.parametrize(
    "expression",
    ["a*" * 500 + "b", "a?" * 500 + "a" * 499 + "b", ".*" * 999 + "b", "a?" * 1000, r"\w*\d" * 300],
)
def test_hostile_expressions_take_little_time(expression):
    begin = time.perf_counter()
    for token in ("a" * 2000, "a" * 499 + "c"):
        assert expanded(f'%t[0,0,"{expression}$"]', token) in ("true", "false")
        expanded(f'%m[0,0,"{expression}"]', token)
    assert time.perf_counter() - begin < 20  # backtracking would need longer than the universe has


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("x0:%x[0,0]", "begins with u .*, b .* or \\*"), (" u0:%x[0,0]", "begins with u"),
        ("u%y[0,0]", r"write %x\[row,column\]"), ("u100%", r"write %x"), ("u%", r"write %x"),
        ("u%x(0,0)", "write %x"),
        ("u%x[a,0]", "row is a whole number"), ("u%x[0x,0]", "row is a whole number"),
        ("u%x[--1,0]", "row is"),
        ("u%x[9999999999,0]", "row is a whole number"), ("u%x[@@1,0]", "row is"), ("u%x[08,0]", "comma"),
        ("u%x[0]", "comma"), ("u%x[0 ,0]", "comma"), ("u%x[0,-1]", "column is a whole number"),
        ("u%x[0,0 ]", "closing bracket"), ("u%x[0,0", "closing bracket"), ('u%x[0,0,"a"]', "closing bracket"),
        ("u%t[0,0]", "expression in quotes"), ('u%m[0,0,"a]', "no closing quote"),
        ('u%m[0,0,"a\\"]', "closing quote"),
        ('u%m[0,0,"a#b"]', "# begins a comment"), ('u%t[0,0,"*a"]', "nothing to repeat"),
        ('u%t[0,0,"^?"]', "nothing to repeat"), ('u%t[0,0,"ab**"]', "nothing to repeat"),
        (f'u%t[0,0,"{"a" * 1001}"]', "more than 1000 characters"),
    ],
)  # fmt: skip
def test_bad_lines_are_named(line, message):
    with pytest.raises(DataError, match=rf"^my\.patterns:3: .*{message}"):
        patterns(f"u00:%x[0,0]\n# comment\n{line}\n", name="my.patterns")


@given(st.binary(max_size=60))
def test_any_bytes_are_patterns_or_an_error(data):
    for text in (data, b"u%t[" + data, b'u%m[0,0,"' + data + b'"]\n*' + data):
        try:
            template = patterns(text.decode("utf-8", "surrogateescape"))
        except DataError as error:
            str(error).encode()
        else:
            template.expand([["a"] * template.n_columns] * 3 if 0 < template.n_columns < 99 else [])


@pytest.mark.parametrize(
    ("text", "dialect"),
    [
        ("U0:%x[0,0]\nB\n", "crfpp"), ("# u %X[0,0]\nU0:%x[0,0]# u\nB#\n", "crfpp"), ("U0:u%x[0,0]", "crfpp"),
        ("U0:%x[0,0]\nb\n", "wapiti"), ("*\n", "wapiti"), ("U:%X[0,0]", "wapiti"), ("U:%x[+1,0]", "wapiti"),
        ('U:%t[0,0,"a"]', "wapiti"), ("B:%x[@1,0]", "wapiti"), ('U:%M[0,0,"a"]', "wapiti"),
    ],
)  # fmt: skip
def test_dialects_are_detected(text, dialect, tmp_path):
    assert detect_dialect(text) == dialect
    (tmp_path / "any").write_text(text)
    template = load_template(tmp_path / "any")
    assert template == Template(text, dialect=dialect)
    assert template != Template("U0:%x[0,0]", dialect="wapiti" if dialect == "crfpp" else "crfpp")
    assert pickle.loads(pickle.dumps(template)) == template


def test_unknown_dialects():
    with pytest.raises(OptionError, match="choose crfpp or wapiti"):
        Template("U", dialect="mallet")


def test_rows_may_differ():
    text = "a P X\nb Y\nc Q R X\n\nd Y\n"
    data = crfit.text.read(Input("rows", text.encode()), template=patterns("u:%x[0,0]\nb"))
    assert data.n_sequences == 2
    assert data.label_alphabet.strings() == ["X", "Y"]
    with pytest.raises(DataError, match=r"rows:2: .* but the template uses column 1"):
        crfit.text.read(Input("rows", text.encode()), template=patterns("u:%x[0,1]\nb"))


def observations(path):
    """Strings of the observations in a model file, in order."""
    blocks = path.read_bytes().decode("utf-8", "surrogateescape").split("#qrk#")
    return [line.partition(":")[2][:-1] for line in blocks[2].split("\n")[1:] if line.endswith(",")]


def test_against_wapiti_itself(tmp_path):
    theirs = pytest.importorskip("wapiti", reason="needs libwapiti")
    logging.getLogger().setLevel(logging.ERROR)
    names = [
        "",
        r"\d",
        r"\d*",
        r"^\u",
        r"\u\l*$",
        r"\p",
        r"\w?\W",
        r".*\.",
        "é?",
        r"\L*a",
        r"a?ab",
        r"b?\a$",
        "^.?.$",
    ]
    lines = [
        f'u{i}:%{c}[{row},0,"{name}"]|' for i, name in enumerate(names) for c in "tTmM" for row in ("0", "-1")
    ]
    lines += ["U:%X[0,0]%x[-7,0]%x[@1,0]/%X[@-2,1] # comment", "u:%x[010,0]%x[0x1, 0]%x[ +2,1]", "u:%x[@0,0]"]
    rows = [[["Abc12.", "x"], ["a-b", "Y"], ["é.É", "z"], ["ab", "Q"], ["aab.1", "Q"]], [["Z", "W"]]]
    model = theirs.Model(patterns="\n".join(lines), maxiter=1, nthread=1)
    model.train(["\n".join(" ".join([*row, "L" + row[1]]) for row in sequence) for sequence in rows])
    model.save(str(tmp_path / "model"))
    template = patterns("\n".join(lines))
    own = [name for sequence in rows for position in template.expand(sequence)[0] for name in position]
    assert list(dict.fromkeys(own)) == observations(tmp_path / "model")
