"""HTTP/2 by hand: frames, the headers of a call, and connections that send any bytes."""

import socket
import struct
import time

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def headers_block(path):
    def literal(name, value):
        return b"\x00" + bytes([len(name)]) + name + bytes([len(value)]) + value
    return (literal(b":method", b"POST") + literal(b":scheme", b"http") + literal(b":path", path) +
            literal(b":authority", b"x") + literal(b"te", b"trailers") + literal(b"content-type", b"application/grpc"))


EMBED = headers_block(b"/linserve.v1.EmbeddingService/Embed")


def connect(address):
    connection = socket.create_connection(("127.0.0.1", int(address.rsplit(":", 1)[1])), timeout=5)
    connection.settimeout(0.05)
    return connection


def reset_calls_on(connection, stop):
    """Calls that are reset as soon as they are made, until the time `stop` or the connection's end; how many."""
    connection.settimeout(1)
    made = 0
    try:
        connection.sendall(PREFACE + frame(4, 0, 0))
        for first in range(1, 2**31 - 200, 200):
            if time.monotonic() > stop:
                break
            connection.sendall(b"".join(frame(1, 4, stream, EMBED) + frame(3, 0, stream, b"\0\0\0\x08")
                                        for stream in range(first, first + 200, 2)))
            made += 100
    except OSError:
        pass
    return made
