"""Promise 3: replacing servers behind a proxy loses no request."""

from harness import Figure, Server, Settings, wait_for
from proxy import Callers, Proxy, no_proxy


def replacement():
    """Of two servers behind HAProxy one is replaced again and again, under full load with retries."""
    if no_proxy():
        return []
    rounds = 2 if Settings.quick else 10
    options = ("--drain-delay-seconds", "1")  # ten times the proxy's interval
    servers = [Server(options=options), Server(options=options)]
    ports = [(server.grpc.rsplit(":", 1)[1], server.http.rsplit(":", 1)[1]) for server in servers]
    proxy = Proxy(servers)
    callers = Callers(proxy.address, 8)
    codes = []
    for turn in range(rounds):
        before = callers.done
        wait_for(lambda: callers.done > before + 100 or callers.failures, "calls to go through")
        which = turn % 2
        codes.append(servers[which].stop())
        servers[which] = Server(grpc_port=ports[which][0], http_port=ports[which][1], options=options)
        wait_for(lambda: proxy.servers_up() == 2, "the proxy to see it")
    # Last, the proxy itself is killed (kill -9): a call may be lost then, but nothing is stuck.
    callers.stop()
    figures = [Figure(f"{rounds} replacements of one of two servers behind HAProxy, gRPC's own retries",
                      f"{callers.done} calls, {len(callers.failures)} failed {callers.failures[:1]}, exit codes {set(codes)}",
                      "0 failed", not callers.failures and set(codes) == {0} and callers.done > 0)]
    proxy.process.kill()
    proxy.process.wait()
    figures.append(servers[0].serves_figure("kill -9 of the proxy"))
    proxy.start()
    again = Callers(proxy.address, 2)
    wait_for(lambda: again.done > 10, "calls through the fresh proxy")
    again.stop()
    proxy.close()
    for server in servers:
        figures.append(server.books_figure())
        server.stop()
    return figures
