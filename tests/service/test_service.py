"""The service: answers as those of the model, limits, errors without data, metrics, and many clients."""

import http.client
import json
import random
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from servers import Caller, running

import crfit
from crfit.data import text
from crfit.data.templates import Template
from crfit.demo import recipe_data, recipe_lines

pytest.importorskip("starlette", reason="no starlette: pip install 'crfit[serve]'")
pytest.importorskip("prometheus_client", reason="no prometheus-client: pip install 'crfit[serve]'")

SECRET = "dontechothis"


@pytest.fixture(scope="module")
def attributes():
    X, y = recipe_data(150, seed=1)
    return crfit.CRF(l2=0.5).fit(X, y).model_, X


@pytest.fixture(scope="module")
def words():
    """A model of columns with one column, which takes text."""
    rows = "".join("".join(f"{word} {label}\n" for word, label in line) + "\n" for line in recipe_lines(150))
    template = Template("U0:%x[0,0]\nU1:%x[-1,0]\nB")
    data = text.read(text.Input("x", rows.encode()), template=template)
    objective = crfit.make_objective(data, l2=0.5)
    return crfit.Model.from_training(objective, crfit.train(objective, "lbfgs"), template=template)


@pytest.fixture(scope="module")
def call(attributes):
    with running(attributes[0]) as caller:
        yield caller


@pytest.fixture(scope="module")
def text_call(words):
    with running(words) as caller:
        yield caller


def until(connection, end):
    """What comes until these bytes; head and body of an answer may come one after the other."""
    found = b""
    while end not in found and (more := connection.recv(65536)):
        found += more
    return found


def spans_of(model, x, **options):
    return [span._asdict() for span in model.spans(x, **options)]


def test_answers_are_those_of_the_model(attributes, call):
    model, X = attributes
    for x in X[:5]:
        status, found = call("/tag", {"id": 3, "tokens": x, "labels": ["ignored"]})
        assert (status, found) == (200, {"id": 3, "labels": model.tag(x)})
        body = {"attributes": x, "marginals": True, "nbest": 3, "spans": True}
        found = call("/tag", body)[1]
        assert found["marginals"] == model.marginals(x)
        assert found["spans"] == spans_of(model, x)
        assert [one["labels"] for one in found["nbest"]] == [labels for labels, _ in model.nbest(x, 3)]
        assert found["probability"] == pytest.approx(model.nbest(x, 1)[0][1])
        found = call("/tag", {"tokens": x, "threshold": 0.9})[1]
        assert found == {"labels": model.tag(x, threshold=0.9, abstain="?")}
        found = call("/tag", {"tokens": x, "spans": True, "threshold": 0.9})[1]
        assert found["spans"] == [span for span in spans_of(model, x) if span["probability"] >= 0.9]


def test_batches(attributes, call):
    model, X = attributes
    sequences = [{"id": i, "tokens": x} for i, x in enumerate(X[:20])]
    sequences.insert(3, {"tokens": []})
    status, found = call("/batch", {"sequences": sequences, "nbest": 2, "spans": True})
    assert status == 200
    assert [one["labels"] for one in found["sequences"]] == model.tag_many([s["tokens"] for s in sequences])
    assert found["sequences"][3] == {
        "labels": [], "spans": [], "probability": 1.0,
        "nbest": [{"labels": [], "probability": 1.0, "spans": []}],
    }  # fmt: skip
    assert [one.get("id") for one in found["sequences"]] == [s.get("id") for s in sequences]
    assert call("/batch", {"sequences": []}) == (200, {"sequences": []})
    assert call("/tag", {"tokens": [], "marginals": True})[1] == {
        "labels": [],
        "probability": 1.0,
        "marginals": [],
    }


@pytest.mark.parametrize("added", [{}, {"spans": True}, {"nbest": 2}, {"marginals": True}])
def test_answers_that_are_sent_again_are_refused_with_what_to_leave_out(text_call, added):
    asked = {"sequences": [{"text": "2 cups"}], **added}
    answer = text_call("/batch", asked)[1]
    for path, again in (("/batch", answer), ("/tag", answer["sequences"][0])):
        status, found = text_call(path, again)
        remedy = "to send an answer again, leave out what the service added"
        assert (status, remedy in found["error"]["message"]) == (400, True)
    own = {"sequences": [{"text": one["text"]} for one in answer["sequences"]], **added}
    assert text_call("/batch", own) == (200, answer)


