"""Where requests begin and end, as the server, h11 and llhttp find them in mutated requests.

Where a proxy in front of the server finds another request than the server does, one can be smuggled past it. So
wherever two readers take a request, it must be the same one, and one by the grammar of RFC 9112, too. Where one
refuses what the other takes, the reason stands below."""

import collections
import json
import multiprocessing
import os
import random
import re
import socket
import struct
import subprocess
import unittest

from http_inputs import mutated
from http_readers import Found, by_h11, by_llhttp, is_request
from served import BIN, Server

COUNT = int(os.environ.get("FRAMING_COUNT", 100_000))
CONNECTIONS = COUNT // 30
SEED = int(os.environ.get("FRAMING_SEED", random.randrange(2**32)))

# What we refuse and another reader takes: its name, our text, why.
STRICTER = {
    ("h11", "expected GET, HEAD, POST or OPTIONS"): "RFC 9110 has no such method, or one for proxies (9.1: 501)",
    ("llhttp", "expected GET, HEAD, POST or OPTIONS"): "the same",
    ("h11", "expected HTTP/1.1; HTTP/2 is spoken on the gRPC port"): "another major version (RFC 9110 15.6.6: 505)",
    ("llhttp", "expected HTTP/1.1; HTTP/2 is spoken on the gRPC port"): "llhttp takes 0.9 and 2.0 (the same)",
    ("llhttp", "the request line is malformed"): "llhttp takes HTTP/0.9, which names no version (RFC 9112 3)",
    ("h11", "the request line does not end with CRLF"): "h11 takes a bare LF, as RFC 9112 2.2 lets a recipient do",
    ("llhttp", "the request line does not end with CRLF"): "llhttp skips any CR and LF before it (RFC 9112 2.2: CRLF)",
    ("h11", "a header line does not end with CRLF"): "the same",
    ("h11", "the target of the request is malformed"): "h11 takes any visible characters (RFC 9112 3.2: 400)",
    ("llhttp", "the target of the request is malformed"):
        "llhttp takes characters that RFC 3986 has none for, percent signs alone, authorities that are none",
    ("h11", "the name of a header is malformed"): "h11 joins folded lines (RFC 9112 5.2: 400, or replace them)",
    ("h11", "a header has no colon"): "the same",
    ("h11", "the value of a header is malformed"): "h11 takes control characters (RFC 9110 5.5: invalid)",
    ("llhttp", "the value of a header is malformed"): "the same",
    ("h11", "expected one Host header, with a host and perhaps a port"):
        "h11 does not look into it (RFC 9112 3.2: 400)",
    ("llhttp", "expected one Host header, with a host and perhaps a port"):
        "llhttp does not look at it (RFC 9112 3.2: 400)",
    ("h11", "expected Content-Length or Transfer-Encoding, not both"):
        "h11 lets chunked win (RFC 9112 6.3: ought to be an error)",
    ("h11", "Content-Length is no length"): "h11 takes one that is repeated (RFC 9110 8.6: may be refused)",
    ("h11", "HTTP/1.0 has no Transfer-Encoding"): "h11 reads it all the same (RFC 9112 6.1: faulty framing)",
    ("llhttp", "HTTP/1.0 has no Transfer-Encoding"): "the same",
    ("llhttp", "expected Transfer-Encoding to end with chunked, once"):
        "llhttp takes chunked twice (RFC 9112 7.1: must not be)",
    ("llhttp", "expected no Transfer-Encoding but chunked"): "llhttp leaves the rest to others (RFC 9112 6.1: 501)",
    ("h11", "expected no Expect but 100-continue"): "RFC 9110 10.1.1: may be answered with 417",
    ("llhttp", "expected no Expect but 100-continue"): "the same",
    ("h11", "a length stands in the trailers"): "h11 takes that (RFC 9110 6.5.1: must not be)",
    ("llhttp", "a length stands in the trailers"): "llhttp takes some (the same)",
    ("h11", "the size of a chunk is malformed"):
        "h11 takes white space after it, and anything for an extension (RFC 9112 7.1)",
    ("llhttp", "the size of a chunk is malformed"): "llhttp is lax within extensions (RFC 9112 7.1.1)",
}

# What we take and another reader refuses: its name, how its message begins, why.
LAXER = {
    ("h11", "no request line received"): "an empty line before a request is ignored (RFC 9112 2.2)",
    ("h11", "multiple Transfer-Encoding headers"): "a list may come in several fields, empty ones too (RFC 9110 5.3)",
    ("h11", "Only Transfer-Encoding: chunked is supported"): "empty elements of a list are ignored (RFC 9110 5.6.1.2)",
    ("h11", "bad Content-Length"): "leading zeros are digits (RFC 9110 8.6)",
    ("h11", "illegal chunk header"): "leading zeros are digits, white space before an extension is skipped (RFC 9112 7.1)",
    ("llhttp", "Empty Transfer-Encoding"): "empty elements of a list are ignored (RFC 9110 5.6.1.2)",
    ("llhttp", "Request has invalid `Transfer-Encoding`"): "a tab after a value is white space, too (RFC 9110 5.6.3)",
    ("llhttp", "Invalid `Transfer-Encoding` header value"): "the same",
    ("llhttp", "Invalid character in chunk size"): "white space before an extension is skipped (RFC 9112 7.1.1)",
    ("llhttp", "Invalid character in chunk extensions"): "so it is within one (RFC 9112 7.1.1)",
    ("llhttp", "another protocol follows"): "an Upgrade may be ignored (RFC 9110 7.8)",
    ("llhttp", "Invalid HTTP version"): "a higher minor version is read as 1.1 (RFC 9110 2.5)",
}

