"""HAProxy before several servers, and callers who try again as deploy/service_config.json says."""

import json
import shutil
import socket
import subprocess
import tempfile
import threading
from pathlib import Path

import grpc

from harness import CHILDREN, embed_call, say, wait_for
from ports import free_port

CONFIGURATION = """
global
    maxconn 512
    stats socket {directory}/admin mode 600 level admin
defaults
    mode http
    timeout connect 1s
    timeout client 60s
    timeout server 60s
    retries 3
    option redispatch
    retry-on conn-failure empty-response
frontend callers
    bind 127.0.0.1:{port} proto h2
    default_backend servers
backend servers
    balance roundrobin
    option httpchk GET /readyz
    default-server inter 100ms fall 1 rise 1 proto h2
{servers}
"""

SERVICE_CONFIG = json.loads((Path(__file__).parents[3] / "deploy/service_config.json").read_text(encoding="utf-8"))
# Only the retries are taken: behind a proxy, a watch of health would watch the one server that it happens to reach.
RETRIES = {"methodConfig": SERVICE_CONFIG["methodConfig"]}


def no_proxy():
    """Whether there is none here, which is said."""
    if shutil.which("haproxy"):
        return False
    say("no haproxy here: left out")
    return True


class Proxy:
    """HAProxy before servers on fixed ports."""

    def __init__(self, servers):
        self.directory = tempfile.TemporaryDirectory()
        self.port = free_port()
        self.configuration = f"{self.directory.name}/haproxy.cfg"
        lines = "\n".join(f"    server s{i} {server.grpc} check port {server.http.rsplit(':', 1)[1]} check-proto h1"
                          for i, server in enumerate(servers))
        with open(self.configuration, "w", encoding="ascii") as file:
            file.write(CONFIGURATION.format(port=self.port, servers=lines, directory=self.directory.name))
        self.address = f"127.0.0.1:{self.port}"
        self.start()
        wait_for(lambda: socket.socket().connect_ex(("127.0.0.1", self.port)) == 0, "the proxy")

    def start(self):
        self.process = subprocess.Popen(["haproxy", "-f", self.configuration], stderr=subprocess.DEVNULL)
        CHILDREN.append(self.process)

    def servers_up(self):
        """How many servers it sends calls to."""
        with socket.socket(socket.AF_UNIX) as admin:
            admin.connect(f"{self.directory.name}/admin")
            admin.sendall(b"show stat\n")
            lines = admin.makefile(encoding="ascii").read().splitlines()
        return sum(line.startswith("servers,s") and line.split(",")[17] == "UP" for line in lines)

    def close(self):
        self.process.kill()
        self.process.wait()
        self.directory.cleanup()


class Callers:
    """Calls without a pause, with gRPC's own retries."""

    def __init__(self, target, count, config=None, tokens=3):
        options = [("grpc.service_config", json.dumps(config or RETRIES)), ("grpc.use_local_subchannel_pool", 1),
                   # gRPC would wait a second before it tries a server again that was gone; linserve-client does not.
                   ("grpc.initial_reconnect_backoff_ms", 100)]
        self.done, self.failures, self.stopping = 0, [], False
        self.lock = threading.Lock()

        def call():
            with grpc.insecure_channel(target, options=options) as channel:
                while not self.stopping:
                    try:
                        answered = len(list(embed_call(channel, [[1] * tokens], pooling=2)))
                        with self.lock:
                            self.done += answered
                    except grpc.RpcError as error:
                        with self.lock:
                            self.failures.append(f"{error.code().name}: {error.details()}")
        self.threads = [threading.Thread(target=call, daemon=True) for _ in range(count)]
        for thread in self.threads:
            thread.start()

    def stop(self):
        self.stopping = True
        for thread in self.threads:
            thread.join()

