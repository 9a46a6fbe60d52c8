"""What the scenarios share: servers as child processes, their metrics, callers of the wire."""

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from dataclasses import dataclass
from pathlib import Path

import grpc

BIN = Path(os.environ["LINSERVE_TEST_BIN"])
# Some 10 ms a request on one core: so slow that the callers are never the limit.
SLOW = {"num_tokens": 256, "dim": 256, "seq_len": 512, "depth": 6, "k": 64, "heads": 4}
SMALL = {"num_tokens": 256, "dim": 16, "seq_len": 64, "depth": 1, "k": 8, "heads": 2}


@dataclass
class Figure:
    """One line of the report: what was promised, and what was measured."""
    what: str
    measured: str
    promised: str
    kept: bool


class Settings:
    quick = False
    sanitized = False

    @classmethod
    def judges_memory(cls):
        return not cls.sanitized

    @classmethod
    def judges_speed(cls):
        return not cls.quick and not cls.sanitized


CHILDREN = []  # processes, which end with the scenario at the latest
SERVERS = []  # those of them that are servers


def end_children():
    for child in CHILDREN:
        if child.poll() is None:
            child.kill()
            child.wait()
    CHILDREN.clear()
    SERVERS.clear()


def server_logs():
    """The ends of the logs of this scenario's servers."""
    logs = [server.log()[-3000:] for server in SERVERS if server.log_path.exists()]
    return "\n".join(["the servers' logs:", *logs])


def init_model(directory, params=None, seed=1, architecture="linformer.LinformerLM"):
    subprocess.run([BIN / "linserve", "init", "--architecture", architecture, "--seed", str(seed),
                    "--params", json.dumps(params or SMALL), "--output", directory],
                   check=True, capture_output=True)


class Server:
    """`linserve serve`, ready. Its log goes to a file, which cannot stall it."""

    def __init__(self, params=None, options=(), grpc_port=0, http_port=0, log=None, prefix=(), repository=None):
        self.directory = tempfile.TemporaryDirectory()
        self.repository = repository or Path(self.directory.name) / "models"
        if repository is None:
            self.repository.mkdir()
            init_model(self.repository / "m", params)
        self.log_path = Path(log or f"{self.directory.name}/log")
        self.token = None  # with which it is asked over HTTP
        with open(self.log_path, "wb") as log_file:
            self.process = subprocess.Popen(
                [*prefix, BIN / "linserve", "serve", "--model-repository", self.repository, "--grpc-address",
                 f"127.0.0.1:{grpc_port}", "--http-address", f"127.0.0.1:{http_port}", *options], stdout=log_file,
                stderr=subprocess.STDOUT)
        CHILDREN.append(self.process)
        SERVERS.append(self)
        if log is None:
            self.wait_until_ready()

    def wait_until_ready(self):
        wait_for(lambda: self.process.poll() is not None or self.find_ports(), "the server to be ready")
        if self.process.poll() is not None:
            raise RuntimeError("the server did not start:\n" + self.log())

    def find_ports(self):
        found = re.search(r" ready grpc_port=(\d+) http_port=(\d+)", self.log())
        if found:
            self.grpc, self.http = f"127.0.0.1:{found[1]}", f"127.0.0.1:{found[2]}"
        return found

    def log(self):
        """What it has logged; "" if that is no file: /dev/full never ends."""
        return self.log_path.read_text(errors="replace") if self.log_path.is_file() else ""

    def get(self, path):
        headers = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        request = urllib.request.Request(f"http://{self.http}{path}", headers=headers)
        return urllib.request.urlopen(request, timeout=30).read().decode()

    def metrics(self):
        """The value of each series."""
        page = self.get("/metrics")
        return {line.rsplit(" ", 1)[0]: float(line.rsplit(" ", 1)[1]) for line in page.splitlines()
                if line and not line.startswith("#")}

    def total(self, name, label=""):
        """The sum of all series of a name that have the label."""
        return sum(value for series, value in self.metrics().items()
                   if series.split("{")[0] == name and label in series)

    def memory(self):
        """Resident bytes."""
        with open(f"/proc/{self.process.pid}/statm", encoding="ascii") as statm:
            return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def kib(self, field):
        """A line of /proc/PID/status, such as VmSize."""
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as status:
            return next(int(line.split()[1]) for line in status if line.startswith(f"{field}:"))

    def threads(self):
        return len(os.listdir(f"/proc/{self.process.pid}/task"))

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def books(self):
        """Accepted and answered sequences, once nothing is in flight."""
        wait_for(lambda: self.total("linserve_in_flight_requests") == 0, "the last request to end")
        return self.total("linserve_sequence_length_count"), self.total("linserve_results_total")

    def books_figure(self):
        accepted, answered = self.books()
        return Figure("the books balance", f"{accepted:.0f} accepted, {answered:.0f} answered", "equal",
                      accepted == answered)

    def serves(self, timeout=20):
        """Whether one request is answered."""
        try:
            embed(self.grpc, [[1, 2, 3]], timeout)
            return True
        except grpc.RpcError:
            return False

    def serves_figure(self, after):
        serves = self.serves()
        return Figure(f"after {after}, the server answers", "yes" if serves else "no", "yes", serves)

    def stop(self, sent=signal.SIGTERM):
        """The exit code after a signal."""
        if self.process.poll() is None:
            self.process.send_signal(sent)
        code = self.process.wait(120)
        if Settings.sanitized and code > 0:
            raise RuntimeError(f"the server ended with {code}: {self.log()[-1000:]}")
        self.last_log = self.log()
        self.directory.cleanup()
        return code


