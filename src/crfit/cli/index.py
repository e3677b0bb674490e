"""``crfit index``: read text into shards."""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

import click

from crfit.checks import check_number
from crfit.cli import arguments as shared
from crfit.cli.arguments import COMMON, INPUT, MEGABYTE, section
from crfit.cli.output import Verb, debug_option, say, table
from crfit.data.indexing import SHARD_BYTES, Indexed, check_target, index_files
from crfit.errors import OptionError
from crfit.features import load as load_features
from crfit.files import is_compressed
from crfit.threads import resolve_threads

_OPTIONS = [
    *section(
        COMMON,
        ("-o --out DIR", "Write the shards to this folder.", {"required": True}),
        shared.FEATURE_FILE,
        shared.TEMPLATE,
        shared.THREADS,
    ),
    *section(INPUT, *shared.READING, *shared.PARTIAL),
    *section(
        "Output",
        (
            "--shard-size MB",
            "About how large a shard is, in megabytes; reading takes several times as much for each thread.",
            {
                "default": round(SHARD_BYTES / MEGABYTE),
                "show_default": True,
                "type": click.FloatRange(min=0, min_open=True),
            },
        ),
        ("--overwrite", "Replace the index in DIR."),
        ("--json as_json", "Print the report as JSON."),
        shared.QUIET,
    ),
]


class _Progress:
    """Shows progress on standard error: one live line on a terminal, else one every few seconds."""

    def __init__(self, files: tuple[str, ...], every_seconds: float = 5.0) -> None:
        self.every, self.begin, self.last = every_seconds, time.perf_counter(), -1e9
        self.live = sys.stderr is not None and sys.stderr.isatty()
        # The size of what is left is known for files that are not compressed.
        known = all(os.path.isfile(name) and not is_compressed(name) for name in files)
        self.n_bytes = sum(os.path.getsize(name) for name in files) if known else None
        self.width = 0

    def __call__(self, indexed: Indexed) -> None:
        """Show a step."""
        now, over = time.perf_counter(), indexed.n_written == indexed.n_read
        if sys.stderr is None or not (self.live or over or now - self.last >= self.every):
            return
        self.last = now
        text = f"read {indexed.n_bytes / MEGABYTE:,.0f} MB"
        if self.n_bytes and not indexed.n_written:
            text += f" of {self.n_bytes / MEGABYTE:,.0f}"
        text += f", {indexed.n_tokens:,} tokens in {now - self.begin:.1f} s"
        if indexed.n_written:
            text += f"; wrote {indexed.n_written} of {indexed.n_read} shards"
        end = "\n" if not self.live or over else ""
        print(("\r" if self.live else "") + text.ljust(self.width), end=end, file=sys.stderr, flush=True)
        self.width = len(text) if end == "" else 0


@click.command(
    "index",
    cls=Verb,
    epilog="Train with 'crfit train DIR -m MODEL'. How it works, and how much memory it takes: "
    "docs/large-data.md. Input formats: docs/input.md.",
)
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path())
@shared.options(_OPTIONS)
@debug_option
def command(**given: Any) -> int:
    """Read text into a folder of shards, for training on data larger than memory.

    \b
    Examples:
      crfit index part-*.txt.gz -o shards
      crfit index part-*.jsonl -o shards --features default --min-count 3
      crfit train shards -m ner.crfit
    """  # noqa: D301
    begin = time.perf_counter()
    check_number("shard_size", given["shard_size"], at_least=1 / MEGABYTE)
    folder, files = given["out"], given["files"]
    check_target(folder, given["overwrite"])
    shared.check_standard_input(files)
    inputs = [*files, given["template"], given["features"], *shared.list_files(given["features"])]
    place = os.path.join(os.path.realpath(folder), "")
    for name in inputs:
        if isinstance(name, str) and name != "-" and os.path.realpath(name).startswith(place):
            raise OptionError("out", folder, f"the input {name} is in this folder: name another")
    if given["features"] is not None and given["template"] is not None:
        raise OptionError("features", given["features"], "make the attributes: leave out --template")
    shards = index_files(
        files,
        folder,
        format=given["input_format"],
        template=given["template"],
        features=None if given["features"] is None else load_features(given["features"]),
        min_count=given["min_count"],
        missing=given["missing"],
        label_separator=given["label_separator"],
        shard_bytes=given["shard_size"] * MEGABYTE,
        n_threads=resolve_threads(given["n_threads"]),
        overwrite=given["overwrite"],
        callback=None if given["no_progress"] else _Progress(files),
    )
    seconds = time.perf_counter() - begin
    if given["as_json"]:
        names = ("n_shards", "n_sequences", "n_tokens", "n_labels", "n_attributes", "n_bytes", "min_count")
        report = {"folder": folder} | {name: getattr(shards, name) for name in names}
        click.echo(json.dumps(report | {"input_format": shards.input_format, "seconds": seconds}))
        return 0
    if shards.template is not None and given["template"] is None and not given["no_progress"]:
        say(shared.default_template_used(shards.template))
    size = f"{shards.n_shards:,}, {shards.n_bytes / MEGABYTE:,.1f} MB together"
    told = f"{shards.n_sequences:,} sequences, {shards.n_tokens:,} tokens, {shards.n_labels:,} labels"
    table(
        [
            ("index", folder),
            ("shards", size),
            ("data", f"{told}, {shards.n_attributes:,} attributes"),
            ("seconds", f"{seconds:.1f}"),
        ]
    )
    return 0
