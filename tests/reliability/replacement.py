"""Promise 3: replacing servers behind a proxy loses no request."""

import shutil
import socket
import subprocess
import tempfile
import threading
import time

import grpc

from harness import CHILDREN, Figure, Server, Settings, embed_call, free_port, say, wait_for

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

POLICY = """{"methodConfig": [{"name": [{}], "retryPolicy": {"maxAttempts": 5, "initialBackoff": "0.05s",
  "maxBackoff": "1s", "backoffMultiplier": 2, "retryableStatusCodes": ["UNAVAILABLE"]}}]}"""


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
        self.start()

    def start(self):
        self.process = subprocess.Popen(["haproxy", "-f", self.configuration], stderr=subprocess.DEVNULL)
        CHILDREN.append(self.process)

    def close(self):
        self.process.kill()
        self.process.wait()
        self.directory.cleanup()


class Callers:
    """Calls without a pause through one address, with gRPC's own retries."""

    def __init__(self, address, count):
        self.done, self.failures, self.stopping = 0, [], False
        self.lock = threading.Lock()

        def call():
            with grpc.insecure_channel(address, options=[("grpc.service_config", POLICY),
                                                         ("grpc.use_local_subchannel_pool", 1)]) as channel:
                while not self.stopping:
                    try:
                        answered = len(list(embed_call(channel, [[1, 2, 3]], pooling=2)))
                        with self.lock:
                            self.done += answered
                    except grpc.RpcError as error:
                        with self.lock:
                            self.failures.append(f"{error.code().name}: {error.details()}")
        self.threads = [threading.Thread(target=call) for _ in range(count)]
        for thread in self.threads:
            thread.start()

    def stop(self):
        self.stopping = True
        for thread in self.threads:
            thread.join()


def replacement():
    """Of two servers behind HAProxy one is replaced again and again, under full load with retries."""
    if shutil.which("haproxy") is None:
        say("no haproxy here: left out")
        return []
    rounds = 2 if Settings.quick else 10
    options = ("--drain-delay-seconds", "1")  # ten times the proxy's interval
    servers = [Server(options=options), Server(options=options)]
    ports = [(server.grpc.rsplit(":", 1)[1], server.http.rsplit(":", 1)[1]) for server in servers]
    proxy = Proxy(servers)
    wait_for(lambda: socket.socket().connect_ex(("127.0.0.1", proxy.port)) == 0, "the proxy")
    callers = Callers(f"127.0.0.1:{proxy.port}", 8)
    codes = []
    for turn in range(rounds):
        before = callers.done
        wait_for(lambda: callers.done > before + 100 or callers.failures, "calls to go through")
        which = turn % 2
        codes.append(servers[which].stop())
        servers[which] = Server(grpc_port=ports[which][0], http_port=ports[which][1], options=options)
        time.sleep(0.5)  # for the proxy to see it
    # And the proxy itself, by kill -9: then a call may be lost, but nothing is stuck.
    callers.stop()
    figures = [Figure(f"{rounds} replacements of one of two servers behind HAProxy, gRPC's own retries",
                      f"{callers.done} calls, {len(callers.failures)} failed {callers.failures[:1]}, exit codes {set(codes)}",
                      "0 failed", not callers.failures and set(codes) == {0} and callers.done > 0)]
    proxy.process.kill()
    proxy.process.wait()
    figures.append(servers[0].serves_figure("kill -9 of the proxy"))
    proxy.start()
    again = Callers(f"127.0.0.1:{proxy.port}", 2)
    wait_for(lambda: again.done > 10, "calls through the fresh proxy")
    again.stop()
    proxy.close()
    for server in servers:
        figures.append(server.books_figure())
        server.stop()
    return figures
