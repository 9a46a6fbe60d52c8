"""Promise 5: a network-level fuzz of the open ports, and the known flaws of HTTP/2 servers."""

import random
import struct
import threading
import time

from harness import (Figure, Server, Settings, channel_of, crowd, embed_call, embed_request, server_of_few_descriptors,
                     wait_for)
from http2 import EMBED, PREFACE, connect, frame, headers_block, reset_calls_on


def recorded_call(stream=1):
    """One good call of Embed, as frames."""
    message = embed_request([[1, 2, 3]])
    return (frame(1, 4, stream, EMBED) + frame(0, 1, stream, b"\0" + struct.pack(">I", len(message)) + message))


def send(connection, data):
    """What the server takes; false once it has hung up."""
    try:
        connection.sendall(data)
        try:
            return connection.recv(65536) != b""
        except TimeoutError:
            return True
    except OSError:
        return False


def random_bytes(choose):
    return bytes(choose.randrange(256) for _ in range(choose.randrange(1, 2000)))


def random_frames(choose):
    return PREFACE + frame(4, 0, 0) + b"".join(
        frame(choose.randrange(12), choose.randrange(256), choose.choice([0, 1, 3, 2**31 - 1]),
              random_bytes(choose)[:choose.randrange(300)]) for _ in range(choose.randrange(1, 30)))


def flipped_call(choose):
    data = bytearray(PREFACE + frame(4, 0, 0) + recorded_call())
    for _ in range(choose.randrange(1, 8)):
        data[choose.randrange(len(data))] ^= 1 << choose.randrange(8)
    return bytes(data)


