"""Promise 4: what breaks, and the server that goes on."""

import json
import os
import resource
import signal
import socket
import subprocess
import tempfile
import threading
import time
import urllib.error
from pathlib import Path

import grpc

from harness import (BIN, SLOW, SMALL, Figure, Server, Settings, channel_of, crowd, embed, embed_call, embed_request,
                     init_model, load, server_of_few_descriptors, wait_for)
from ports import free_port


def killed_server():
    """kill -9 of the server: a fresh one on the same port serves, and a client with retries goes on."""
    server = Server()
    port = server.grpc.rsplit(":", 1)[1]
    clients = load(server.grpc, "--concurrency", "4", "--duration", "2")
    wait_for(lambda: server.total("linserve_requests_total") > 100, "load")
    server.process.kill()
    server.process.wait()
    clients.communicate()
    fresh = Server(grpc_port=port)
    figures = [fresh.serves_figure("kill -9, a fresh server on the same port")]
    fresh.stop()
    return figures


def killed_clients():
    """kill -9 of clients in the midst of all kinds of calls."""
    server = Server(SLOW, ("--threads", "1"))
    for _ in range(3 if Settings.quick else 20):
        clients = [load(server.grpc, "--concurrency", "16", "--duration", "60", "--protocol", protocol)
                   for protocol in ("linserve", "oip")]
        wait_for(lambda: server.total("linserve_in_flight_requests") >= 24, "load")
        for client in clients:
            client.kill()
            client.communicate()
    figures = [server.books_figure(), server.serves_figure("kill -9 of its clients")]
    server.stop()
    return figures


