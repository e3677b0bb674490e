"""Write characters.inc: the kind and the lower-case form of every character, as runs.

Run it with the newest Python at hand when a newer version of Unicode is wanted: models then make other
attributes of characters that were not assigned before, and of no others.

    python native/text/make_characters.py > native/text/characters.inc
"""

import sys
import unicodedata

KINDS = {"Lu": 1, "Lt": 1, "Ll": 2, "Lm": 3, "Lo": 3, "N": 4, "M": 5}
LAST = 0x10FFFF


def record(code: int) -> tuple[int, int]:
    """Kind, and distance to the lower-case character; a character of its own if that is several."""
    character = chr(code)
    category, lower = unicodedata.category(character), character.lower()
    kind = KINDS.get(category, KINDS.get(category[0], 0))
    return kind, ord(lower) - code if len(lower) == 1 else 0


def runs() -> list[tuple[int, int, int, int]]:
    """(first code, kind, distance, step): step 2 alternates with lower-case letters that stay as they are.

    In alternating runs, as in Latin Extended-A, upper-case letters are followed by their own lower case.
    """
    table = [record(code) for code in range(LAST + 1)]
    pair = [(1, 1), (2, 0)]
    found, code = [], 0
    while code <= LAST:
        end = code
        while table[end : end + 2] == pair:
            end += 2
        if end > code + 2:
            found.append((code, 1, 1, 2))
        else:
            end = code
            while end <= LAST and table[end] == table[code]:
                end += 1
                if table[end : end + 4] == 2 * pair:
                    break
            found.append((code, *table[code], 1))
        code = end
    return found


def main() -> None:
    """Print the file."""
    print(f"// Made by make_characters.py from Unicode {unicodedata.unidata_version}.")
    line = ""
    for first, kind, distance, step in runs():
        entry = f"{{{first:#x}, {distance}, {kind}, {step}}}, "
        if len(line) + len(entry) > 116:
            print(line.rstrip())
            line = ""
        line += entry
    print(line.rstrip())


if __name__ == "__main__":
    sys.exit(main())
