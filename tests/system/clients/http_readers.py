"""Readers of HTTP that nobody here wrote, and the grammar of it, to judge what they find."""

import collections
import ipaddress
import re

import h11
import httptools

# What a reader finds: whole requests, each a method, a target, a body, its end and whether it is the last, and why it
# refuses what follows, "" if it does not.
Found = collections.namedtuple("Found", "requests fault")


def by_h11(data):
    requests, start = [], 0
    while start < len(data):
        connection = h11.Connection(h11.SERVER)
        connection.receive_data(data[start:])
        request, body = None, b""
        try:
            while not isinstance(event := connection.next_event(), h11.EndOfMessage):
                if event is h11.NEED_DATA:
                    return Found(requests, "")
                if isinstance(event, h11.Request):
                    request = event
                else:
                    body += event.data
        except h11.RemoteProtocolError as error:
            return Found(requests, str(error))
        start = len(data) - len(connection.trailing_data[0])
        last = connection.their_state is h11.MUST_CLOSE
        requests.append((request.method, request.target, bytes(body), start, last))
        if last:
            break
    return Found(requests, "")


class LlhttpReader:
    """llhttp does not say where a request ends, so it gets one byte at a time."""

    def __init__(self):
        self.parser = httptools.HttpRequestParser(self)
        self.requests, self.end = [], 0

    def on_message_begin(self):
        self.target, self.body = b"", b""

    def on_url(self, url):
        self.target += url

    def on_body(self, body):
        self.body += body

    def on_message_complete(self):
        self.requests.append((self.parser.get_method(), self.target, self.body, self.end, not self.parser.should_keep_alive()))

    def read(self, data):
        try:
            for self.end in range(1, len(data) + 1):
                self.parser.feed_data(data[self.end - 1:self.end])
                if self.requests and self.requests[-1][4]:
                    break
        except httptools.HttpParserUpgrade:
            return Found(self.requests[:-1], "another protocol follows")
        except httptools.HttpParserError as error:
            return Found(self.requests, str(error) or type(error).__name_)
        return Found(self.requests, "")


def by_llhttp(data):
    return LlhttpReader().read(data)


TOKEN = rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
NAME = rb"(?:[-._~!$&'()*+,;=0-9A-Za-z]|%[0-9A-Fa-f]{2})*"
PATH = rb"(?:[-._~!$&'()*+,;=:@/0-9A-Za-z]|%[0-9A-Fa-f]{2})*"
HOST_AND_PORT = re.compile(rb"(?:\[(?P<ip>[^]]*)\]|" + NAME + rb")(?::[0-9]*)?")
TARGET = re.compile(rb"(?:/|(?i:https?)://(?P<host>[^:/?][^/?]*)(?![^/?]))" + PATH + rb"(?:\?(?:" + PATH + rb"|\?)*)?")
FIELD = re.compile(rb"(" + TOKEN + rb"):[ \t]*([\t\x20-\x7e\x80-\xff]*)\r\n")
FIELDS_END = re.compile(rb"(?:" + FIELD.pattern + rb")*\r\n")
HEAD = re.compile(rb"(?:\r\n)?(?:GET|HEAD|POST|OPTIONS|PATCH|PUT|DELETE|TRACE) (?P<target>[!-~]+) HTTP/1\.(?P<minor>[0-9])\r\n"
                  rb"(?P<fields>(?:" + FIELD.pattern + rb")*)\r\n")
QUOTED = rb"\"(?:[\t !#-[\]-~\x80-\xff]|\\[\t -~\x80-\xff])*\""
CHUNK = re.compile(rb"([0-9A-Fa-f]+)(?:[ \t]*;[ \t]*" + TOKEN +
                   rb"(?:[ \t]*=[ \t]*(?:" + TOKEN + rb"|" + QUOTED + rb"))?)*\r\n")


def is_host(text):
    match = HOST_AND_PORT.fullmatch(text)
    try:
        return bool(match) and (match["ip"] is None or bool(ipaddress.IPv6Address(match["ip"].decode())))
    except ValueError:
        return False


def is_request(raw):
    """Whether the bytes are one request by the grammar of RFC 9110 and 9112: a third reader, which finds no requests,
    but judges those that were found."""
    head = HEAD.match(raw)
    target = head and TARGET.fullmatch(head["target"])
    if not target or (target["host"] is not None and not is_host(target["host"])):
        return False
    values = collections.defaultdict(list)
    for name, value in FIELD.findall(head["fields"]):
        values[name.lower()].append(value.strip(b" \t"))
    hosts, lengths, old = values[b"host"], values[b"content-length"], head["minor"] == b"0"
    if not all(map(is_host, hosts)) or len(hosts) > 1 or (not hosts and not old):
        return False
    if b"transfer-encoding" not in values:
        body = int(lengths[0]) if lengths and re.fullmatch(rb"[0-9]+", lengths[0]) else 0 if not lengths else -1
        return len(lengths) < 2 and body >= 0 and head.end() + body == len(raw)
    codings = [coding.strip(b" \t").lower() for value in values[b"transfer-encoding"] for coding in value.split(b",")]
    return not old and not lengths and list(filter(None, codings)) == [b"chunked"] and are_chunks(raw, head.end())


def are_chunks(raw, at):
    while chunk := CHUNK.match(raw, at):
        size, at = int(chunk[1], 16), chunk.end()
        if size == 0:
            end = FIELDS_END.match(raw, at)
            names = {name.lower() for name, _ in FIELD.findall(raw, at)}
            return bool(end) and end.end() == len(raw) and names.isdisjoint((b"content-length", b"transfer-encoding"))
        if raw[at + size:at + size + 2] != b"\r\n":
            return False
        at += size + 2
    return False
