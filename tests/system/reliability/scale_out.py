"""Promise 10: several servers are one that is larger and does not end."""

import atexit
import functools
import signal
import tempfile
import time
from pathlib import Path

from harness import SLOW, Figure, Server, Settings, init_model, load, report_of, wait_for
from proxy import SERVICE_CONFIG, Callers, Proxy, no_proxy
from quota import Quotas

COUNT = 3
OPTIONS = ("--threads", "1", "--dtype", "f32")
# Longer than a proxy takes to see it, or a client that watches health.
DRAINING = (*OPTIONS, "--drain-delay-seconds", "1")
# Some 2 ms a request: quick to start, and whenever one is killed, calls are in it.
MIDDLE = {**SLOW, "dim": 128, "depth": 4}
TOKENS = 128
# Seconds of work that wait, at which deploy/kubernetes adds pods.
TARGET = 0.1


def port_of(address):
    return address.rsplit(":", 1)[1]


@functools.cache
def repository(slow):
    """Of all servers of a model; it outlives each of them."""
    directory = tempfile.TemporaryDirectory()
    atexit.register(directory.cleanup)
    init_model(Path(directory.name) / "m", SLOW if slow else MIDDLE)
    return Path(directory.name)


def start(options=OPTIONS, count=COUNT, slow=False):
    return [Server(options=options, repository=repository(slow)) for _ in range(count)]


def again(server, options):
    """A fresh one where it was."""
    return Server(options=options, grpc_port=port_of(server.grpc), http_port=port_of(server.http),
                  repository=server.repository)


def all_of(servers):
    """For gRPC's own balancing, the addresses as a name server would give them."""
    return "ipv4:" + ",".join(server.grpc for server in servers)


def answered(server):
    return server.total("linserve_requests_total", 'code="OK",model="m",rpc="Embed"')


def spread_figure(way, servers, calls):
    # A server counts a call once it is done with, a little after its answer.
    wait_for(lambda: sum(map(answered, servers)) >= calls, "the calls to be counted")
    counts = [answered(server) for server in servers]
    share = sum(counts) / len(counts)
    worst = max(abs(count - share) / share for count in counts)
    return Figure(f"calls of each of {len(servers)} servers, spread by {way}",
                  f"{', '.join(f'{count:.0f}' for count in counts)}: {worst:.1%} off its share at most",
                  "each within 10 % of its share", worst <= 0.1)


def stop_all(servers):
    figures = [server.books_figure() for server in servers]
    codes = {server.stop() for server in servers}
    return figures + [Figure("and all drain", f"exit codes {codes}", "0", codes == {0})]


def spread(way, target, balance):
    """An open loop, in which no server has it in its hands how often it is asked."""
    servers = start()
    client = load(target(servers), "--rate", "60", "--requests", "150" if Settings.quick else "3000", "--warmup", "0",
                  "--lengths", "uniform:16,256", balance=balance)
    report = report_of(client)
    figures = [Figure(f"calls by {way}", f"{report['ok_requests']} of {report['requests']} OK", "all",
                      report["ok_requests"] == report["requests"]),
               spread_figure(way, servers, report["ok_requests"])]
    return figures + stop_all(servers)


def spread_by_proxy():
    """One connection of one client, whose calls a proxy deals out."""
    if no_proxy():
        return []
    return spread("HAProxy", lambda servers: Proxy(servers).address, balance=False)


def spread_by_client():
    """The client knows all addresses, and deals out its calls itself."""
    return spread("the client", all_of, balance=True)


class Crowd:
    """Callers through a proxy, or of all servers by the whole of the published service config: those of Python's gRPC and, as
    nothing but gRPC tries its calls again there, the load generator's."""

    def __init__(self, way, servers):
        self.proxied = way == "HAProxy"
        if self.proxied:
            self.proxy = Proxy(servers)
            self.callers = Callers(self.proxy.address, 12, tokens=TOKENS)
            return
        self.callers = Callers(all_of(servers), 6, SERVICE_CONFIG, tokens=TOKENS)
        self.load = load(all_of(servers), "--concurrency", "6", "--duration", "3600", "--warmup", "0", "--lengths",
                         f"fixed:{TOKENS}", balance=True)

    def figure(self, what, more):
        self.callers.stop()
        done, failures = self.callers.done, list(self.callers.failures)
        if self.proxied:
            self.proxy.close()
        else:
            self.load.send_signal(signal.SIGTERM)  # it reports what has been answered by then
            report = report_of(self.load)
            done += report["ok_requests"]
            failures += [report["first_error"]] * (sum(report["request_errors"].values()) +
                                                   sum(report["sequence_errors"].values()))
        return Figure(what, f"{done} calls, {len(failures)} failed {failures[:1]}{more}", "0 failed",
                      not failures and done > 0)


def wait_for_calls(crowd, server):
    """Until the server has its share, or a call has failed already."""
    before = answered(server)
    wait_for(lambda: crowd.callers.failures or answered(server) > before + 20, "calls of a fresh server")


def ways():
    return ["the client"] if no_proxy() else ["HAProxy", "the client"]