def test_text_is_split_with_places(words, text_call):
    line = "2 cups Mehl, gesiebt \U0001f35e"
    found = text_call("/tag", {"text": line, "id": "é"})[1]
    assert list(found) == ["text", "id", "tokens", "labels"]
    assert [line[one["start"] : one["end"]] for one in found["tokens"]] == [
        t["token"] for t in found["tokens"]
    ]
    tokens = [one["token"] for one in found["tokens"]]
    again = text_call("/tag", {"tokens": tokens})[1]
    assert again == {"tokens": tokens, "labels": found["labels"]}
    source = text.Input("x", ("\n".join(tokens) + "\n").encode())
    assert again["labels"] == words.tag_many(words.read(source, labelled=False))[0]
    assert text_call("/tag", {"tokens": [[token] for token in tokens]})[1]["labels"] == found["labels"]
    assert text_call("/tag", {"text": " "})[1] == {"text": " ", "tokens": [], "labels": []}


def test_a_byte_order_mark_is_a_token(text_call):
    found = text_call("/batch", {"sequences": [{"text": "\ufeff"}, {"tokens": ["\ufeff", "2"]}]})[1]
    assert [len(one["labels"]) for one in found["sequences"]] == [1, 2]


def test_half_of_a_surrogate_pair_is_told():
    model = crfit.CRF(features="default").fit([["the", "dog"]], [["DET", "NOUN"]]).model_
    with running(model) as call:
        status, found = call("/tag", b'{"text": "a \\ud800"}')
    assert status == 422
    assert "surrogate" in found["error"]["message"]


def test_several_columns():
    template = Template("U0:%x[0,0]\nU1:%x[0,1]\nB")
    rows = b"2 NUM A\ncups NOUN B\n\n"
    data = text.read(text.Input("x", rows), template=template)
    objective = crfit.make_objective(data, l2=0.5)
    model = crfit.Model.from_training(objective, crfit.train(objective, "lbfgs"), template=template)
    with running(model) as call:
        assert call("/tag", {"tokens": [["2", "NUM"], ["cups", "NOUN"]]})[1]["labels"] == ["A", "B"]
        for wrong in ([["2"]], ["2"], [["2", "NUM", "x"]], [["2", "a b"]], [["2", ""]], [["2", "\n"]]):
            assert call("/tag", {"tokens": wrong})[0] == 400
        assert call("/tag", {"text": "2 cups"})[0] == 400


def test_classifiers():
    model = crfit.LogLinear().fit([["a"], ["b"]], ["A", "B"]).model_
    with running(model) as call:
        assert call("/tag", {"attributes": ["a"], "id": 1}) == (200, {"id": 1, "label": "A"})
        found = call("/batch", {"sequences": [{"attributes": {"b": 1}}], "marginals": True})[1]["sequences"][
            0
        ]
        assert found["probabilities"] == pytest.approx(model.probabilities([["b"]])[0])
        assert found["label"] == "B"
        for option in ({"nbest": 2}, {"spans": True}, {"threshold": 0.5}):
            assert call("/tag", {"attributes": ["a"], **option})[0] == 400
        assert call("/tag", {"tokens": [["a"]]})[0] == 400
        assert call("/tag", {"attributes": [1]})[0] == 400


