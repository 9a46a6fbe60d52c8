"""Promise 8: TLS, mutual TLS, tokens and budgets, changed under load, and no secret anywhere."""

import json
import ssl
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

import grpc

from harness import Figure, Server, Settings, embed_request, errors_of, init_model, load, repeated, report_of, wait_for

APP, OTHER = "5f0c1a9b7e3d4c2f5f0c1a9b7e3d4c2f", "9d8e7f6a5b4c3d2e9d8e7f6a5b4c3d2e"


def openssl(*arguments):
    subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True)


class Authority:
    """Signs certificates for 127.0.0.1, and for callers."""

    def __init__(self, directory):
        self.directory = Path(directory)
        self.certificate = self.directory / "ca.crt"
        openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=authority", "-keyout",
                self.directory / "ca.key", "-out", self.certificate)

    def sign(self, name, serial, between=lambda: None):
        """The paths of a certificate and of its key; replaces the key of this name, then the certificate."""
        key, request, certificate = (self.directory / f"{name}.{kind}" for kind in ("key", "csr", "crt"))
        extension = self.directory / "extension"
        extension.write_text("subjectAltName=IP:127.0.0.1\n")
        new, new_key = self.directory / f"{name}.new", self.directory / f"{name}.new_key"
        openssl("req", "-newkey", "rsa:2048", "-nodes", "-subj", f"/CN={name}", "-keyout", new_key, "-out", request)
        openssl("x509", "-req", "-in", request, "-CA", self.certificate, "-CAkey", self.directory / "ca.key",
                "-set_serial", serial, "-days", "2", "-extfile", extension, "-out", new)
        new_key.rename(key)
        between()
        new.rename(certificate)
        return certificate, key


def serial_of(address):
    host, port = address.rsplit(":", 1)
    pem = ssl.get_server_certificate((host, int(port)))
    shown = subprocess.run(["openssl", "x509", "-noout", "-serial"], input=pem, text=True, check=True,
                           capture_output=True).stdout
    return int(shown.split("=")[1], 16)


def call(server, token="", credentials=None, model=""):
    """The name of the code that a request ends with."""
    channel = grpc.secure_channel(server.grpc, credentials) if credentials else grpc.insecure_channel(server.grpc)
    metadata = [("authorization", f"Bearer {token}")] if token else []
    with channel:
        try:
            list(channel.unary_stream("/linserve.v1.EmbeddingService/Embed")(
                b"\x12" + bytes([len(model)]) + model.encode() + embed_request([[1, 2]]), timeout=10, metadata=metadata))
            return "OK"
        except grpc.RpcError as error:
            return error.code().name


def certificates_replaced():
    """Certificate and key are replaced while callers connect all the time: nobody is refused."""
    with tempfile.TemporaryDirectory() as directory:
        authority = Authority(directory)
        certificate, key = authority.sign("server", 1)
        server = Server(options=("--tls-certificate", certificate, "--tls-private-key", key))
        credentials = grpc.ssl_channel_credentials(authority.certificate.read_bytes())

        def refusals():
            return server.log().count("the certificate of before goes on")

        def once_the_pair_is_refused():
            """The key and the certificate do not belong together now, as gRPC and HTTP must have found."""
            before = refusals()
            wait_for(lambda: refusals() > before, "the new key to be refused without its certificate")
        ends = []
        client = load(server.grpc, "--concurrency", "4", "--duration", "3600", "--warmup", "0",
                      tls_ca=authority.certificate)
        replacements = 3 if Settings.quick else 20
        with repeated(2, lambda: ends.append(call(server, credentials=credentials))):
            for serial in range(2, 2 + replacements):
                authority.sign("server", serial, between=once_the_pair_is_refused)
                wait_for(lambda wanted=serial: serial_of(server.grpc) == wanted, "the new certificate")
        client.terminate()
        report = report_of(client)
        failed = report["requests"] - report["ok_requests"]
        refused = len(ends) - ends.count("OK")
        server.stop()
    return [Figure(f"{replacements} replacements of key and, a second later, certificate: calls on new connections",
                   f"{len(ends)} calls, {refused} failed", "0 failed", refused == 0),
            Figure("calls on connections from before", f"{report['requests']} calls, {failed} failed", "0 failed",
                   failed == 0)]


