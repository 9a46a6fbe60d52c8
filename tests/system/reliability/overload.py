"""Five times more than the server can do, and callers who leave."""

import random
import tempfile
import threading
import time

import grpc

from harness import SLOW, Figure, Server, Settings, channel_of, embed_call, errors_of, load, report_of, wait_for

LENGTHS = ("--lengths", "fixed:256")
DEADLINE = ("--deadline-ms", "2000")


def good(report, seconds):
    return report["within"]["requests"] / seconds


def overload_with_a_cache():
    """The same where results are cached, by sequences of which none comes twice."""
    return [] if Settings.quick else overload(("--distinct", "60000"), "--cache-bytes", str(64 << 20))


def overload(inputs=(), *options):
    """Promise 1: goodput, refusals with a delay, memory and latency at 5 times the capacity."""
    seconds = 8 if Settings.quick else 60
    room = 128 if options else 64  # the cache's own included
    server = Server(SLOW, ("--threads", "1", "--dtype", "f32", *options))
    peak_report = report_of(load(server.grpc, "--concurrency", "16", "--duration", "8", *LENGTHS, *DEADLINE, *inputs))
    peak = good(peak_report, peak_report["seconds"])
    before = server.memory()
    most = [before]
    client = load(server.grpc, "--rate", str(5 * peak), "--duration", str(seconds), "--warmup", "3", *LENGTHS, *DEADLINE, *inputs)
    while client.poll() is None and client.returncode is None:
        most.append(server.memory())
        time.sleep(0.1)
        if len(most) > 10 * (seconds + 60):
            break
    report = report_of(client)
    goodput = good(report, report["seconds"])
    errors = errors_of(report)
    late = errors.get("DEADLINE_EXCEEDED", 0)
    others = set(errors) - {"RESOURCE_EXHAUSTED", "DEADLINE_EXCEEDED"}
    figures = [
        Figure(" ".join(["goodput at 5 times the capacity", *options]), f"{goodput:.0f} of {peak:.0f} requests/s, {goodput / peak:.0%}",
               "90 % or more", goodput >= 0.9 * peak or not Settings.judges_speed()),
        Figure("what the refused are told", f"{errors} of {report['requests']}",
               "RESOURCE_EXHAUSTED; in 0.1 % at most the deadline passes",
               not others and (late <= 0.001 * report["requests"] or not Settings.judges_speed())),
        Figure("latency of the accepted, p99", f"{report['service_ms']['p99']:.0f} ms", "below the deadline, 2000 ms",
               report["service_ms"]["p99"] < 2000 or not Settings.judges_speed()),
        Figure("memory", f"{before / 2**20:.0f} MiB before, {max(most) / 2**20:.0f} MiB at most",
               f"{room} MiB more at most", max(most) - before < room * 2**20 or not Settings.judges_memory()),
        Figure("the load generator's share of the machine", f"{report['client_cpu_share']:.0%}", "below 50 %",
               report["client_cpu_share"] < 0.5),
        server.books_figure(),
        server.serves_figure("the overload"),
    ]
    server.stop()
    return figures


def forward_times(server):
    """The seconds of all forward passes up to now, and how many they were."""
    name = "linserve_compute_duration_seconds"
    return server.total(f"{name}_sum", 'phase="forward"'), server.total(f"{name}_count", 'phase="forward"')


def fairness():
    """Promise 1: one caller's long sequences do not starve another's short ones."""
    tokens = ('{"tokens": [{"name": "long", "token": "token of the long"},'
              ' {"name": "short", "token": "token of the short", "may": ["infer", "metrics"]}]}')
    seconds = 4 if Settings.quick else 20
    with tempfile.NamedTemporaryFile("w") as file:
        file.write(tokens)
        file.flush()
        server = Server(SLOW, ("--threads", "1", "--dtype", "f32", "--tokens-file", file.name))
    server.token = "token of the short"

    short = ("--rate", "10", "--lengths", "fixed:16", "--duration", str(seconds))
    alone = report_of(load(server.grpc, *short, token="token of the short"))
    crowd = load(server.grpc, "--concurrency", "256", "--lengths", "fixed:512", "--duration", str(seconds + 10),
                 token="token of the long")
    wait_for(lambda: server.total("linserve_queue_sequences") > 100, "a backlog")
    begin = forward_times(server)
    time.sleep(2)
    end = forward_times(server)
    batch = 1000 * (end[0] - begin[0]) / (end[1] - begin[1])
    beside = report_of(load(server.grpc, *short, token="token of the short"))
    crowd.terminate()
    crowd.communicate()
    figures = [
        Figure("short sequences beside another caller's backlog of 256 long ones, p50",
               f"{beside['latency_ms']['p50']:.0f} ms, alone {alone['latency_ms']['p50']:.1f} ms, a batch {batch:.0f} ms; "
               f"{beside['ok_requests']} of {beside['requests']} OK",
               "all answered, within three batches", beside["ok_requests"] == beside["requests"] and
               (beside["latency_ms"]["p50"] < 3 * batch or not Settings.judges_speed())),
        server.books_figure(),
    ]
    server.stop()
    return figures


def leaving_callers():
    """Promise 2: half the callers leave; next to nothing is computed for nobody."""
    seconds = 5 if Settings.quick else 30
    server = Server(SLOW, ("--threads", "1", "--dtype", "f32"))
    stop = time.monotonic() + seconds
    counts = {"stayed": 0, "left": 0}
    lock = threading.Lock()

    def caller(seed):
        choose = random.Random(seed)
        with channel_of(server.grpc) as channel:
            while time.monotonic() < stop:
                leaves = choose.random() < 0.5
                call = embed_call(channel, [[1] * 256] * 2, pooling=2)
                if leaves:
                    time.sleep(choose.random() * 0.05)
                    call.cancel()
                try:
                    for _ in call:
                        pass
                except grpc.RpcError:
                    pass
                with lock:
                    counts["left" if leaves else "stayed"] += 1

    threads = [threading.Thread(target=caller, args=(seed,)) for seed in range(32)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    books = server.books_figure()
    computed, wasted = server.total("linserve_tokens_total"), server.total("linserve_wasted_tokens_total")
    figures = [
        Figure("tokens computed for callers who had left",
               f"{wasted / computed:.2%} of {computed:.0f}; {counts['left']} callers left, {counts['stayed']} stayed",
               "below 1 %", wasted < 0.01 * computed or not Settings.judges_speed()),
        books,
    ]
    server.stop()
    return figures