def broken_checkpoint():
    """A checkpoint is replaced by a broken one: the old model goes on, whatever is broken about it."""
    server = Server()
    weights = server.repository / "m/model.safetensors"
    whole = weights.read_bytes()
    breaks = {"cut short": whole[:len(whole) // 2], "empty": b"", "of other bytes": os.urandom(4096),
              "of a wrong header": whole[:8] + b"x" + whole[9:]}
    kept = 0
    for content in breaks.values():
        before = server.total("linserve_model_loads_total", 'result="failed"')
        with open(f"{weights}.new", "wb") as file:
            file.write(content)
        os.rename(f"{weights}.new", weights)
        server.process.send_signal(signal.SIGHUP)
        wait_for(lambda: server.total("linserve_model_loads_total", 'result="failed"') > before, "the failed load")
        kept += server.serves()
    with open(f"{weights}.new", "wb") as file:
        file.write(whole)
    os.rename(f"{weights}.new", weights)
    server.process.send_signal(signal.SIGHUP)
    wait_for(lambda: server.total("linserve_model_loads_total", 'result="ok"') >= 2, "the mended one")
    figures = [Figure("the old model serves beside a broken successor", f"{kept} of {len(breaks)}: {', '.join(breaks)}",
                      "all", kept == len(breaks)),
               server.serves_figure("a mended checkpoint")]
    server.stop()
    return figures


def full_disk():
    """The log's disk is full."""
    ports = free_port(), free_port()
    server = Server(log="/dev/full", grpc_port=ports[0], http_port=ports[1], options=("--log-level", "debug"))
    server.grpc, server.http = (f"127.0.0.1:{port}" for port in ports)

    def ready():
        try:
            return server.get("/readyz")
        except OSError:
            return None
    wait_for(ready, "the server to be ready")
    answers = sum(1 for _ in range(100) if embed(server.grpc, [[1, 2]]))
    figures = [Figure("requests answered with nowhere to log to", f"{answers} of 100", "all", answers == 100)]
    figures.append(Figure("and it still drains", f"exit code {server.stop()}", "0", server.process.returncode == 0))
    return figures


def too_large_for_memory():
    """A sequence that needs more than the memory bound is refused; all others are served."""
    server = Server(options=("--max-inflight-bytes", "100000"))
    code = None
    try:
        embed(server.grpc, [[1] * 64] * 2000)
    except grpc.RpcError as error:
        code = error.code().name
    figures = [Figure("a request over max_inflight_bytes", str(code), "RESOURCE_EXHAUSTED", code == "RESOURCE_EXHAUSTED"),
               server.serves_figure("it")]
    server.stop()
    return figures


def culprit_in_a_batch():
    """Promise 10: a forward pass throws for one sequence of a batch: memory is taken from the server while it runs."""
    if Settings.sanitized:
        return []  # sanitizers map terabytes, which the limit would count
    with tempfile.TemporaryDirectory() as directory:
        repository = Path(directory)
        init_model(repository / "m", {"num_tokens": 256, "dim": 256, "depth": 1, "attention": "elu"},
                   architecture="linserve.Encoder")
        # Before its speed is known, the server puts a long sequence into a batch with others.
        server = Server(repository=repository, options=("--max-batch-tokens", "1000000", "--threads", "1",
                                                        "--warmup", "false"))
        used = server.kib("VmSize") * 1024
        unlimited = resource.prlimit(server.process.pid, resource.RLIMIT_AS)
        resource.prlimit(server.process.pid, resource.RLIMIT_AS, (used + 60 * 2**20, unlimited[1]))
        lengths = {"a": 100, "b": 200, "culprit": 120000, "c": 300, "d": 400}
        lines = "".join(json.dumps({"id": name, "x": [1] * length}) + "\n" for name, length in lengths.items())
        done = subprocess.run([BIN / "linserve-client", "--target", server.grpc, "embed", "--format", "ids"], input=lines,
                              capture_output=True, text=True, check=False)
        ends = {answer["id"]: answer.get("error", {"code": "OK"})["code"] for answer in map(json.loads, done.stdout.splitlines())}
        splits = server.total("linserve_batch_splits_total")
        resource.prlimit(server.process.pid, resource.RLIMIT_AS, unlimited)
        expected = {name: "RESOURCE_EXHAUSTED" if name == "culprit" else "OK" for name in lengths}
        figures = [Figure("a pass that throws for one sequence of a batch of 5",
                          f"{', '.join(f'{name} {code}' for name, code in ends.items())}; {splits:.0f} splits",
                          "that one fails, and no other", ends == expected and splits > 0),
                   server.books_figure(), server.serves_figure("it")]
        server.stop()
    return figures


def stalled_readers():
    """Callers who ask for much and read nothing."""
    server = Server()
    channels = [channel_of(server.grpc) for _ in range(8)]
    # 8 x 2,000 sequences of 64 rows of 16: 66 MB of results.
    calls = [embed_call(channel, [[1] * 64] * 2000) for channel in channels]
    wait_for(lambda: server.total("linserve_results_total") >= 8 * 2000, "all to be computed")
    serves = all(server.serves() for _ in range(20))
    held = server.total("linserve_inflight_bytes")
    for call in calls:
        call.cancel()
    for channel in channels:
        channel.close()
    books = server.books_figure()
    released = server.total("linserve_inflight_bytes")
    figures = [Figure("others are served beside 8 stalled readers", f"yes, {held / 1e6:.0f} MB held for those" if serves
                      else "no", "yes", serves),
               Figure("what they held is given back", f"{released:.0f} bytes in flight", "0", released == 0), books]
    server.stop()
    return figures


def idle_connections():
    """1,000 connections are opened and left idle."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4096), hard))
    server = Server()
    before = server.descriptors(), server.threads()
    sockets = []
    for _ in range(1000):
        connection = socket.create_connection(("127.0.0.1", int(server.grpc.rsplit(":", 1)[1])))
        sockets.append(connection)
    serves = server.serves()
    beside = server.threads()
    for connection in sockets:
        connection.close()
    wait_for(lambda: server.descriptors() <= before[0] + 8, "the descriptors to be given back")
    figures = [Figure("served beside 1,000 idle connections", "yes" if serves else "no", "yes", serves),
               Figure("threads beside them", f"{beside}, before {before[1]}", "no thread each", beside < before[1] + 32),
               server.serves_figure("they left")]
    server.stop()
    return figures


def no_descriptors_left():
    """More connections than the server may have descriptors (CVE-2023-4785: accept exhaustion)."""
    if Settings.sanitized:
        return []  # sanitizers end a process in which they cannot open files
    server = server_of_few_descriptors()
    sockets = crowd(server, 300)
    wait_for(lambda: server.descriptors() >= 120, "nearly all descriptors to be taken")
    alive = server.process.poll() is None
    for connection in sockets:
        connection.close()
    def replaced():
        """It answers again, or asks to be replaced."""
        if server.serves(timeout=5):
            return "it answers"
        try:
            server.get("/livez")
        except urllib.error.HTTPError as error:
            return f"it does not accept any more (gRPC 1.51), and /livez says {error.code}"
        return None
    recovered = wait_for(replaced, "the server to answer, or to ask to be replaced", 60)
    figures = [Figure("300 connections where 128 descriptors are allowed", "alive" if alive else "dead", "alive", alive),
               Figure("and once they are gone", recovered, "it answers, or /livez lets it be replaced", True)]
    server.stop()
    return figures


def half_open_streams():
    """Streams that are opened, sent half a request, and left."""
    server = Server()
    channels = [channel_of(server.grpc) for _ in range(20)]
    streams = []
    for channel in channels:
        for _ in range(10):
            held = threading.Event()

            def requests(event=held):
                yield embed_request([[1, 2]], request_id="a")
                event.wait(60)
            streams.append((held, channel.stream_stream("/linserve.v1.EmbeddingService/EmbedStream")(requests())))
    opened = wait_for(lambda: server.total("linserve_open_streams") == 200, "200 streams")
    serves = server.serves()
    for channel in channels:
        channel.close()
    for held, _ in streams:
        held.set()
    wait_for(lambda: server.total("linserve_open_streams") == 0, "the streams to end")
    figures = [Figure("served beside 200 half-open streams", "yes" if serves and opened else "no", "yes", serves),
               server.books_figure()]
    server.stop()
    return figures


def drain_under_load():
    """Promise 3: SIGTERM under load: what was accepted is answered, and the exit code is 0."""
    server = Server(SLOW, ("--threads", "1"))
    port = int(server.grpc.rsplit(":", 1)[1])
    results, codes = [], []

    def caller():
        with channel_of(f"127.0.0.1:{port}") as channel:
            while True:
                try:
                    results.append(len(list(embed_call(channel, [[1] * 128], pooling=2))))
                except grpc.RpcError as error:
                    codes.append(error.code().name)
                    return
    threads = [threading.Thread(target=caller) for _ in range(16)]
    for thread in threads:
        thread.start()
    wait_for(lambda: len(results) > 20, "answers")
    started = time.monotonic()
    code = server.stop()
    seconds = time.monotonic() - started
    for thread in threads:
        thread.join()
    return [Figure("a drain under load", f"exit code {code} after {seconds:.1f} s", "0 within drain_timeout, 30 s",
                   code == 0 and seconds < 30),
            Figure("what callers were told then", ", ".join(sorted(set(codes))), "UNAVAILABLE", set(codes) == {"UNAVAILABLE"})]


def too_long_for_the_machine():
    """Promise 9: a model that cannot run at its maximum says so at the start."""
    server = Server()
    peak = server.kib("VmPeak")
    init_model(server.repository / "long", {**SMALL, "dim": 256, "seq_len": 400000})
    # Room for its weights (0.4 GB), and not for a sequence of its length (0.4 GB a buffer).
    done = subprocess.run(["bash", "-c", f'ulimit -v {peak + 700000}; exec "$@"', "limited", BIN / "linserve", "serve",
                           "--model-repository", server.repository, "--grpc-address", "127.0.0.1:0", "--http-address",
                           "127.0.0.1:0"], capture_output=True, text=True, timeout=120, check=False)
    said = [line for line in done.stderr.splitlines() if "memory" in line]
    server.stop()
    return [Figure("a model that does not fit the memory at its longest", (said or ["nothing"])[-1][-150:],
                   "said at the start, exit code 1", done.returncode == 1 and bool(said))]