BAD = [
    b"", b"[", b"5", b"null", b"\xff", b'{"tokens": [["a"]]', b"{" * 100_000, b"[" * 100_000,
    b'{"tokens": ' + b"[" * 50_000 + b"]" * 50_000 + b"}",
    b'{"tokens": [["a"]], "tokens": [["b"]]}',
    b'{"tokens": [{"a": NaN}]}', b'{"tokens": [{"a": 1e999}]}', b'{"tokens": [], "id": 1e999}',
    b'{"tokens": [{"a": ' + b"9" * 5000 + b"}]}",
    b'{"tokens": [{"a": ' + b'{"a": ' * 500 + b"1" + b"}" * 500 + b"}]}",
    *[
        json.dumps(one).encode()
        for one in [
            {}, {"tokens": 1}, {"tokens": {"a": 1}}, {"tokens": [SECRET]}, {"tokens": [[1]]},
            {"tokens": [None]},
            {"tokens": [{SECRET: None}]}, {"tokens": [["a"]], "attributes": [["a"]]}, {"text": SECRET},
            {"tokens": [["a"]], "nbest": 0}, {"tokens": [["a"]], "nbest": True},
            {"tokens": [["a"]], "nbest": 10**9},
            {"tokens": [["a"]], "marginals": 1}, {"tokens": [["a"]], "spans": "x"},
            {"tokens": [["a"]], "threshold": 2}, {"tokens": [["a"]], "threshold": SECRET},
            {"tokens": [["a"]], "threshold": 0.5, "nbest": 2}, {"tokens": [["a"]] * 10_001},
            {"tokens": [["a"]] * 1000, "nbest": 50},
        ]
    ],
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(BAD)))
def test_bad_requests_are_refused_without_their_data(call, number):
    status, found = call("/tag", BAD[number])
    assert 400 <= status < 500
    assert set(found["error"]) == {"code", "message"}
    assert SECRET not in found["error"]["message"]
    assert len(found["error"]["message"]) < 200
    assert call("/health")[0] == 200


def test_bad_batches_name_the_sequence(call):
    for wrong in (1, [1], {"tokens": 1}, {"tokens": [[SECRET, 1]]}):
        status, found = call("/batch", {"sequences": [{"tokens": []}, {"tokens": [["a"]]}, wrong]})
        assert (status, found["error"]["message"][:11]) == (400, "sequence 2:")
        assert SECRET not in str(found)
    for option in ({"nbest": 2}, {"marginals": True}, {"spans": SECRET}, {"threshold": 0.5}):
        status, found = call("/batch", {"sequences": [{"tokens": [["a"]]}, {"tokens": [["a"]], **option}]})
        expected = 'sequence 1 has an option: give marginals, nbest, spans, threshold beside "sequences"'
        assert (status, expected in found["error"]["message"]) == (400, True)
    status, found = call("/batch", b'{"sequences": [{"tokens": [["a"]], "tokens": [["b"]]}]}')
    assert (status, found["error"]["message"]) == (400, '"tokens" is given twice in one object')
    body = {"sequences": [{"tokens": []}, {"tokens": [["a"]]}, {"tokens": [{"a": 10**400}]}]}
    status, found = call("/batch", body)
    assert status == 422
    assert call("/batch", {"sequences": 1})[0] == 400
    assert call("/batch", {"sequences": [], SECRET: 1})[0] == 400
    assert call("/batch", {"sequences": [{"tokens": []}] * 1001})[0] == 413


def test_impossible_sequences(attributes):
    model = attributes[0].constrain(
        forbid=[(a, b) for a in attributes[0].labels for b in attributes[0].labels]
    )
    with running(model) as call:
        assert call("/tag", {"tokens": [["a"]]})[0] == 200
        assert call("/tag", {"tokens": [["a"], ["b"]]})[0] == 422


def test_addresses_and_methods(call):
    for path, method, status in [("/x", "GET", 404), ("/tag", "GET", 405), ("/health", "POST", 405)]:
        found = call(path, method=method)
        assert found[0] == status
        assert "error" in found[1]
    assert b"allow: POST" in call.raw(b"GET /tag HTTP/1.1\r\nHost: x\r\n\r\n")
    assert call("/health")[1]["status"] == "ok"
    assert call("/health")[1]["takes"] == "attributes"


