"""Promise 7: half an hour of mixed traffic, at whose end the server is as it was after five minutes."""

import os
import random
import shutil
import signal
import threading
import time

import grpc

from harness import Figure, Server, Settings, channel_of, embed_call, say


def traffic(server, seed, stop):
    """Calls of all kinds on connections that come and go; some leave, some are faulty."""
    choose = random.Random(seed)
    while time.monotonic() < stop:
        with channel_of(server.grpc) as channel:
            for _ in range(choose.randrange(1, 200)):
                if time.monotonic() > stop:
                    break
                kind = choose.random()
                ids = [[choose.randrange(256) for _ in range(choose.randrange(1, 65))]
                       for _ in range(choose.randrange(1, 9))]
                if kind < 0.1:
                    ids[0] = [70000] * choose.randrange(1, 200)  # not in the vocabulary, and too long
                try:
                    call = embed_call(channel, ids, pooling=choose.choice([1, 2]), timeout=30)
                    if kind > 0.9:
                        time.sleep(choose.random() * 0.002)
                        call.cancel()
                    for _ in call:
                        pass
                except grpc.RpcError:
                    pass


def reload_again(server):
    weights = server.repository / "m/model.safetensors"
    shutil.copy(weights, f"{weights}.new")
    os.rename(f"{weights}.new", weights)
    server.process.send_signal(signal.SIGHUP)


def settled(server):
    """The memory, descriptors and threads of a moment without traffic."""
    server.books()
    return server.memory(), server.descriptors(), server.threads()


def soak():
    minutes = float(os.environ.get("LINSERVE_TEST_SOAK_MINUTES", "1" if Settings.quick else "30"))
    server = Server()
    first, rest = minutes * 60 / 6, minutes * 60 * 5 / 6
    measured = []
    for seconds in (first, rest):
        stop = time.monotonic() + seconds
        threads = [threading.Thread(target=traffic, args=(server, seed, stop)) for seed in range(6)]
        for thread in threads:
            thread.start()
        reloads = 0
        while time.monotonic() < stop:
            time.sleep(min(20, max(0.1, stop - time.monotonic())))
            reload_again(server)
            reloads += 1
            say(f"soak: {server.memory() / 2**20:.1f} MiB, {server.total('linserve_results_total'):.0f} sequences")
        for thread in threads:
            thread.join()
        time.sleep(3)  # idle connections and threads of HTTP end
        measured.append(settled(server))
    (early, early_descriptors, early_threads), (late, late_descriptors, late_threads) = measured
    growth = late / early - 1
    figures = [
        Figure(f"memory after {minutes:.0f} minutes against that after {minutes / 6:.1f}",
               f"{early / 2**20:.1f} to {late / 2**20:.1f} MiB, {growth:+.2%}; {server.total('linserve_results_total'):.0f} sequences",
               "2 % more at most", growth <= 0.02 or not Settings.judges_speed()),
        Figure("descriptors", f"{early_descriptors} and {late_descriptors}", "constant", late_descriptors <= early_descriptors + 4),
        Figure("threads", f"{early_threads} and {late_threads}", "constant", late_threads <= early_threads + 4),
        server.books_figure(), server.serves_figure("the soak"),
    ]
    server.stop()
    return figures