def mutual_tls():
    """Who shows no certificate of the authority is not served."""
    with tempfile.TemporaryDirectory() as directory:
        authority = Authority(directory)
        certificate, key = authority.sign("server", 1)
        own_certificate, own_key = authority.sign("caller", 2)
        Path(directory, "other").mkdir()
        foreign_certificate, foreign_key = Authority(Path(directory, "other")).sign("caller", 2)
        server = Server(options=("--tls-certificate", certificate, "--tls-private-key", key, "--tls-client-ca",
                                 authority.certificate))
        root = authority.certificate.read_bytes()
        codes = [call(server, credentials=grpc.ssl_channel_credentials(root, *shown)) for shown in (
            (own_key.read_bytes(), own_certificate.read_bytes()), (),
            (foreign_key.read_bytes(), foreign_certificate.read_bytes()))]
        server.stop()
    return [Figure("mutual TLS: with a certificate, without, with another authority's", ", ".join(codes),
                   "OK, UNAVAILABLE, UNAVAILABLE", codes == ["OK", "UNAVAILABLE", "UNAVAILABLE"])]


class Tokens:
    """The tokens file, replaced as a whole."""

    def __init__(self, directory):
        self.path = Path(directory) / "tokens.json"

    def write(self, *tokens):
        new = self.path.with_suffix(".new")
        new.write_text(json.dumps({"tokens": tokens}))
        new.rename(self.path)


def tokens_changed():
    """A token is withdrawn, a broken file changes nothing, and no secret is seen anywhere."""
    with tempfile.TemporaryDirectory() as directory:
        tokens = Tokens(directory)
        app, other = {"name": "app", "token": APP}, {"name": "other", "token": OTHER, "may": ["infer", "metrics"]}
        tokens.write(app, other)
        server = Server(options=("--tokens-file", tokens.path, "--log-level", "debug"))
        server.token = OTHER
        before = [call(server, token) for token in (APP, OTHER, "", APP[:-1] + "0")]
        started = time.monotonic()
        tokens.write(other)
        wait_for(lambda: call(server, APP) == "UNAUTHENTICATED", "the token to be withdrawn")
        seconds = time.monotonic() - started
        tokens.path.write_text("{")
        def once_it_is_read():
            """What a caller gets who finds the file broken."""
            answer = call(server, OTHER)
            return answer if answer != "OK" or "the tokens of before go on" in server.log() else None
        kept = wait_for(once_it_is_read, "the broken file to be read")
        texts = {"metrics": server.get("/metrics"), "/": server.get("/"), "/v2": server.get("/v2")}
        try:
            urllib.request.urlopen(f"http://{server.http}/metrics", timeout=10)
            texts["errors"] = f"served without a token: {OTHER}"
        except urllib.error.HTTPError as error:
            texts["errors"] = error.read().decode()
        server.stop()
        texts["log"] = server.last_log
    leaks = [where for where, text in texts.items() if any(secret[:12] in text for secret in (APP, OTHER))]
    return [
        Figure("two tokens, none, and one that is nearly right", ", ".join(before), "OK, OK, and UNAUTHENTICATED twice",
               before == ["OK", "OK", "UNAUTHENTICATED", "UNAUTHENTICATED"]),
        Figure("a token that is withdrawn", f"refused after {seconds:.1f} s, without a restart", "within 10 s", seconds < 10 or not Settings.judges_speed()),
        Figure("the others while the file is broken", kept, "OK", kept == "OK"),
        Figure(f"tokens in {', '.join(texts)}", ", ".join(leaks) or "nowhere", "nowhere", not leaks),
    ]


def budgets():
    """A token over its rate is refused with a delay; another is not touched by it."""
    with tempfile.TemporaryDirectory() as directory:
        tokens = Tokens(directory)
        init_model(Path(directory) / "models/m")
        init_model(Path(directory) / "models/hidden")
        tokens.write({"name": "app", "token": APP, "requests_per_second": 50, "models": ["m"]},
                     {"name": "other", "token": OTHER, "models": ["m"]})
        server = Server(options=("--tokens-file", tokens.path), repository=Path(directory) / "models")
        flags = ("--duration", "4", "--warmup", "1", "--rate")
        clients = [load(server.grpc, "--model", "m", *flags, rate, token=token)
                   for token, rate in ((APP, "200"), (OTHER, "50"))]
        app, other = map(report_of, clients)
        hidden = call(server, APP, model="hidden")
        server.stop()
    rate = app["within"]["requests"] / app["seconds"]
    refused = errors_of(app)
    return [
        Figure("a token of 50 requests/s that sends 200", f"{rate:.0f} answered/s, the rest {', '.join(refused)}",
               "45 to 60, RESOURCE_EXHAUSTED", (45 <= rate <= 60 or not Settings.judges_speed()) and set(refused) == {"RESOURCE_EXHAUSTED"}),
        Figure("another token beside it", f"{other['ok_requests']} of {other['requests']} answered", "all",
               other["ok_requests"] == other["requests"]),
        Figure("a model that is not the token's", hidden, "PERMISSION_DENIED or NOT_FOUND",
               hidden in ("PERMISSION_DENIED", "NOT_FOUND")),
    ]
