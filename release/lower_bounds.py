"""The oldest version of each dependency that pyproject.toml allows, for ``make test-oldest``.

``python -m release.lower_bounds > release/lower_bounds.txt``
"""

from importlib.metadata import requires
from pathlib import Path

from packaging.requirements import Requirement

STORED = Path(__file__).with_name("lower_bounds.txt")
#: What users install, and what the tests need; not the tools of developers.
EXTRAS = ("", "sklearn", "scipy", "zstd", "plot", "pandas", "serve", "spacy", "test")
#: Only compared with, in tests that are skipped without it: its oldest version needs newer ones of others.
LEFT_OUT = {"glum"}


def lower_bounds() -> dict[str, str]:
    """Oldest version of each requirement of crfit and of its extras."""
    found: dict[str, str] = {}
    for requirement in map(Requirement, requires("crfit") or []):
        wanted = requirement.marker is None or any(
            requirement.marker.evaluate({"extra": extra}) for extra in EXTRAS
        )
        if not wanted or requirement.name in LEFT_OUT:
            continue
        bounds = [spec.version for spec in requirement.specifier if spec.operator == ">="]
        if len(bounds) != 1:
            raise SystemExit(f"{requirement}: give one lower bound, as in {requirement.name}>=1.0")
        if found.setdefault(requirement.name, bounds[0]) != bounds[0]:
            raise SystemExit(
                f"{requirement.name}: two lower bounds, {found[requirement.name]} and {bounds[0]}"
            )
    return found


def as_constraints() -> str:
    """The versions as a file of constraints for pip."""
    return "".join(f"{name}=={version}\n" for name, version in sorted(lower_bounds().items()))


if __name__ == "__main__":
    print(as_constraints(), end="")