# These are chosen refusals of what is no fault by the grammar.
CHOSEN = {"expected no Expect but 100-continue"}

def by_server(inputs):
    """What the server's own reader finds in each, and the status of its refusals."""
    text = b"".join(struct.pack("<I", len(data)) + data for data in inputs)
    run = subprocess.run([BIN / "http_framing"], input=text, capture_output=True, check=True, timeout=600)
    for line in run.stdout.splitlines():
        found = json.loads(line)
        status, fault = found["fault"] or (0, "")
        yield status, Found([(method.encode(), target.encode(), bytes.fromhex(body), end, last)
                             for method, target, body, end, last in found["requests"]], fault)


def start_of(requests, index):
    return requests[index - 1][3] if index else 0


def difference(name, data, ours, theirs):
    """What differs between two findings: None, a class of differences that is explained, or a text that says what is
    not."""
    for mine, other in zip(ours.requests, theirs.requests):
        if mine[:4] != other[:4]:
            return f"we find {mine}, {name} {other}"
        if mine[4] or other[4]:
            return None  # nothing is read after the last
    common = min(len(ours.requests), len(theirs.requests))
    if len(ours.requests) > common:
        mine = ours.requests[common]
        known = [key for key in LAXER if key[0] == name and theirs.fault.startswith(key[1])]
        return known[0] if known else f"we find {mine}, {name} refuses it or waits: {theirs.fault}"
    if len(theirs.requests) > common:
        other = theirs.requests[common]
        is_one = ours.fault not in CHOSEN and is_request(data[start_of(theirs.requests, common):other[3]])
        known = (name, ours.fault)
        return known if known in STRICTER and not is_one else f"{name} finds {other}, we refuse it or wait: {ours.fault}"
    return None  # both refuse what follows, or wait for more of it


def compared(numbers):
    """How often each class of differences was met, what is not explained, and what we took and refused."""
    inputs = [mutated(SEED, number) for number in numbers]
    classes, unexplained, counts = collections.Counter(), [], collections.Counter()
    for number, data, (_, ours) in zip(numbers, inputs, by_server(inputs)):
        counts["refused" if ours.fault else "taken"] += 1
        counts["requests"] += len(ours.requests)
        for index, request in enumerate(ours.requests):
            if not is_request(data[start_of(ours.requests, index):request[3]]):
                unexplained.append(f"input {number}: {data}: we find {request}, which is none by the grammar")
        for name, reader in (("h11", by_h11), ("llhttp", by_llhttp)):
            found = difference(name, data, ours, reader(data))
            if isinstance(found, tuple):
                classes[found] += 1
            elif found:
                unexplained.append(f"input {number}: {data}: {found}")
    return classes, unexplained, counts


class FramingTest(unittest.TestCase):
    def test_readers_find_the_same_requests(self):
        share = 2_000
        classes, unexplained, counts = collections.Counter(), [], collections.Counter()
        with multiprocessing.Pool() as pool:
            for some, others, few in pool.imap(compared, [range(at, min(at + share, COUNT)) for at in range(0, COUNT, share)]):
                classes, counts = classes + some, counts + few
                unexplained += others
        print(f"\nseed {SEED}: {COUNT} inputs, {dict(counts)}")
        for (reader, text), count in classes.most_common():
            known = STRICTER.get((reader, text))
            print(f"{count:7} {'we refuse' if known else 'we take'}, unlike {reader}: {text}: {known or LAXER[reader, text]}")
        self.assertGreater(counts["taken"], COUNT // 10)
        self.assertGreater(counts["refused"], COUNT // 10)
        self.assertEqual(unexplained[:5], [], f"{len(unexplained)} differences have no explanation (FRAMING_SEED={SEED})")

    def test_the_server_answers_what_its_reader_finds(self):
        server = Server()
        self.addCleanup(server.close)
        host, port = server.http.split(":")
        inputs = [mutated(SEED, COUNT + number) for number in range(CONNECTIONS)]
        for data, (status, ours) in zip(inputs, by_server(inputs)):
            with socket.create_connection((host, int(port)), timeout=60) as connection:
                connection.sendall(data)
                connection.shutdown(socket.SHUT_WR)
                answer = b"".join(iter(lambda: connection.recv(65536), b""))
            statuses = [int(code) for code in re.findall(rb"HTTP/1\.1 (\d{3}) [A-Z]", answer) if code != b"100"]
            ended = ours.requests[-1] if ours.requests else (b"", b"", b"", 0, False)
            wanted = len(ours.requests) + (not ended[4] and ended[3] < len(data))
            problem = f"{data} (FRAMING_SEED={SEED}): {answer}"
            unread = len(statuses) < wanted or (status and statuses[-1] != status)
            if b"100-continue" in data.lower() and unread:
                self.assertIn(b"Connection: close", answer, problem)  # it was not asked for its body
                continue
            self.assertEqual(len(statuses), wanted, problem)
            for (method, target, *_), code in zip(ours.requests, statuses):
                if target == b"/livez":
                    self.assertEqual(code, 200 if method in (b"GET", b"HEAD", b"OPTIONS") else 405, problem)
            if status:
                self.assertEqual(statuses[-1], status, problem)


if __name__ == "__main__":
    unittest.main(verbosity=2)