def test_large_slow_and_cut_requests(attributes):
    with running(attributes[0], seconds=0.4, body=1000) as call:
        assert call("/tag", {"tokens": [["a" * 2000]]})[0] == 413
        head = b"POST /tag HTTP/1.1\r\nHost: x\r\n"
        found = call.raw(head + b"Content-Length: 99999999999999999999999999\r\n\r\n")
        assert found.startswith(b"HTTP/1.1 4")
        chunk = b"400\r\n" + b"a" * 1024 + b"\r\n"
        assert call.raw(head + b"Transfer-Encoding: chunked\r\n\r\n" + chunk).startswith(b"HTTP/1.1 413")
        assert call.raw(head + b"Content-Length: 10\r\n\r\n{").startswith(b"HTTP/1.1 408")  # never the rest
        assert call.raw(head) == b""  # a head that does not end
        assert call.raw(b"") == b""
        assert call.raw(b"\x16\x03\x01 nonsense\r\n\r\n").startswith(b"HTTP/1.1 400")
        call.raw(head + b"Content-Length: 10\r\n\r\n{", then_close=True)
        assert call("/tag", {"tokens": [["a"]]})[0] == 200
        # The second request of a connection is awaited as long.
        with socket.create_connection(("127.0.0.1", call.port), timeout=20) as connection:
            connection.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
            assert b'"ok"' in until(connection, b"}")
            connection.sendall(b"GET /health")
            assert connection.recv(65536) == b""


def test_health_is_answered_while_tagging_and_slow_tagging_ends(attributes, monkeypatch):
    go = threading.Event()
    release = threading.Event()
    from crfit.service.requests import Answering

    one = Answering.one

    def slowly(self, body):
        go.set()
        release.wait(20)
        return one(self, body)

    monkeypatch.setattr(Answering, "one", slowly)
    with running(attributes[0], seconds=0.5, requests=2) as call:
        found = []
        threads = [
            threading.Thread(target=lambda: found.append(call("/tag", {"tokens": [["a"]]}))) for _ in range(2)
        ]
        for thread in threads:
            thread.start()
        assert go.wait(20)
        assert call("/health")[0] == 200
        for thread in threads:
            thread.join()
        assert [status for status, _ in found] == [503, 503]
        assert found[0][1]["error"]["code"] == "timeout"
        assert call("/tag", {"tokens": []})[1]["error"]["code"] == "busy"  # the threads still run
        assert b"crfit_requests_open 2.0" in call("/metrics")[1]
        release.set()
        deadline = time.monotonic() + 20
        while call("/tag", {"tokens": []})[0] != 200:
            assert time.monotonic() < deadline
            time.sleep(0.01)


def test_what_waits_for_a_thread_is_not_tagged_after_its_time(attributes, monkeypatch):
    release, answered = threading.Event(), []
    from crfit.service.requests import Answering

    def slowly(self, body):
        answered.append(body)
        release.wait(20)
        return one(self, body)

    one = Answering.one
    monkeypatch.setattr(Answering, "one", slowly)
    # The service has two threads.
    with running(attributes[0], seconds=0.3) as call, ThreadPoolExecutor(3) as pool:
        found = list(pool.map(lambda _: call("/tag", {"tokens": []})[0], range(3)))
        assert found == [503, 503, 503]
        assert b"crfit_requests_open 2.0" in call("/metrics")[1]
        release.set()
    assert len(answered) == 2


def test_metrics(attributes):
    with running(attributes[0]) as call:
        call("/tag", {"tokens": [["never seen"], ["w=cups"]]})
        call("/batch", {"sequences": [{"tokens": attributes[1][0]}] * 3})
        call("/tag", b"[")
        status, found = call("/metrics")
        assert status == 200
        lines = found.decode().splitlines()
        assert 'crfit_requests_total{endpoint="tag",status="200"} 1.0' in lines
        assert 'crfit_requests_total{endpoint="tag",status="400"} 1.0' in lines
        assert "crfit_sequences_total 4.0" in lines
        assert f"crfit_tokens_total {2 + 3 * len(attributes[1][0])}.0" in lines
        assert any(line.startswith('crfit_request_seconds_bucket{endpoint="batch",le="') for line in lines)


def test_an_error_in_the_service_shows_no_traceback(attributes, monkeypatch, capfd):
    from crfit.service.requests import Answering

    def broken(self, body):
        raise RuntimeError(SECRET)

    monkeypatch.setattr(Answering, "one", broken)
    with running(attributes[0]) as call:
        status, found = call("/tag", {"tokens": []})
        assert (status, found["error"]["code"]) == (500, "failed")
    assert capfd.readouterr().err == "crfit: error: tag: RuntimeError\n"