def server_of_few_descriptors():
    return Server(prefix=("bash", "-c", 'ulimit -n 128; exec "$@"', "limited"))


def crowd(server, count):
    """So many connections that say nothing; the server need not accept them all."""
    host, port = server.grpc.rsplit(":", 1)
    sockets = [socket.socket() for _ in range(count)]
    for connection in sockets:
        connection.setblocking(False)
        connection.connect_ex((host, int(port)))
    return sockets


def wait_for(condition, what, seconds=120):
    limit = time.monotonic() + seconds
    while True:
        found = condition()
        if found:
            return found
        if time.monotonic() > limit:
            raise TimeoutError(f"waited {seconds} s for {what}")
        time.sleep(0.01)


@contextlib.contextmanager
def repeated(count, call):
    """Has so many threads call again and again, until the block ends, in whatever way it does."""
    done = threading.Event()

    def caller():
        while not done.is_set():
            call()
    threads = [threading.Thread(target=caller) for _ in range(count)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        done.set()
        for thread in threads:
            thread.join()


def load(target, *options, token="", balance=False, tls_ca=None):
    """A running `linserve-client load`; its report is report_of()'s."""
    child = subprocess.Popen([BIN / "linserve-client", "--target", target, *(["--balance"] if balance else []),
                              *(["--tls-ca", tls_ca] if tls_ca else []),
                              "load", "--json", "-", *options],
                             stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                             env={**os.environ, "LINSERVE_TOKEN": token})
    CHILDREN.append(child)
    return child


def report_of(client):
    return json.loads(client.communicate()[0])


def errors_of(report):
    """The failures of requests and of sequences, by code."""
    errors = dict(report["request_errors"])
    for code, count in report["sequence_errors"].items():
        errors[code] = errors.get(code, 0) + count
    return errors


def varint(number):
    encoded = b""
    while True:
        number, low = number >> 7, number & 127
        encoded += bytes([low | (128 if number else 0)])
        if not number:
            return encoded


def embed_request(sequences, request_id="", pooling=1):
    """A linserve.v1.EmbedRequest of token ids; pooling 1 is none, 2 the mean."""
    def field(number, payload):
        return varint(number << 3 | 2) + varint(len(payload)) + payload
    message = field(1, request_id.encode()) if request_id else b""
    message += field(4, b"\x10" + varint(pooling))
    for ids in sequences:
        message += field(15, field(2, b"".join(varint(one) for one in ids)))
    return message


def channel_of(address):
    return grpc.insecure_channel(address, options=[("grpc.use_local_subchannel_pool", 1),
                                                   ("grpc.max_receive_message_length", -1)])


def embed_call(channel, sequences, timeout=60, **options):
    """The running call, an iterator over answers as bytes."""
    return channel.unary_stream("/linserve.v1.EmbeddingService/Embed")(
        embed_request(sequences, **options), timeout=timeout)


def embed(address, sequences, timeout=60):
    with channel_of(address) as channel:
        return list(embed_call(channel, sequences, timeout))


def say(text):
    print(f"[reliability] {text}", file=sys.stderr, flush=True)
