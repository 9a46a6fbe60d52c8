"""Promise 5: what callers make the server keep with next to no message."""

import socket
import tempfile
import threading
import time

from harness import Figure, Server, Settings, wait_for
from http2 import EMBED, PREFACE, connect, frame, reset_calls_on
from memory_group import MemoryGroup


def headers_without_an_end(server):
    """References of one byte to a header of the table, each of which gRPC keeps as an entry."""
    with connect(server.grpc) as connection:
        connection.settimeout(5)
        connection.sendall(PREFACE + frame(4, 0, 0) + frame(1, 0, 1, EMBED + b"\x40\x01k\x00"))
        for _ in range(5000):
            connection.sendall(frame(9, 0, 1, b"\xbe" * 16000))


def resets_of_many(server):
    """Calls that are reset at once, on eight connections by the Unix socket."""
    def reset(stop):
        while time.monotonic() < stop:
            with socket.socket(socket.AF_UNIX) as connection:
                connection.connect(server.unix_socket)
                reset_calls_on(connection, stop)
    attackers = [threading.Thread(target=reset, args=(time.monotonic() + 4,)) for _ in range(8)]
    for attacker in attackers:
        attacker.start()
    for attacker in attackers:
        attacker.join()


def long_paths(server):
    """Requests over HTTP whose paths are as long as they may be, and whose bodies do not come."""
    head = (b"POST /v2/models/" + b"a" * 3900 + b"/infer HTTP/1.1\r\nHost: x\r\n"
            b"Expect: 100-continue\r\nContent-Length: 10\r\n\r\n")
    waiting = [connect(server.http) for _ in range(800)]
    for connection in waiting:
        connection.sendall(head)
    for connection in waiting:
        connection.settimeout(20)
        connection.recv(100)  # once the path was read
    for connection in waiting:
        connection.close()


def outcome_of(server):
    """What became of the server, what should have, and whether that is so."""
    expected = "served after it"
    wait_for(lambda: server.process.poll() is not None or server.serves(), "the server to serve again", 20)
    if server.process.poll() is not None:
        return f"ended with {server.process.returncode}", expected, False
    return f"{expected}, {server.kib('VmHWM') / 1024:.0f} MiB at most", expected, True


def outside_of_messages():
    """Each attack on a server of its own, under a limit of 1 GiB of memory."""
    if Settings.sanitized:
        return []  # sanitizers need memory of their own
    figures = []
    for attack in (headers_without_an_end, resets_of_many, long_paths):
        with MemoryGroup(1 << 30) as group, tempfile.TemporaryDirectory() as directory:
            path = f"{directory}/linserve.sock"
            server = Server(options=("--grpc-unix-socket", path), prefix=group.prefix())
            server.unix_socket = path
            try:
                attack(server)
            except OSError:
                pass  # it was hung up on
            figures.append(Figure(f"{attack.__doc__[0].lower()}{attack.__doc__[1:-1]}{group.note}", *outcome_of(server)))
    return figures
