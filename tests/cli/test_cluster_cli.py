"""``crfit train --cluster``."""

import json
import signal
import socket
import subprocess
import sys
import time

import pytest

pytest.importorskip("distributed", reason="Dask is not installed")


def test_training_on_two_processes_and_on_one(call, recipes, tmp_path):
    common = (
        "train",
        recipes / "train.columns",
        "--dev",
        recipes / "test.columns",
        "--max-iter",
        5,
        "--json",
    )
    models = []
    for n in (1, 2):
        path, log = tmp_path / f"{n}.crfit", tmp_path / f"{n}.jsonl"
        report = call(*common, "-m", path, "--log", log, "--cluster", f"local[{n}]", code=0).json
        models.append(path.read_bytes())
        assert len(report["workers"]) == n
        assert sum(worker["shards"] for worker in report["workers"]) == 8
        assert report["dev"]["f1"] > 0
        steps = [json.loads(line) for line in log.read_text().splitlines()]
        last = [step for step in steps if step["event"] == "step"][-1]
        assert all(worker["sent"] > 0 < worker["seconds"] for worker in last["workers"])
    assert models[0] == models[1]


@pytest.mark.parametrize(("options", "message"), [
    (("--cluster", "local[x]"), "--cluster local[x]: give the number of processes"),
    (("--cluster", "local[1000000]"), "--cluster local[1000000]: give the number of processes, at most 256"),
    (("--wire", "float32"), "--wire float32: is for training on a cluster: add --cluster"),
    (("--cluster", "local[1]", "--device", "cpu"), "--device cpu: --cluster already says where"),
    (("--cluster", "local[1]", "--trainer", "sgd"), "--trainer sgd: needs online"),
    (("--cluster", "local[1]", "--merge"), "--merge: equal attributes may be in different shards"),
])  # fmt: skip
def test_what_is_refused(call, recipes, tmp_path, options, message):
    refused = call("train", recipes / "train.columns", "-m", tmp_path / "m", *options, code=2)
    assert message in refused.err


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_an_interrupt_while_connecting_ends_the_program_soon(recipes, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"tcp://127.0.0.1:{server.getsockname()[1]}"
        arguments = ["train", recipes / "train.columns", "-m", tmp_path / "m", "--cluster", address]
        command = [sys.executable, "-m", "crfit", *map(str, arguments)]
        process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        server.settimeout(60)
        server.accept()[0].close()
    time.sleep(0.4)  # nobody listens now, and Dask tries again and again
    begin = time.monotonic()
    process.send_signal(signal.SIGTERM)
    said = process.communicate(timeout=90)[1]
    assert (process.returncode, said.strip()) == (143, "crfit: error: interrupted")
    assert time.monotonic() - begin < 10  # Dask waits for 60 s
