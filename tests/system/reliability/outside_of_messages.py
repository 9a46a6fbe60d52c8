"""Promise 5: what callers make the server keep with next to no message."""

import contextlib
import socket
import tempfile
import threading
import time

from harness import Figure, Server, Settings
from http2 import EMBED, PREFACE, connect, frame, reset_calls_on
from memory_group import MemoryGroup


def headers_without_an_end(server):
    """References of one byte to a header of the table, each of which gRPC keeps as an entry."""
    with contextlib.suppress(OSError), connect(server.grpc) as connection:  # it is hung up on
        connection.settimeout(5)
        connection.sendall(PREFACE + frame(4, 0, 0) + frame(1, 0, 1, EMBED + b"\x40\x01k\x00"))
        for _ in range(5000):
            connection.sendall(frame(9, 0, 1, b"\xbe" * 16000))


def at_once(count, attack):
    attackers = [threading.Thread(target=attack) for _ in range(count)]
    for attacker in attackers:
        attacker.start()
    for attacker in attackers:
        attacker.join()


def headers_of_many(server):
    """Headers of four bytes, each of which gRPC keeps, without an end, on four connections."""
    def send():
        with contextlib.suppress(OSError), connect(server.grpc) as connection:
            connection.settimeout(5)
            connection.sendall(PREFACE + frame(4, 0, 0) + frame(1, 0, 1, EMBED))
            for _ in range(5000):
                connection.sendall(frame(9, 0, 1, b"\x00\x01k\x00" * 4000))
    at_once(4, send)


def resets_of_many(server):
    """Calls that are reset at once, on eight connections by the Unix socket."""
    stop = time.monotonic() + 4

    def reset():
        while time.monotonic() < stop:
            with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as connection:
                connection.connect(server.unix_socket)
                reset_calls_on(connection, stop)
    at_once(8, reset)


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
    serves = server.serves(60)
    if server.process.poll() is not None:
        return f"ended with {server.process.returncode}", expected, False
    if not serves:
        return "does not answer", expected, False
    return f"{expected}, {server.kib('VmHWM') / 1024:.0f} MiB at most", expected, True


def outside_of_messages():
    """Each attack on a server of its own, under a limit of 1 GiB of memory."""
    if Settings.sanitized:
        return []  # sanitizers need memory of their own
    figures = []
    for attack in (headers_without_an_end, headers_of_many, resets_of_many, long_paths):
        with MemoryGroup(1 << 30) as group, tempfile.TemporaryDirectory() as directory:
            path = f"{directory}/linserve.sock"
            server = Server(options=("--grpc-unix-socket", path), prefix=group.prefix())
            server.unix_socket = path
            attack(server)
            figures.append(Figure(f"{attack.__doc__[0].lower()}{attack.__doc__[1:-1]}{group.note}", *outcome_of(server)))
    return figures
