"""Checks that wheels can be published: names, contents, and the stable ABI.

``python -m release.check_wheel dist/wheelhouse``
"""

import argparse
import re
import subprocess
import sys
from pathlib import Path, PurePosixPath
from zipfile import ZipFile

from packaging.tags import Tag
from packaging.utils import parse_wheel_filename

ROOT = Path(__file__).resolve().parents[1]
#: Largest wheel that is still as expected; three CPU levels make most of it.
MOST_BYTES = 8 << 20
#: A wheel of a platform tag other than these runs only where it was built.
PLATFORMS = re.compile(r"(manylinux_|manylinux2014_|musllinux_|macosx_|win_)")


def package_files() -> set[str]:
    """What the sources say is in a wheel, without the native module."""
    files = (path for path in (ROOT / "src" / "crfit").rglob("*") if path.is_file())
    return {
        path.relative_to(ROOT / "src").as_posix()
        for path in files
        if path.suffix not in {".pyc", ".so", ".pyd"} and path.name != "_native.pyi"
    }


def wrong_tags(tags: frozenset[Tag]) -> list[str]:
    """Complaints about the tags of a wheel's name."""
    found = []
    for tag in tags:
        if not PLATFORMS.match(tag.platform):
            found.append(f"platform {tag.platform}: repair the wheel with auditwheel or delocate")
        version = int(tag.interpreter.removeprefix("cp3"))
        if tag.abi == "abi3" and version != 12:
            found.append(f"{tag}: the stable ABI begins with cp312")
        if tag.abi != "abi3" and not tag.abi.endswith("t") and version >= 12:
            found.append(f"{tag}: Python 3.12 and later share the abi3 wheel")
    return found


def wrong_contents(wheel: Path, tags: frozenset[Tag]) -> list[str]:
    """Complaints about the files in a wheel."""
    with ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if not name.endswith("/")}
        described = "\n".join(
            archive.read(name).decode() for name in names if name.endswith("dist-info/WHEEL")
        )
    native = {name for name in names if re.fullmatch(r"crfit/_native\.[^/]*(so|pyd)", name)}
    found = [f"lacks {name}" for name in sorted(package_files() | {"crfit/_native.pyi"}) if name not in names]
    if len(native) != 1:
        found.append(f"has {len(native)} native modules")
    if any(tag.abi == "abi3" for tag in tags) and not any(
        "abi3" in name or name.endswith(".pyd") for name in native
    ):
        found.append("is abi3 by name, but its module is not")
    for name in sorted(names - package_files() - native - {"crfit/_native.pyi"}):
        top = PurePosixPath(name).parts[0]
        if not top.endswith((".dist-info", ".libs", ".dylibs")):
            found.append(f"has {name}, which is not part of the package")
    for wanted in ("licenses/LICENSE", "entry_points.txt"):
        if not any(name.endswith(f".dist-info/{wanted}") for name in names):
            found.append(f"lacks {wanted}")
    found += [f"WHEEL does not name {tag}" for tag in tags if f"Tag: {tag}" not in described]
    return found


def complaints(wheel: Path) -> list[str]:
    """All that is wrong with a wheel."""
    tags = parse_wheel_filename(wheel.name)[3]
    found = wrong_tags(tags) + wrong_contents(wheel, tags)
    if wheel.stat().st_size > MOST_BYTES:
        found.append(f"has {wheel.stat().st_size:,} bytes, more than {MOST_BYTES:,}")
    if not found and any(tag.abi == "abi3" for tag in tags):
        audit = subprocess.run(
            [sys.executable, "-m", "abi3audit", "--strict", str(wheel)], capture_output=True, text=True
        )
        if audit.returncode != 0:
            found.append(f"uses more than the stable ABI: {audit.stdout}{audit.stderr}")
    return found


def main() -> None:
    """Check the wheels in a folder; exit 1 if one is wrong."""
    parser = argparse.ArgumentParser(description="Check that wheels can be published.")
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    wheels = sorted(folder.glob("*.whl"))
    failed = not wheels
    if failed:
        print(f"{folder}: no wheels")
    for wheel in wheels:
        found = complaints(wheel)
        print(f"{wheel.name}: {wheel.stat().st_size / 1e6:.1f} MB", *(found or ["as expected"]), sep="\n  ")
        failed = failed or bool(found)
    raise SystemExit(failed)


if __name__ == "__main__":
    main()
