"""Faults of processes and files: kills, full disks, closed folders, files that change, clocks that jump."""

import ctypes
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import crfit
from bench.records import NotAvailable, Row
from bench.speed.faults.jobs import JOBS, Losses, Scene, digest, left, unclean
from bench.speed.faults.processes import Count, Work, dies_at, in_process, limited, program, spread
from crfit.files import replacing

UNSHARE_MOUNTS = 0x20000
NOBODY = 65534


def kills(scene: Scene, n: int) -> Iterator[Row]:
    """Half of the kills before operations on files, the other half at random times."""
    chosen = random.Random(0)
    for job in JOBS:
        losses, count = Losses(scene, job), Count("kills", job.title)
        with scene.copy() as folder:
            begin = time.monotonic()
            ended = in_process(dies_at(scene.work(job, folder), folder, -1))
            seconds = time.monotonic() - begin
        n_operations = int(ended.said.rpartition("operations ")[2])
        moments: list[tuple[int, float | None]] = [(i, None) for i in spread(0, n_operations - 1, n // 2)]
        moments += [(n_operations, chosen.uniform(0.0, seconds)) for _ in range(n // 2)]
        for operation, after in moments:
            with scene.copy() as folder:
                work = dies_at(scene.work(job, folder), folder, operation)
                ended = in_process(work, kill_after=after)
                if ended.code == -signal.SIGKILL:
                    count.add(*losses.found(folder, killed=True))
        yield count.row


def disks(scene: Scene, n: int) -> Iterator[Row]:
    """Files that cannot grow beyond a size, and a file system that is full."""
    for job in JOBS:
        losses, count = Losses(scene, job), Count("disks", job.title)
        with scene.copy() as folder:
            scene.run(job, folder)
            largest = max(path.stat().st_size for path in folder.rglob("*") if path.is_file())
        for most in spread(0, largest - 1, n):
            with scene.copy() as folder:
                ended = in_process(limited(scene.work(job, folder), resource.RLIMIT_FSIZE, most))
                count.add(unclean(ended), *losses.found(folder), refused=ended.code != 0)
        if os.geteuid() == 0:
            _full(scene, losses, count, n)
        yield count.row


def _full(scene: Scene, losses: Losses, count: Count, n: int) -> None:
    """The same on a file system in memory that only one process sees."""
    place = scene.folder / "disk"
    place.mkdir(exist_ok=True)
    for kilobytes in spread(4, 1200, n):
        ended = in_process(lambda k=kilobytes: _on_small_disk(scene, losses, place, k))  # type: ignore[misc]
        if ended.code != 0:
            raise NotAvailable(f"no file system can be mounted here: {ended.words}")
        found = json.loads(ended.said.splitlines()[-1])
        count.add(*found["losses"], refused=found["refused"])


def _on_small_disk(scene: Scene, losses: Losses, place: Path, kilobytes: int) -> None:
    """Print what is lost with so much space beside the old files."""
    if ctypes.CDLL(None, use_errno=True).unshare(UNSHARE_MOUNTS):
        raise OSError(ctypes.get_errno(), "unshare")
    old = sum((path.stat().st_size + 4095) // 4096 * 4 for path in scene.before.rglob("*") if path.is_file())
    subprocess.run(["mount", "--make-rprivate", "/"], check=True)
    size = f"size={old + kilobytes}k"
    subprocess.run(["mount", "-t", "tmpfs", "-o", size, "tmpfs", place], check=True)
    shutil.copytree(scene.before, place, dirs_exist_ok=True)
    ended = in_process(scene.work(losses.job, place))
    subprocess.run(["mount", "-o", "remount,size=100m", place], check=True)
    found = {"losses": [unclean(ended), *losses.found(place)], "refused": ended.code != 0}
    print(json.dumps(found))


def permissions(scene: Scene, n: int) -> Iterator[Row]:
    """Files and folders that a user may not write or read."""
    if os.geteuid() != 0:
        raise NotAvailable("needs another user: run it as root")
    secret = scene.folder / "secret"
    secret.write_bytes(scene.text.read_bytes())
    secret.chmod(0o600)
    scene.folder.chmod(0o755)
    closed = [
        "train {text} -m {here}/model -q",
        "train {text} -m {other}/model --checkpoint {here}/run -q",
        "train {text} -m {other}/model --log {here}/log -q",
        "index {text} -o {here}/shards --overwrite -q",
        "index {text} -o {here}/new -q",
        "race {text} --trainers lbfgs --out {here}/race -q",
        "tune {text} -m {other}/model --out {here}/search -q",
        "tune {text} -m {here}/model -q",
        "train {secret} -m {other}/model -q",
        "index {secret} -o {other}/shards -q",
        "tag -m {secret} {text}",
        "tag -m {here}/model {secret}",
        "convert {here}/model {here}/model.crfsuite",
        "inspect {here}/model --html {here}/model.html",
        "train {text} -m {other}/model --resume {secret} -q",
        "eval -m {here}/model {text} --errors --calibration-plot {here}/picture.png",
    ]
    count = Count("permissions", "read-only and secret files and folders")
    for words in closed * max(1, n // len(closed)):
        with scene.copy() as here, scene.copy() as other:
            before = digest(here)
            os.chown(other, NOBODY, NOBODY)
            other.chmod(0o755)
            here.chmod(0o555)
            for path in here.iterdir():
                path.chmod(0o555)
            ended = in_process(
                _as_nobody(program(words, text=scene.text, here=here, other=other, secret=secret))
            )
            ok = ended.code in (1, 2)
            stays = left(here) + left(other)
            count.add(
                None if ok else f"{words}: no error",
                unclean(ended),
                None if digest(here) == before else f"{words}: something changed",
                f"{words}: {stays}" if stays else None,
                refused=ended.code != 0,
            )
            print(ended.words)
    yield count.row


def _as_nobody(work: Work) -> Work:
    def run() -> object:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
        return work()

    return run


# --- files that change -------------------------------------------------------------------------------------


@contextmanager
def _meanwhile(change: Callable[[int], object]) -> Iterator[None]:
    """Make changes again and again in another process."""
    pid = os.fork()
    if pid == 0:
        try:
            chosen = random.Random(0)
            for number in range(1_000_000):
                change(number)
                time.sleep(chosen.uniform(0.0, 0.005))
        finally:
            os._exit(0)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def changes(scene: Scene, n: int) -> Iterator[Row]:
    """Texts, models and shards that another process replaces, cuts or overwrites during the work."""
    models = [(scene.before / "model").read_bytes(), scene.saved.read_bytes()]
    texts = [scene.text.read_bytes(), scene.text.read_bytes()[: len(scene.text.read_bytes()) // 3]]
    x = demo_sequence()
    answers = [crfit.load(path).marginals(x) for path in (scene.before / "model", scene.saved)]

    def loads(path: Path, mapped: bool) -> None:
        """Load and use the model; errors of damaged files are fine, other answers are not."""
        try:
            found = crfit.load(path, mapped=mapped).marginals(x)
        except crfit.errors.ModelFileError:
            print("error: refused")
            return
        assert found in answers, "another answer"

    def overwrite(path: Path, contents: list[bytes]) -> Callable[[int], object]:
        return lambda number: path.write_bytes(contents[number % 2])

    def replace(path: Path, contents: list[bytes]) -> Callable[[int], object]:
        def change(number: int) -> None:
            with replacing(path) as unfinished:
                unfinished.write_bytes(contents[number % 2])

        return change

    streamed = [_streamed(scene, number) for number in range(2)]
    kinds: dict[str, tuple[Callable[[Path], Callable[[int], object]], Callable[[Path], Work]]] = {
        "a mapped model is replaced while it is loaded": (
            lambda here: replace(here / "model", models),
            lambda here: lambda: loads(here / "model", True),
        ),
        "a model is overwritten in place while it is read": (
            lambda here: overwrite(here / "model", models),
            lambda here: lambda: loads(here / "model", False),
        ),
        "a text grows and shrinks under `crfit train`": (
            lambda here: overwrite(here / "text", texts),
            lambda here: program("train {here}/text -m {here}/new --max-iter 2 -q", here=here),
        ),
        "a text grows and shrinks under `crfit index`": (
            lambda here: overwrite(here / "text", [10 * one for one in texts]),
            lambda here: program("index {here}/text -o {here}/new --shard-size 0.05 -q", here=here),
        ),
        "a text grows and shrinks under `crfit tag`": (
            lambda here: overwrite(here / "text", texts),
            lambda here: program("tag -m {here}/model {here}/text", here=here),
        ),
        "shards are replaced while `crfit train` streams them": (
            lambda here: _index_again(scene, here),
            lambda here: program(STREAM, here=here),
        ),
    }
    for title, (change, work) in kinds.items():
        count = Count("changes", title)
        with scene.copy() as here:
            (here / "text").write_bytes(texts[0])
            with _meanwhile(change(here)):
                for _ in range(n):
                    if (here / "new").is_dir():
                        shutil.rmtree(here / "new")
                    (here / "new").unlink(missing_ok=True)
                    ended = in_process(work(here))
                    print(title, ended.words)
                    other = digest(here / "new") if (here / "new").is_file() and "stream" in title else None
                    count.add(
                        unclean(ended),
                        f"{title}: the model of neither" if other not in (None, *streamed) else None,
                        refused=ended.code != 0 or "refused" in ended.said,
                    )
        yield count.row


STREAM = "train {here}/shards -m {here}/new --max-memory 0 --max-iter 20 -q"


def _streamed(scene: Scene, number: int) -> str | None:
    """Digest of the model of one of the two indexes."""
    with scene.copy() as here:
        in_process(lambda: _index_again(scene, here)(number))
        in_process(program(STREAM, here=here))
        return digest(here / "new")


def _index_again(scene: Scene, here: Path) -> Callable[[int], object]:
    from crfit.data.indexing import index_files

    texts = [scene.text, scene.folder / "few.txt"]

    def change(number: int) -> None:
        time.sleep(0.1 * (number % 4))  # a training may end between two
        index_files(texts[number % 2], here / "shards", shard_bytes=20_000, overwrite=True, n_threads=1)

    return change


def demo_sequence() -> list[list[str]]:
    """A sequence that both models can tag."""
    from crfit.demo import attributes, recipe_lines

    return attributes([word for word, _ in recipe_lines(1)[0]])


# --- clocks ------------------------------------------------------------------------------------------------


def clocks(scene: Scene, n: int) -> Iterator[Row]:
    """Clocks that jump by up to a day in both directions at every call; files from the future."""
    for job in JOBS[1:]:
        losses, count = Losses(scene, job), Count("clocks", job.title)
        for number in range(n):
            with scene.copy() as folder:
                for path in (scene.text, *folder.rglob("*")):
                    os.utime(path, (0, 0) if number % 2 else (4e9, 4e9))
                ended = in_process(_jumping(scene.work(job, folder), number))
                count.add(unclean(ended), *losses.found(folder), refused=ended.code != 0)
        yield count.row


def _jumping(work: Work, seed: int) -> Work:
    def run() -> object:
        chosen = random.Random(seed)
        for name in ("time", "monotonic", "perf_counter"):
            clock = getattr(time, name)
            setattr(time, name, lambda clock=clock: clock() + chosen.uniform(-86400.0, 86400.0))
        return work()

    return run
