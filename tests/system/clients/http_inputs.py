"""Requests over HTTP, mutated where that may change where they begin and end."""

import random
import re

TAIL = b"GET /end HTTP/1.1\r\nHost: e\r\n\r\n"
HOST = b"Host: a\r\n"
BASES = [
    b"GET /livez HTTP/1.1\r\n" + HOST + b"Accept: */*\r\n\r\n",
    b"HEAD http://a:80/livez?b=c%20d HTTP/1.1\r\n" + HOST + b"Connection: keep-alive\r\n\r\n",
    b"GET /livez HTTP/1.0\r\n\r\n",
    b"POST /embed HTTP/1.1\r\n" + HOST + b"Content-Length: 12\r\n\r\n{\"inputs\":1}",
    b"POST /embed HTTP/1.1\r\n" + HOST + b"Expect: 100-continue\r\nContent-Length: 31\r\n\r\n" + TAIL,
    b"POST /embed HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
    b"POST /v2/x HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: Chunked\r\nTrailer: c\r\n\r\n"
    b"0A;a=b;c=\"d \\\" e\"\r\n0123456789\r\n1;f\r\n\n\r\n000\r\nc: d\r\ne:\r\n\r\n",
    b"GET / HTTP/1.1\r\nhost:\ta:8080 \r\nX-Y: \x80 b\tc\r\nTransfer-Encoding: chunked\r\n\r\n1F\r\n" + TAIL + b"\r\n0\r\n\r\n",
]
FIELDS = [
    b"Content-Length: 0", b"Content-Length: 5", b"Content-Length: 5, 5", b"Content-Length: +5", b"content-length:5",
    b"Content-Length : 5", b"Content-Length:", b"Content-Length: 0005", b"Content-Length: 00000000000000000000005",
    b"Content-Length: 18446744073709551621", b"Content-Length: 0x5", b"Content-Length: -1", b"Content-Length: 5 5",
    b"Transfer-Encoding: chunked", b"Transfer-Encoding : chunked", b"Transfer-Encoding:", b"Transfer-Encoding: ,chunked",
    b"Transfer-Encoding: chunked,", b"Transfer-Encoding: chunked, chunked", b"Transfer-Encoding: gzip, chunked",
    b"Transfer-Encoding: chunked, gzip", b"Transfer-Encoding: identity", b"Transfer-Encoding: xchunked",
    b"Transfer-Encoding: chunked;a=b", b"Transfer-Encoding:\x0bchunked", b"Transfer-Encoding: \"chunked\"",
    b"TRANSFER-ENCODING: CHUNKED", b" Transfer-Encoding: chunked", b"Transfer-Encoding:\r\n chunked",
    b"Host: b", b"Host:", b"Host: a, b", b"Host: b@c", b"Host: [::1]:80", b"Connection: close", b"Connection: a, Close",
    b"Connection: keep-alive", b"Expect: 100-Continue", b"Expect: more", b"Upgrade: h2c", b"Connection: upgrade",
    b"A: b\r\n c", b": a", b"A", b"A B: c", b"A\x00: b", b"A: \x00", b"A: \x01", b"A: \r b", b"A: \n b", b"\x80: a",
]
NUMBERS = [b"0", b"00", b"5", b"+5", b"-5", b"0x5", b"5 ", b" 5", b"5;", b"5;a", b"5 ;a", b"5;a=\"", b"5g", b"-ff",
           b"69zz", b"fffffffffffffffff", b"10000000000000005", b"00000000000000000000000005", b"1.1", b"1.0", b"1.2",
           b"2.0", b"", b"5,5"]
ENDS = [b"\n", b"\r", b"\r\r\n", b"\n\r\n", b"\r\n\n", b"\n\n", b"\r\n\r\n", b"", b" \r\n", b"\t\r\n", b"\r\n ",
        b"\r\n\t", b"\x00\r\n", b"X\r\n", b"\r\nX", b"\r\n0\r\n\r\n"]
BYTES = [b"\r", b"\n", b"\0", b" ", b"\t", b":", b";", b",", b"=", b"\"", b"\\", b"0", b"f", b"#", b"%", b"%4g", b"[",
         b"|", b"@", b"/", b"?", b"\x0b", b"\x7f", b"\x80", b"\xff", b"\r\n", b"chunked", b"HTTP/1.1"]


def put(choose, data, pattern, values):
    """Puts a value in the place of one of the matches."""
    places = list(re.finditer(pattern, data))
    if not places:
        return data
    place = choose.choice(places)
    return data[:place.start()] + choose.choice(values) + data[place.end():]


def add_field(choose, data):
    return put(choose, data, rb"\r\n(?=[A-Za-z])", [b"\r\n" + field + b"\r\n" for field in FIELDS])


def splice(choose, data):
    at = choose.randrange(len(data) + 1)
    return data[:at] + choose.choice(BYTES) + data[at + choose.randrange(3):]


def flip(choose, data):
    changed = bytearray(data)
    changed[choose.randrange(len(changed))] ^= 1 << choose.randrange(8)
    return bytes(changed)


def cut(choose, data):
    at = choose.randrange(len(data))
    return data[:at] + data[at + choose.choice((1, 1, 2, 5, 40)):]


def move_line(choose, data):
    lines = data.split(b"\r\n")
    line = lines[choose.randrange(len(lines))] if choose.random() < 0.5 else lines.pop(choose.randrange(len(lines)))
    lines.insert(choose.randrange(len(lines) + 1), line)
    return b"\r\n".join(lines)


def digits(choose, data):
    return put(choose, data, rb"\b[0-9A-F]+(\.[0-9])?\b", NUMBERS)


def line_end(choose, data):
    return put(choose, data, rb"\r\n", ENDS)


def word(choose, data):
    return put(choose, data, rb"(?<=\r\n)[A-Za-z-]+:|GET|POST|HTTP", [b"get", b"PUT", b"FOO", b"http", b"A-B:", b"A:"])


MUTATIONS = [add_field, add_field, add_field, digits, digits, line_end, line_end, splice, splice, splice, flip, cut,
             move_line, word]


def mutated(seed, number):
    """What comes on a connection: one request or two, perhaps mutated, and one that is good."""
    choose = random.Random(f"{seed} {number}")
    data = b"".join(choose.choice(BASES) for _ in range(choose.choice((1, 1, 2))))
    for _ in range(choose.choice((0, 1, 1, 1, 1, 1, 2, 3))):
        data = choose.choice(MUTATIONS)(choose, data or b"\r\n")
    return data + TAIL