def flipped_http(choose):
    body = b'{"inputs":[{"name":"x","datatype":"INT64","shape":[1,2],"data":[[1,2]]}]}'
    data = bytearray(b"POST /v2/models/m/infer HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
    for _ in range(choose.randrange(1, 8)):
        data[choose.randrange(len(data))] ^= 1 << choose.randrange(8)
    return bytes(data)


def network_fuzz():
    """Random bytes, random frames, bit flips in recorded calls, on both ports."""
    rounds = 150 if Settings.quick else 5000
    server = Server()
    choose = random.Random(7)
    attempts = 0

    def throw(count):
        nonlocal attempts
        for _ in range(count):
            for address, makers in ((server.grpc, (random_bytes, random_frames, flipped_call)),
                                    (server.http, (random_bytes, flipped_http))):
                with connect(address) as connection:
                    send(connection, choose.choice(makers)(choose))
                attempts += 1
    throw(rounds // 3)
    before = server.memory()
    throw(rounds - rounds // 3)
    figures = [Figure("malformed connections", f"{attempts}, the server {'is' if server.process.poll() is None else 'IS NOT'} alive",
                      "alive", server.process.poll() is None),
               Figure("memory over the last two thirds of them", f"{(server.memory() - before) / 2**20:+.1f} MiB",
                      "16 MiB at most", server.memory() - before < 16 * 2**20 or not Settings.judges_memory()),
               server.books_figure(), server.serves_figure("them")]
    server.stop()
    return figures


def slow_headers():
    """Connections that send a byte now and then, and never a request."""
    server = Server()
    before = server.threads()
    slow = [connect(address) for address in (server.grpc, server.http) for _ in range(100)]
    for _ in range(10):
        for i, connection in enumerate(slow):
            try:
                connection.send((PREFACE if i < 100 else b"GET / HTTP/1.1\r\nX: ")[:1])
            except OSError:
                pass
        time.sleep(0.1)
    serves = server.serves() and "ok" in server.get("/livez")
    for connection in slow:
        connection.close()
    gone = wait_for(lambda: server.threads() <= before + 8, "the threads to end")
    figures = [Figure("served on both ports beside 200 slow connections", "yes" if serves else "no", "yes", serves),
               Figure("their threads end", "yes" if gone else "no", "yes", bool(gone))]
    server.stop()
    return figures


def reset_calls(address, seconds):
    """The same, with a new connection after each one's end."""
    stop, made = time.monotonic() + seconds, 0
    while time.monotonic() < stop:
        with connect(address) as connection:
            made += reset_calls_on(connection, stop)
    return made


def rapid_reset():
    """CVE-2023-44487: calls that are reset as soon as they are made."""
    server = Server()
    seconds = 2 if Settings.quick else 12
    times, memory, made = [], [], 0
    for _ in range(3):
        counts = []
        attacker = threading.Thread(target=lambda: counts.append(reset_calls(server.grpc, seconds)))
        attacker.start()
        while attacker.is_alive():
            begin = time.monotonic()
            if server.serves():
                times.append(time.monotonic() - begin)
            time.sleep(0.05)
        attacker.join()
        made += counts[0]
        server.books()
        memory.append(server.memory())
    figures = [Figure("other callers during a rapid reset", f"{len(times)} answered, slowest {1000 * max(times, default=0):.0f} ms, beside "
                      f"{made / seconds / 3:.0f} resets/s", "answered within 10 s", bool(times) and (max(times) < 10 or not Settings.judges_speed())),
               Figure("memory after each third of it", ", ".join(f"{one / 2**20:.0f} MiB" for one in memory),
                      "comes to a bound: the last third adds 20 % at most", memory[2] < 1.2 * memory[1] or Settings.quick),
               server.books_figure()]
    server.stop()
    return figures


def reset_without_descriptors():
    """A rapid reset while other connections hold all of the descriptors that the server may have."""
    if Settings.sanitized:
        return []  # sanitizers end a process in which they cannot open files
    server, seconds = server_of_few_descriptors(), 5
    times, counts = [], []
    with channel_of(server.grpc) as channel, connect(server.grpc) as flood:
        list(embed_call(channel, [[1, 2, 3]]))  # it is connected from now on
        idle = crowd(server, 200)
        stop = time.monotonic() + seconds
        attacker = threading.Thread(target=lambda: counts.append(reset_calls_on(flood, stop)))
        attacker.start()
        while attacker.is_alive():
            begin = time.monotonic()
            list(embed_call(channel, [[1, 2, 3]]))
            times.append(time.monotonic() - begin)
        attacker.join()
        for connection in idle:
            connection.close()
    hung_up = server.total("linserve_reset_floods_total")
    figures = [Figure("other callers during a rapid reset beside which no descriptor is left",
                      f"{len(times)} answered, slowest {1000 * max(times):.0f} ms, beside {counts[0]} resets, "
                      f"{'hung up on' if hung_up else 'kept up with'}", "hung up on, or answered within 10 s",
                      hung_up > 0 or max(times) < 10)]
    server.stop()
    return figures


def threads():
    """Calls of gRPC's reflection, each of which takes a thread."""
    if Settings.sanitized:
        return []  # sanitizers need threads of their own
    server = Server()
    before = server.threads()
    path = headers_block(b"/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo")
    connections = [connect(server.grpc) for _ in range(10)]
    for connection in connections:
        connection.sendall(PREFACE + frame(4, 0, 0) + b"".join(frame(1, 4, stream, path) for stream in range(1, 200, 2)))
    most = before
    for _ in range(20):
        most = max(most, server.threads())
        time.sleep(0.05)
    serves = server.serves()
    for connection in connections:
        connection.close()
    figures = [Figure("threads beside 1,000 silent calls of reflection", f"{before} before, {most} then", "64 more at most",
                      most < before + 64),
               Figure("served beside them", "yes" if serves else "no", "yes", serves)]
    server.stop()
    return figures


def endless_headers():
    """CVE-2023-33953: headers without an end, and a table of headers that is resized again and again."""
    server = Server()
    before = server.memory()
    refused = 0
    for kind in ("continuation", "table"):
        with connect(server.grpc) as connection:
            connection.settimeout(5)
            try:
                connection.sendall(PREFACE + frame(4, 0, 0))
                if kind == "continuation":
                    connection.sendall(frame(1, 0, 1, EMBED))
                    for _ in range(4000):
                        connection.sendall(frame(9, 0, 1, (b"\x00\x01a\x7f" + b"\x81\x7f" + b"b" * 384)[:390] * 40))
                else:
                    for stream in range(1, 20001, 2):
                        connection.sendall(frame(1, 5, stream, b"\x3f\xe1\x1f\x20" * 100 + EMBED))
            except OSError:
                refused += 1
    grown = (server.memory() - before) / 2**20
    figures = [Figure("memory after headers without an end (62 MB of them, and 10,000 tables)",
                      f"{grown:+.1f} MiB, {refused} of 2 connections were ended", "128 MiB at most",
                      grown < 128 or not Settings.judges_memory()), server.serves_figure("them")]
    server.stop()
    return figures


def endless_lines():
    """Requests over HTTP of which a line never ends: the first, a header, the one before a chunk."""
    server = Server()
    before, most, sent, slowest = server.memory(), 0, 0, 0
    for begin in (b"GET /", b"GET / HTTP/1.1\r\nX: ", b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"):
        with connect(server.http) as connection:
            connection.settimeout(5)
            start = time.monotonic()
            try:
                connection.sendall(begin)
                while time.monotonic() < start + 10:
                    connection.sendall(b"1" * 65536)
                    sent += 65536
                    most = max(most, server.memory())
            except OSError:
                pass
            slowest = max(slowest, time.monotonic() - start)
    grown = (most - before) / 2**20
    figures = [Figure(f"memory during three lines without an end ({sent / 2**20:.0f} MiB)", f"{grown:+.1f} MiB", "16 MiB at most",
                      grown < 16 or not Settings.judges_memory()),
               Figure("they are hung up on", f"after {slowest:.1f} s", "5 s at most", slowest < 5),
               server.serves_figure("them")]
    server.stop()
    return figures


class UnfinishedCalls:
    """One connection with calls of large messages, which are sent as fast as flow control lets them."""

    def __init__(self, address, streams, announced=100 << 20):
        self.socket = connect(address)
        self.connection_window = 65535
        self.windows = {stream: 65535 for stream in range(1, 2 * streams, 2)}
        self.left = dict.fromkeys(self.windows, announced)
        self.received = b""
        self.socket.settimeout(5)
        self.socket.sendall(PREFACE + frame(4, 0, 0))
        for stream in self.windows:
            self.socket.sendall(frame(1, 4, stream, EMBED))
            self.send(stream, b"\0" + struct.pack(">I", announced))

    def send(self, stream, data):
        self.socket.sendall(frame(0, 0, stream, data))
        self.windows[stream] -= len(data)
        self.connection_window -= len(data)

    def answer(self, kind, flags, stream, payload):
        """What the server has sent: windows grow, settings and pings are acknowledged."""
        if kind == 8 and stream == 0:
            self.connection_window += struct.unpack(">I", payload)[0]
        elif kind == 8 and stream in self.windows:
            self.windows[stream] += struct.unpack(">I", payload)[0]
        elif kind == 3:
            self.windows.pop(stream, None)
        elif kind == 4 and not flags & 1:
            for at in range(0, len(payload), 6):
                name, value = struct.unpack(">HI", payload[at:at + 6])
                if name == 4:
                    self.windows = {one: window + value - 65535 for one, window in self.windows.items()}
            self.socket.sendall(frame(4, 1, 0))
        elif kind == 6 and not flags & 1:
            self.socket.sendall(frame(6, 1, 0, payload))

    def read(self):
        self.socket.settimeout(0.01)
        try:
            self.received += self.socket.recv(65536)
        except TimeoutError:
            pass
        self.socket.settimeout(5)
        while len(self.received) >= 9 + int.from_bytes(self.received[:3], "big"):
            size = int.from_bytes(self.received[:3], "big")
            self.answer(self.received[3], self.received[4], int.from_bytes(self.received[5:9], "big") & (2**31 - 1),
                        self.received[9:9 + size])
            self.received = self.received[9 + size:]

    def push(self):
        """Sends what the windows allow; how many bytes that were."""
        sent = 0
        for stream in list(self.windows):
            if min(self.windows[stream], self.connection_window, self.left[stream]) > 16384:
                self.send(stream, bytes(16384))
                self.left[stream] -= 16384
                sent += 16384
        self.read()
        return sent


def unfinished_messages():
    """Large messages on many streams, of which the end never comes: nobody knows yet who sends them."""
    bound = 400_000_000
    server = Server(options=("--max-inflight-bytes", str(bound)))
    before = most = server.memory()
    calls = [UnfinishedCalls(server.grpc, 40) for _ in range(8)]
    sent = 0
    stop = time.monotonic() + (4 if Settings.quick else 30)
    while time.monotonic() < stop and most < 4 << 30:
        for call in calls:
            try:
                sent += call.push()
            except OSError:
                pass
        most = max(most, server.memory())
    serves = server.serves()
    for call in calls:
        call.socket.close()
    figures = [Figure("memory for messages without an end (8 connections of 40 calls)",
                      f"{(most - before) / 2**20:+.0f} MiB, {sent / 2**20:.0f} MiB were taken",
                      "max_inflight_bytes (381 MiB) and a quarter", most - before < 1.25 * bound or not Settings.judges_memory()),
               Figure("served beside them", "yes" if serves else "no", "yes", serves), server.serves_figure("they left")]
    server.stop()
    return figures
