"""Stages 3 and 4: draw tables and pictures from results.csv, and check it. Nothing drawn is kept in git.

A stored run passes `check` if config.json has the digest of results.csv, its optima are those of optima.json,
its tables can be drawn, every check of its group holds, and its folder has no other file. Verdicts on papers
may be anything.
"""

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType

from bench import optimum
from bench.claims import claim_tables
from bench.collect import CONFIG, TABLE, load_results
from bench.curves import OPTIMUM
from bench.pictures import save
from bench.records import CRFIT, DONE, NOT_AVAILABLE, Results
from bench.setting import BenchError, Setting, digest, group_name, groups, write_text
from bench.tables import markdown
from bench.tools import TOOLS
from crfit.pictures import DARK, LIGHT
from crfit.racing.page import write_page

#: What ends the name of a picture for dark pages, and the plotting library of the interactive pages.
DARK_END, PLOTLY = "-dark", "plotly.js"
#: From a made table to the stored results of its group.
STORED = "../../../bench/results/{}/"


def tables(group: ModuleType, results: Results) -> dict[str, str]:
    """All tables of a group by name."""
    others = [(groups()[name].CLAIMS, _stored(name)) for name in getattr(group, "OTHERS", ())]
    claims = claim_tables(group.CLAIMS, results, *others) if hasattr(group, "CLAIMS") else {}
    rows = [[check.text, "yes" if check.holds else "**no**"] for check in group.checks(results)]
    checks = markdown(["crfit's claim", "holds"], rows, words=True) if rows else ""
    made = {**group.tables(results), "run": run_words(results), **claims, "checks": checks}
    return {name: table for name, table in made.items() if table or name != "checks"}


def run_words(results: Results) -> str:
    """When and on what it was measured, what is missing, and how to repeat it."""
    config, tasks = results.config, results.config["tasks"]
    (facts,) = config["machines"]
    days = " and ".join(sorted({task["when"][:10] for task in tasks}))
    memory = "" if facts["memory_gb"] is None else f" and {facts['memory_gb']:.0f} GB of memory"
    minutes = sum(task["took"] for task in tasks) / 60
    time = f"{minutes:.0f} minutes" if minutes >= 1.5 else f"{60 * minutes:.0f} seconds"
    stored = STORED.format(f"{config['group']}{'-quick' * config['quick']}")
    return (
        f"Measured on {days} with crfit {facts['versions']['crfit']} on {results.machine}{memory} in {time}; "
        f"repeat it with `{config['command'].replace('DIR', 'dir')}`. Raw data: "
        f"[results.csv]({stored}results.csv), versions of all libraries: [config.json]({stored}config.json)."
        f"{_missing(results)}\n"
    )


def _missing(results: Results) -> str:
    """Tools that were not installed, by name, and how many runs have no result for another reason."""
    lost = [row for row in results.rows if row["outcome"] != DONE]
    absent = [
        row["tool"] for row in lost if row["outcome"] == NOT_AVAILABLE and row.get("tool", CRFIT) != CRFIT
    ]
    names = dict.fromkeys(TOOLS[tool].TITLE if tool in TOOLS else str(tool) for tool in absent)
    kinds = [str(row["outcome"]) for row in lost if row["outcome"] != NOT_AVAILABLE]
    told = f" Not installed: {', '.join(names)}." if names else ""
    ended = ", ".join(f"{kinds.count(kind)} {kind}" for kind in dict.fromkeys(kinds))
    return f"{told} Runs without a result: {ended}." if ended else told


@cache
def _stored(name: str) -> Results:
    return load_results(Setting().results(name))


def draw(group: ModuleType, setting: Setting) -> list[Path]:
    """Write tables and pictures of the stored rows."""
    name = group_name(group)
    stored, folder = setting.results(name), setting.made(name)
    results = load_results(stored)
    texts = {folder / f"{title}.md": table for title, table in tables(group, results).items()}
    for path, table in texts.items():
        write_text(path, table)
    pictures = group.pictures(results) if hasattr(group, "pictures") else {}
    try:
        figures = {
            folder / f"{title}{'' if theme is LIGHT else DARK_END}.png": picture.draw(theme)
            for title, picture in pictures.items()
            for theme in (LIGHT, DARK)
        }
        for path, figure in figures.items():
            save(figure, path, stored / CONFIG)
        return [*texts, *figures, *_draw_pages(group, results, folder)]
    except ImportError as error:
        raise BenchError(str(error)) from None


def _draw_pages(group: ModuleType, results: Results, folder: Path) -> list[Path]:
    """Interactive pages with all curves, which share a file with the plotting library."""
    races = group.races(results) if hasattr(group, "races") else {}
    written = [folder / f"{title}.html" for title in races]
    for path, race in zip(written, races.values(), strict=True):
        write_page(race, path, plotly=f"../{PLOTLY}")
    if races:
        from plotly.offline import get_plotlyjs

        write_text(folder.parent / PLOTLY, get_plotlyjs())
    return written


def stored_runs(out: Path) -> dict[Path, tuple[ModuleType, Setting] | None]:
    """Folders of results with their groups, full and quick; None if a folder has no group."""
    settings = [Setting(quick=quick, out=out) for quick in (False, True)]
    known = {one.results(name): (group, one) for name, group in groups().items() for one in settings}
    folders = (out / "results").iterdir() if (out / "results").is_dir() else ()
    return {path: known.get(path) for path in sorted(folders) if path != out / optimum.FILE}


def check(group: ModuleType, setting: Setting) -> list[str]:
    """What is wrong with the stored results of a group."""
    folder = setting.results(group_name(group))
    try:
        results = load_results(folder)
        tables(group, results)
        return list(_wrong(group, setting, results, folder))
    except BenchError as error:
        return [error.message]
    except Exception as error:  # the numbers may have been tampered with
        return [f"{folder}: drawing tables and checks from {TABLE} failed: {error!r}"]


def _wrong(group: ModuleType, setting: Setting, results: Results, folder: Path) -> Iterator[str]:
    config = results.config
    if (config.get("group"), config.get("quick")) != (group_name(group), setting.quick):
        yield f"{folder / CONFIG} belongs to another run than its folder"
    if config.get("table") != digest(folder / TABLE):
        yield f"{folder / CONFIG} was written with another {TABLE}"
    for row in results.where(row=OPTIMUM):
        stored = optimum.stored_objective(row["problem"], setting)
        if row.get("objective") not in (None, stored):
            words = f"the optimum of {row['problem']} differs from {optimum.FILE}"
            yield f"{folder / TABLE}: {words}, {stored!r}"
    for one in group.checks(results):
        if not one.holds:
            yield f"{folder}: check {one.id!r} does not hold: {one.text}"
    for path in sorted(folder.iterdir()):
        if path.name not in (TABLE, CONFIG):
            yield f"{path} must not be stored"
