"""What faults happen to: programs with their files before and after, and what must not be lost."""

import contextlib
import hashlib
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from tempfile import mkdtemp

import crfit
from bench.speed.faults.processes import Ended, Work, in_process, program
from crfit import demo
from crfit.racing import RaceResult
from crfit.training.callbacks import checkpoint
from crfit.tuning import search

#: Imported before processes are forked, to save the time, and because another user may not read them.
PRELOADED = (
    *(
        f"crfit.cli.{verb}"
        for verb in ("train", "index", "race", "tune", "tag", "eval", "inspect", "convert")
    ),
    *("matplotlib.figure", "matplotlib.backends.backend_agg", "matplotlib.backends.backend_svg"),
    *("plotly.offline", "crfit.tuning.charts", "crfit.racing.charts", "crfit.inspection.report"),
    *("crfit.estimators", "sklearn.base", "numpy.random", "crfit.trainers.registry"),
)
N_LINES = 300
Digest = Callable[[Path], object]


def digest(path: Path) -> str | None:
    """Of a file, or of a folder with its files; None if it is missing."""
    if path.is_dir():
        parts = [f"{one.name} {digest(one)}" for one in sorted(path.iterdir())]
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else None


def ends(path: Path) -> object:
    """Where the runs of a race ended: between, points are seen by the clock."""
    found = RaceResult.load(path).curves
    return [
        (curve.label, curve.status, curve.points[-1].iteration, curve.points[-1].objective) for curve in found
    ]


@dataclass(frozen=True)
class Job:
    """A program that replaces files, and how it is run again after a fault.

    `again` replaces `first` if `state` exists then. `made` are the files or folders that it replaces as a
    whole; `outcome` is compared with that of a run without faults.
    """

    title: str
    first: str
    again: str = ""
    state: str = ""
    made: tuple[str, ...] = ("model",)
    outcome: Digest = digest


TRAIN = "train {text} -m {here}/model --max-iter 6 -q"
CHECKPOINTED = f"{TRAIN} --checkpoint {{here}}/run"
RACE = "race {text} --trainers lbfgs,sgd --max-iter 6 --out {here}/race -q"
TUNE = "tune {text} -m {here}/model --l2 0.1,1 --cv 2 --out {here}/search -q"
JOBS = (
    Job("`Model.save`", ""),
    Job("`crfit train`", TRAIN),
    Job("`crfit train --checkpoint`", CHECKPOINTED, CHECKPOINTED + " --resume {here}/run", "run"),
    Job("`crfit index`", "index {text} -o {here}/shards --shard-size 0.02 --overwrite -q", made=("shards",)),
    Job("`crfit race`", RACE, RACE + " --resume", "race/race.jsonl", ("race",), ends),
    Job("`crfit tune`", TUNE, TUNE + " --resume", "search/tune.npz"),
)


class Scene:
    """Texts, an old model and an old index, and copies of them to work in."""

    def __init__(self, folder: Path) -> None:
        preload()
        self.folder, self.text, self.before = folder, folder / "train.txt", folder / "before"
        self.before.mkdir()
        lines = demo.recipe_lines(N_LINES)
        demo.write_columns(self.text, lines)
        demo.write_columns(folder / "few.txt", lines[:20])
        few = partial(program, text=folder / "few.txt", here=self.before)
        for words in (TRAIN, JOBS[3].first):
            ended = in_process(few(words))
            if ended.code:
                raise RuntimeError(ended.words)
        self.saved = self.run(JOBS[1], self.before_copy()) / "model"

    def before_copy(self) -> Path:
        """A copy that stays."""
        folder = Path(mkdtemp(dir=self.folder))
        shutil.copytree(self.before, folder, dirs_exist_ok=True)
        return folder

    @contextmanager
    def copy(self) -> Iterator[Path]:
        """A folder with the old model and index."""
        folder = self.before_copy()
        try:
            yield folder
        finally:
            shutil.rmtree(folder)

    def work(self, job: Job, folder: Path) -> Work:
        """The work of a job in a folder: again, if there is something to resume."""
        if not job.first:
            return lambda: crfit.load(self.saved).save(folder / "model")
        words = job.again if job.state and (folder / job.state).exists() else job.first
        return eager(program(words, text=self.text, here=folder))

    def run(self, job: Job, folder: Path) -> Path:
        """Do a job without faults; the folder."""
        ended = in_process(self.work(job, folder))
        if ended.code:
            raise RuntimeError(ended.words)
        return folder


def preload() -> None:
    """Import what programs need."""
    for name in PRELOADED:
        with contextlib.suppress(ImportError):  # an optional library
            import_module(name)


def eager(work: Work) -> Work:
    """The same work, with a checkpoint after each iteration and candidate."""

    def run() -> object:
        begin = checkpoint.Checkpoint.__init__
        checkpoint.Checkpoint.__init__ = lambda self, path, *_, **__: begin(self, path, None, 1)  # type: ignore[method-assign]
        search.SAVE_EVERY = 0.0
        return work()

    return run


class Losses:
    """What a fault in a job lost, compared with a run without one."""

    def __init__(self, scene: Scene, job: Job) -> None:
        self.scene, self.job = scene, job
        with scene.copy() as folder:
            self.old = {name: digest(folder / name) for name in job.made}
            scene.run(job, folder)
            self.new = {name: digest(folder / name) for name in job.made}
            self.outcome = self._outcome(folder)

    def _outcome(self, folder: Path) -> object:
        return [self.job.outcome(folder / name) for name in self.job.made]

    def found(self, folder: Path, *, killed: bool = False) -> Iterator[str]:
        """Half files; then, after another run, temporary files and results that differ."""
        for name in self.job.made if self.job.outcome is digest else ():
            if digest(folder / name) not in (self.old[name], self.new[name]):
                yield f"{name} is neither the old nor the new one"
        if not killed and left(folder):
            yield f"temporary files stay: {left(folder)}"
        ended = in_process(self.scene.work(self.job, folder))
        if ended.code != 0:
            yield f"it cannot be run again: {ended.words}"
        elif self._outcome(folder) != self.outcome:
            yield "run again, it gives another result"
        if left(folder):
            yield f"temporary files stay after the next run: {left(folder)}"


def left(folder: Path) -> list[str]:
    """Temporary files."""
    return [path.name for path in folder.rglob(".crfit-*")]


def unclean(ended: Ended) -> str | None:
    """How a process ended, if that is neither success nor a message."""
    return None if ended.clean else ended.words