def test_many_clients_get_their_own_answers(attributes, call):
    model, X = attributes
    wrong = []

    def client(seed):
        chosen = random.Random(seed)
        connection = call.connection()
        for _ in range(40):
            i = chosen.randrange(len(X))
            connection.request("POST", "/tag", json.dumps({"id": i, "tokens": X[i], "marginals": True}))
            found = json.loads(connection.getresponse().read())
            if found != {"id": i, "labels": model.tag(X[i]), "probability": found["probability"],
                         "marginals": model.marginals(X[i])}:  # fmt: skip
                wrong.append(i)
        connection.close()

    threads = [threading.Thread(target=client, args=[seed]) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="memory is read from /proc")
def test_memory_is_flat_over_thousands_of_requests(attributes, call):
    body = json.dumps({"tokens": attributes[1][0], "marginals": True, "spans": True})
    connection = call.connection()

    def ask(n):
        for i in range(n):
            connection.request("POST", "/tag", body if i % 10 else b"[")
            connection.getresponse().read()

    ask(300)
    before = resident()
    ask(2000)
    assert resident() - before < 4_000_000
    connection.close()


# --- the command ---


@pytest.fixture
def served(attributes, tmp_path):
    """``crfit serve`` in a process of its own."""
    attributes[0].save(tmp_path / "m.crfit")
    processes = []

    def start(*arguments):
        command = [
            sys.executable,
            "-m",
            "crfit",
            "serve",
            str(tmp_path / "m.crfit"),
            "--port",
            "0",
            *arguments,
        ]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        processes.append(subprocess.Popen(command, bufsize=0, **pipes))
        line = processes[-1].stderr.readline().decode()
        assert "serving" in line
        return processes[-1], Caller(int(re.search(r":(\d+)/", line)[1]))

    yield start
    for process in processes:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_finishes_what_runs_and_stops(served, number):
    process, call = served("--seconds", "5")
    assert call("/health")[0] == 200
    with socket.create_connection(("127.0.0.1", call.port), timeout=20) as connection:
        connection.sendall(b"POST /tag HTTP/1.1\r\nHost: x\r\nContent-Length: 14\r\n\r\n")
        time.sleep(0.3)
        process.send_signal(number)
        time.sleep(0.3)
        assert process.poll() is None  # it waits for the request
        connection.sendall(b'{"tokens": []}')
        assert b'{"labels":[]}' in until(connection, b"}")
    out, said = process.communicate(timeout=20)
    assert (process.returncode, out) == (0, b"")
    assert said == b"crfit: stopped\n"


def test_hosts(served):
    process, call = served("--host", "0.0.0.0", "--access-log")
    assert call("/health")[0] == 200
    process.send_signal(signal.SIGTERM)
    out, said = process.communicate(timeout=20)
    assert b"warning: other machines can reach this address" in said
    assert b"/health" in out + said


def test_bad_use_of_the_command(served, tmp_path):
    _, call = served()
    run = [sys.executable, "-m", "crfit", "serve"]
    model = str(tmp_path / "m.crfit")
    for arguments, message in [
        ([model, "--port", str(call.port)], f"--port {call.port}: cannot listen"),
        ([model, "--host", "no.such.host.invalid"], "--host no.such.host.invalid: cannot listen"),
        ([model, "--port", "70000"], "70000"),
        ([str(tmp_path / "none")], "none"),
    ]:
        ran = subprocess.run([*run, *arguments], capture_output=True, timeout=60, check=False, text=True)
        assert ran.returncode == 2
        assert message in ran.stderr
        assert "Traceback" not in ran.stderr


def test_without_the_extra(tmp_path):
    script = "import sys; sys.modules['starlette'] = None; from crfit.cli import main; sys.exit(main())"
    command = [sys.executable, "-c", script, "serve", "m.crfit"]
    ran = subprocess.run(command, capture_output=True, timeout=60, check=False, text=True)
    assert ran.returncode == 2
    assert "pip install 'crfit[serve]'" in ran.stderr


def test_closed_connections_do_not_hurt(call):
    for _ in range(50):
        connection = http.client.HTTPConnection("127.0.0.1", call.port, timeout=20)
        connection.request("POST", "/tag", json.dumps({"tokens": [["a"]] * 2000, "marginals": True}))
        connection.close()
    assert call("/health")[0] == 200
