"""Examples of docs/architecture.md and docs/racing.md, for the tests that run them."""

import re
from pathlib import Path
from typing import Any

PAGE = Path(__file__).resolve().parents[1] / "docs" / "architecture.md"
RACING = PAGE.with_name("racing.md")


def run_example(section: str, page: Path = PAGE) -> dict[str, Any]:
    """Run the Python blocks of a section, by its heading, and return the names that they define."""
    text = page.read_text(encoding="utf-8")
    found = re.search(rf"^## {re.escape(section)}\n(.*?)(?=^## |\Z)", text, re.M | re.S)
    assert found is not None, f"{page.name} has no section {section!r}"
    blocks = re.findall(r"^```python\n(.*?)^```", found.group(1), re.M | re.S)
    assert blocks, f"section {section!r} has no Python"
    names: dict[str, Any] = {"__name__": "example"}
    for block in blocks:
        exec(compile(block, f"{page.name}: {section}", "exec"), names)
    return names
