"""Promise 12: little memory is enough, whatever is asked of it."""

import os
import signal
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from harness import Figure, Server, Settings, channel_of, init_model, wait_for
from input_fields import EMBED, native
from inputs import call_grpc
from memory_group import MemoryGroup

ROOT = Path(__file__).resolve().parents[3]
CAUSAL = {"num_tokens": 256, "dim": 512, "depth": 6, "heads": 8, "max_seq_len": 4096, "causal": True}
LARGE = {"num_tokens": 34000, "dim": 512, "depth": 2, "heads": 8, "k": 64, "seq_len": 256}  # 145 MiB
MIB = 1 << 20


def memory_figure(server, limit, group):
    alive = server.process.poll() is None
    most = server.kib("VmHWM") / 1024 if alive else 0
    return Figure(f"memory at most{group.note}", f"{most:.0f} MiB, the server {'is' if alive else 'IS NOT'} alive",
                  f"{limit // MIB} MiB, alive", alive and (most < limit / MIB or not Settings.judges_memory()))


def sessions_under_a_limit():
    """Callers begin more sessions than there is memory for: the least recently used give way."""
    limit, sessions = 512 * MIB, 30 if Settings.quick else 200
    with MemoryGroup(limit) as group, tempfile.TemporaryDirectory() as directory:
        init_model(Path(directory, "lm"), CAUSAL, architecture="linear_attention_transformer.LinearAttentionTransformerLM")
        server = Server(repository=Path(directory), prefix=group.prefix(), options=("--threads", "1"))
        codes = []
        with channel_of(server.grpc) as channel:
            for i in range(sessions):
                sequence = native("Sequence", token_ids=[1, 2, 3], session=native("SessionChunk", id=f"s{i}", start=True))
                request = native("EmbedRequest", model="lm", sequences=[sequence]).SerializeToString()
                codes.append(call_grpc(channel, EMBED, request))
        wrong = sorted(set(codes) - {"OK", "RESOURCE_EXHAUSTED"})
        kept = server.total("linserve_sessions")
        figures = [Figure(f"{sessions} sessions of three tokens", f"{codes.count('OK')} begun, {kept:.0f} kept, {wrong or 'no'} other codes",
                          "begun, or refused for want of room", codes.count("OK") > 0 and not wrong),
                   memory_figure(server, limit, group), server.serves_figure("them")]
        server.stop()
        return figures


def reload_that_does_not_fit():
    """A model's new version has no room beside the old one, which goes on."""
    limit = 400 * MIB
    with MemoryGroup(limit) as group, tempfile.TemporaryDirectory() as directory:
        server = Server(LARGE, prefix=group.prefix(), options=("--threads", "1"))
        failed = server.total("linserve_model_loads_total", 'result="failed"')
        for seed in (2, 3):
            init_model(Path(directory, str(seed)), LARGE, seed)
            os.replace(Path(directory, str(seed), "model.safetensors"), server.repository / "m/model.safetensors")
            server.process.send_signal(signal.SIGHUP)
            wait_for(lambda: server.process.poll() is not None or
                     server.total("linserve_model_loads_total", 'result="failed"') > failed or
                     server.total("linserve_model_loads_total", 'result="ok"') > seed - 1, "the end of the load")
        said = [line for line in server.log().splitlines() if "memory" in line]
        figures = [Figure("a reload that does not fit", (said or ["nothing"])[-1][-160:], "refused with what it needs, or done",
                          bool(said)),
                   memory_figure(server, limit, group), server.serves_figure("it")]
        server.stop()
        return figures


def texts_under_a_limit():
    """64 callers send the text that becomes the most, and another one's "hello" does not wait for them."""
    limit, callers = 512 * MIB, 8 if Settings.quick else 64
    text = "\ufdfa" * (MIB // 3)
    with MemoryGroup(limit) as group, ThreadPoolExecutor(callers) as pool:
        server = Server(repository=ROOT / "deploy/models", prefix=group.prefix(), options=("--threads", "1"))
        request = native("EmbedRequest", sequences=[native("Sequence", text=text)]).SerializeToString()
        hello = native("EmbedRequest", sequences=[native("Sequence", text="hello")]).SerializeToString()
        stop = threading.Event()

        def send():
            codes = []
            with channel_of(server.grpc) as channel:
                while not stop.is_set():
                    codes.append(call_grpc(channel, EMBED, request, timeout=5))
            return codes
        sending = [pool.submit(send) for _ in range(callers)]
        wait_for(lambda: server.total("linserve_in_flight_requests") > 1, "the texts")
        times = []
        with channel_of(server.grpc) as channel:
            for _ in range(50):
                begin = time.monotonic()
                call_grpc(channel, EMBED, hello)
                times.append(time.monotonic() - begin)
        stop.set()
        codes = {code for one in sending for code in one.result()}
        slowest = 1000 * max(times)
        figures = [Figure(f"\"hello\" beside {callers} texts of 1 MiB of U+FDFA", f"slowest of 50: {slowest:.0f} ms", "2 s at most",
                          slowest < 2000 or not Settings.judges_speed()),
                   Figure("what those are told", ", ".join(sorted(codes)), "too long, too much at once, or too late",
                          codes <= {"INVALID_ARGUMENT", "RESOURCE_EXHAUSTED", "DEADLINE_EXCEEDED", "UNAVAILABLE"}),
                   memory_figure(server, limit, group)]
        server.stop()
        return figures