def killed_replica():
    """kill -9 of one of three under load, again and again; what it was computing is computed elsewhere. Each call is of one
    pooled sequence, whose answer is one message: gRPC never tries again a call whose answer has begun to arrive."""
    figures = []
    rounds = 3 if Settings.quick else 12
    for way in ways():
        servers = start()
        crowd = Crowd(way, servers)
        lost = 0
        for turn in range(rounds):
            which = turn % COUNT
            wait_for_calls(crowd, servers[which])
            lost += servers[which].total("linserve_in_flight_requests")
            servers[which].stop(signal.SIGKILL)
            servers[which] = again(servers[which], OPTIONS)
        wait_for_calls(crowd, servers[which])
        figures.append(crowd.figure(f"kill -9 of one of {COUNT} servers, {rounds} times, balanced by {way}, gRPC's own retries",
                                    f", with {lost:.0f} in the servers that were killed"))
        figures += stop_all(servers)
    return figures


def rolling_replacement():
    """All three are replaced, one after the other, under load."""
    figures = []
    rounds = 1 if Settings.quick else 4
    for way in ways():
        servers = start(DRAINING)
        crowd = Crowd(way, servers)
        codes = set()
        for which in list(range(COUNT)) * rounds:
            wait_for_calls(crowd, servers[which])
            codes.add(servers[which].stop())
            servers[which] = again(servers[which], DRAINING)
        wait_for_calls(crowd, servers[which])
        figures.append(crowd.figure(f"all of {COUNT} servers replaced in turn, {rounds} times, balanced by {way}, gRPC's own "
                                    "retries", f", exit codes {codes}"))
        figures += stop_all(servers)
    return figures


def replicas_throughput():
    """What two and three servers of equal shares of the processors do, over what one does."""
    with Quotas(COUNT, 0.3) as quotas:
        if not quotas.groups:
            return [Figure("throughput of 1, 2 and 3 servers", f"left out, {quotas.reason}", "nothing here", True)]
        servers = start(slow=True)
        for which, server in enumerate(servers):
            quotas.add(which, server.process)
        rates = {count: [] for count in range(1, COUNT + 1)}
        for _ in range(1 if Settings.quick else 5):
            for count, found in rates.items():  # interleaved: what else the machine does, it does to all
                report = report_of(load(all_of(servers[:count]), "--concurrency", str(8 * count), "--duration",
                                        "2" if Settings.quick else "10", "--lengths", f"fixed:{TOKENS}", balance=True))
                found.append(report["requests_per_second"])
        middle = {count: sorted(found)[len(found) // 2] for count, found in rates.items()}
        return [Figure(f"throughput of {count} servers of 0.3 processors each",
                       f"{middle[count]:.1f} requests/s, {middle[count] / middle[1]:.2f} x one's", f"{0.9 * count:.1f} x or more",
                       middle[count] >= 0.9 * count * middle[1] or not Settings.judges_speed()) for count in rates]


def busy_seconds(server):
    return server.total("linserve_busy_seconds_total")


def measured(client, server):
    """The client's report, the mean of the server's estimates of the wait meanwhile, and its share of time computing."""
    found = []
    started, before = time.monotonic(), busy_seconds(server)
    while client.poll() is None:
        found.append(server.total("linserve_queue_delay_estimate_seconds"))
        time.sleep(0.2)
    busy = (busy_seconds(server) - before) / (time.monotonic() - started)
    return report_of(client), sum(found) / len(found), busy


def latency_load_curve():
    """What callers wait for, and what the autoscaler sees, from a fifth of the capacity to more than all of it."""
    seconds = 2 if Settings.quick else 40
    figures = []
    with Quotas(2, 0.5) as quotas:
        server, = start(count=1, slow=True)

        def run(*options):
            client = load(server.grpc, *options, "--duration", str(seconds), "--lengths", "lognormal:96,0.8,8,512")
            if quotas.groups:
                quotas.add(1, client)  # lest callers wait for the processor that something else has
            return measured(client, server)
        if quotas.groups:
            quotas.add(0, server.process)
        of = "half a processor" if quotas.groups else "a processor"
        capacity = run("--concurrency", "32")[0]["requests_per_second"]
        for percent in (20, 60, 100) if Settings.quick else (20, 40, 60, 70, 80, 90, 100, 120):
            report, estimate, busy = run("--rate", str(capacity * percent / 100), "--warmup", "3", "--deadline-ms", "4000")
            latency, refused = report["latency_ms"], report["requests"] - report["ok_requests"]
            kept, promised = True, ""
            if percent <= 80:
                kept, promised = refused == 0 and estimate < TARGET, f"all answered, estimate below {TARGET} s"
            elif percent > 100:
                kept, promised = estimate > TARGET, f"estimate above {TARGET} s"
            figures.append(Figure(
                f"a server of {of} at {percent} % of its {capacity:.1f} requests/s",
                f"{report['requests_per_second']:.1f}/s, p50 {latency['p50']:.0f} ms, p99 {latency['p99']:.0f} ms, estimate "
                f"{estimate:.3f} s, computing {busy:.0%}, {refused} of {report['requests']} refused",
                promised, kept or not Settings.judges_speed()))
    return figures
