"""``crfit doctor``: versions, the machine, and a self-test, for bug reports."""

import json
import time
from dataclasses import asdict
from typing import Any

import click

from crfit.checks import json_ready
from crfit.cli.arguments import JSON, options, section
from crfit.cli.output import FAILURE, GENERAL, Verb, debug_option, table
from crfit.inspection.doctor import facts, self_test


@click.command(
    "doctor",
    cls=Verb,
    epilog="Paste the output into a bug report: it has no data, paths or names of yours.",
)
@options(section(GENERAL, JSON))
@debug_option
def command(as_json: bool) -> int:
    """Show versions and the machine, and check in about two seconds that everything works.

    Trains, tags and saves a model on generated data, and compares numbers with other arithmetic: with finite
    differences, with NumPy, and with sums over all label sequences in long double. Exit code 1 if a check
    fails.

    \b
    Examples:
      crfit doctor
      crfit doctor --json > doctor.json
    """  # noqa: D301
    found = facts()
    if not as_json:
        table(_rows(found))
        click.echo()
    begin, checks = time.perf_counter(), []
    for check in self_test():
        checks.append(check)
        if not as_json:
            click.echo(str(check))
    seconds, n_failed = time.perf_counter() - begin, sum(not check.ok for check in checks)
    if as_json:
        each = [{**asdict(check), "ok": check.ok} for check in checks]
        record = found | {"checks": each, "seconds": seconds, "ok": n_failed == 0}
        click.echo(json.dumps(json_ready("doctor", record), allow_nan=False))
    else:
        outcome = f"{n_failed} of {len(checks)} failed" if n_failed else f"all {len(checks)} are ok"
        click.echo(f"\nchecks: {outcome}, {seconds:.1f} s")
    return FAILURE if n_failed else 0


def _rows(found: dict[str, Any]) -> list[tuple[str, str]]:
    """The facts as lines of a table."""
    libraries = ", ".join(f"{name} {version}" for name, version in found["libraries"].items())
    memory, limit = (
        "unknown" if found[name] is None else f"{found[name]:g} GB"
        for name in ("memory_gb", "memory_limit_gb")
    )
    rows = [
        ("crfit", found["crfit"]),
        ("python", found["python"] + ("" if found["global_lock"] else ", free-threaded")),
        ("platform", found["platform"]),
        ("processor", found["processor"]),
        ("CPU level", f"{found['cpu_level']} of {', '.join(found['cpu_levels'])}"),
        ("threads", f"{found['threads']} of {found['cores']} cores"),
        ("memory", memory if limit == memory else f"{memory}, of which {limit} may be used"),
        ("long double", f"{found['long_double_digits']} digits"),
        ("libraries", libraries),
        ("engines", ", ".join(found["engines"])),
    ]
    if found["gpus"]:
        rows.append(("GPUs", f"{', '.join(found['gpus'])}; crfit does not use them"))
    return rows
