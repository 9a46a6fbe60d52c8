#!/usr/bin/env python3
"""Measures linserve on a GPU beside PyTorch on the same GPU, and prints one table.

Each figure is the median of --rounds, taken in turns with what it is compared with. The Python that
runs this has torch; --package is a folder that holds the Python packages `linformer` and `fla-core`
and their needs, and without it the rows that need them are left out. `tests/bench/gpu_pack` makes an archive with all of
that for a machine that has a GPU, but neither this checkout nor its Debian packages.

linserve's models and what they are compared with begin at the same place: rows or token ids of the
host, which both bring to the device, and both bring the results back. (Kernels alone begin and end on
the device.)

--device cpu --dtype f32 --quick tries the script where there is no GPU.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from serve import Server

sys.path.pop(0)  # the triton.py beside this is not PyTorch's
import torch  # noqa: E402
import torch.nn.functional as functional  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent.parent
LENGTHS = "lognormal:96,0.8,8,512"


def arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda", choices=("cuda", "cpu"))
    parser.add_argument("--dtype", default="bf16", choices=("f32", "bf16"))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="small sizes, two rounds")
    parser.add_argument("--only", nargs="+", choices=[part.__name__ for part in PARTS + OTHERS],
                        default=[part.__name__ for part in PARTS],
                        help="parts; by default those of linserve itself, which together take less than eight minutes")
    parser.add_argument("--bin", default=str(ROOT / "build/release/bin"))
    parser.add_argument("--package", help="folder with the Python packages")
    options = parser.parse_args()
    if options.quick:
        options.rounds = 2
    if options.device == "cuda" and not torch.cuda.is_available():
        sys.exit("gpu.py: PyTorch finds no GPU that it can use; "
                 "--device cpu --dtype f32 --quick tries the script without one")
    return options


def row(what, figures):
    print(f"{what:44} {figures}", flush=True)


def run(*words):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, words))}:\n{done.stdout}{done.stderr}")
    return done.stdout


class Linserve:
    """A model with random weights, and the rate at which the engine computes it."""

    def __init__(self, options, directory, architecture, params):
        self.options, self.directory = options, Path(directory) / str(time.monotonic_ns())
        run(f"{options.bin}/linserve", "init", "--architecture", architecture, "--params",
            json.dumps(params), "--output", self.directory)

    def tokens_per_second(self, lengths, sequences, batch_tokens):
        out = run(f"{self.options.bin}/linserve", "bench", "--model", self.directory, "--device",
                  self.options.device, "--dtype", self.options.dtype, "--lengths", lengths,
                  "--sequences", sequences, "--rounds", 3, "--max-batch-tokens", batch_tokens,
                  "--json")
        return json.loads(out)["tokens_per_s"]


class Transformer(torch.nn.Module):
    """The same layers with standard attention, from token ids to means."""

    def __init__(self, words, dim, depth, heads, flash):
        super().__init__()
        self.heads, self.flash, self.words = heads, flash, torch.nn.Embedding(words, dim)
        self.layers = torch.nn.ModuleList(torch.nn.ModuleDict({
            "norm": torch.nn.LayerNorm(dim), "qkv": torch.nn.Linear(dim, 3 * dim, bias=False),
            "out": torch.nn.Linear(dim, dim), "norm2": torch.nn.LayerNorm(dim),
            "ff": torch.nn.Sequential(torch.nn.Linear(dim, 4 * dim), torch.nn.GELU(),
                                      torch.nn.Linear(4 * dim, dim))}) for _ in range(depth))

    def attend(self, query, key, value):
        if self.flash:
            return functional.scaled_dot_product_attention(query, key, value)
        # A block of queries at a time: all scores of 65,536 rows fit into no memory.
        scale = query.size(-1) ** -0.5
        blocks = (block @ key.transpose(-1, -2) * scale for block in query.split(4096, dim=-2))
        return torch.cat([block.softmax(-1) @ value for block in blocks], dim=-2)

    def forward(self, ids):
        x = self.words(ids)
        for layer in self.layers:
            parts = layer["qkv"](layer["norm"](x)).chunk(3, dim=-1)
            heads = [part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in parts]
            x = x + layer["out"](self.attend(*heads).transpose(1, 2).flatten(-2))
            x = x + layer["ff"](layer["norm2"](x))
        return x.mean(1)


def seconds_of(function, device):
    """One call, after one to warm up."""
    function()
    if device == "cuda":
        torch.cuda.synchronize()
    start = time.perf_counter()
    function()
    if device == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - start


def torch_type(options):
    return torch.bfloat16 if options.dtype == "bf16" else torch.float32


def median_of_rounds(options, *measures):
    """The median of each, taken in turns."""
    rounds = [[measure() for measure in measures] for _ in range(options.rounds)]
    return [statistics.median(values) for values in zip(*rounds)]


def kernel_figures(options, names="."):
    """kernel_bench's, in microseconds, of the benchmarks whose names match."""
    out = run(f"{options.bin}/kernel_bench", "--device", options.device, "--rows",
              4096 if options.quick else 65536, f"--benchmark_filter={names}",
              "--benchmark_format=json")
    return [figure for figure in json.loads(out)["benchmarks"] if not figure.get("error_occurred")]


def kernels(options, _):
    """Our kernels, each beside LibTorch's operators, and one beside flash-linear-attention's."""
    if options.device == "cpu":
        return row("kernels", "left out: they are not the CPU's")
    measured = {}
    for i in range(options.rounds):
        # The operators take most of the time, and are far away: once is enough.
        for figure in kernel_figures(options, "." if i == 0 else "/kernel/|/library/"):
            measured.setdefault(figure["run_name"], []).append((figure["real_time"], figure["label"]))
    row("kernels", "time, bytes and FLOPs a second; how many times as long LibTorch takes by its operators, and "
        "by the one that it has for sequences of one length")
    ours = [name for name in measured if "/kernel/" in name]
    for name in ours:
        time, label = sorted(measured[name])[len(measured[name]) // 2]
        figures = f"{time:9,.0f} us, {label}"
        for by, what in (("/operators/", "LibTorch's operators"), ("/library/", "its one operator")):
            if others := measured.get(name.replace("/kernel/", by)):
                figures += f"; {statistics.median(t for t, _ in others) / time:.2f}x {what}"
        row("  " + name.split("/iterations")[0].replace("/kernel/", " "), figures)
    for name in ours:
        if name.startswith("linear_attention/elu/causal/"):
            flash_linear_attention(options, name)


def flash_linear_attention(options, name):
    """Causal attention with elu + 1, divided, in Triton; and its kernels alone."""
    if not options.package:
        return row("flash-linear-attention", "left out: no --package")
    sys.path.insert(0, options.package)
    from fla.ops.linear_attn import chunk_linear_attn  # noqa: E402

    length = int(name.split("length:")[1].split("/")[0])
    query, key, value = (
        torch.randn((4096 if options.quick else 65536) // length, length, 8, 64,
                    device=options.device, dtype=torch.bfloat16) for _ in range(3))

    def microseconds(function):
        def repeat():
            for _ in range(10):
                function()
        return 1e5 * seconds_of(repeat, options.device)

    def features(x):
        return functional.elu(x) + 1

    ours, whole, alone = median_of_rounds(
        options, lambda: kernel_figures(options, f"^{name}")[0]["real_time"],
        lambda: microseconds(
            lambda: chunk_linear_attn(features(query), features(key), value, normalize=True)),
        lambda: microseconds(lambda: chunk_linear_attn(query, key, value, normalize=False)))
    row(f"  flash-linear-attention, {length} rows",
        f"{whole:,.0f} us, {whole / ours:.2f}x ours; neither features nor division "
        f"{alone:,.0f} us, {alone / ours:.2f}x")


def table3(options, directory):
    """The paper's Table 3: speed-ups of a Linformer's forward over standard attention, from ids to means."""
    words, dim, depth, heads, tokens = (100, 64, 1, 2, 512) if options.quick else (20000, 512, 2, 8, 65536)
    lengths = (128, 256) if options.quick else (512, 2048, 8192, 65536)
    row("Table 3: n, k", "linserve tokens/s; over plain attention; over flash attention")
    for n in lengths:
        standard = [Transformer(words, dim, depth, heads, flash).eval().to(options.device, torch_type(options))
                    for flash in (False, True)]
        ids = torch.randint(words, (max(1, tokens // n), n))
        if options.device == "cuda":
            ids = ids.pin_memory()

        def rate(module):
            def whole():
                return module(ids.to(options.device, non_blocking=True)).float().cpu()
            return ids.numel() / seconds_of(whole, options.device)

        for k in (128, 256):
            model = Linserve(options, directory, "linformer.LinformerLM", {
                "num_tokens": words, "dim": dim, "seq_len": n, "depth": depth, "heads": heads, "k": k})
            ours, plain, flash = median_of_rounds(
                options, lambda: model.tokens_per_second(f"fixed:{n}", 16 * ids.size(0), tokens),
                *(lambda module=module: rate(module) for module in standard))
            row(f"  {n}, {k}", f"{ours:12,.0f} {ours / plain:8.2f}x {ours / flash:8.2f}x")


def ragged(count):
    generator = torch.Generator().manual_seed(1)
    draws = torch.randn(count, generator=generator)
    return (96 * (0.8 * draws).exp()).round().clamp(8, 512).long().tolist()


def package(options, directory):
    """A Linformer language model over log-normal lengths, beside its Python package on padding."""
    if not options.package:
        return row("the Python package", "left out: no --package")
    sys.path.insert(0, options.package)
    from linformer import Linformer  # noqa: E402

    dim, depth, n, count = (64, 1, 512, 8) if options.quick else (256, 6, 512, 8192)
    params = {"dim": dim, "seq_len": n, "depth": depth, "heads": 8, "k": 128}
    model = Linserve(options, directory, "linformer.Linformer", params)
    module = Linformer(**params).eval().to(options.device, torch_type(options))
    compiled = torch.compile(module, dynamic=False)
    lengths = ragged(count)
    batch = min(count, 128)
    # Pinned, as linserve's own is: from rows of the host to rows of the host.
    x = torch.randn(batch, n, dim)
    if options.device == "cuda":
        x = x.pin_memory()
    share = sum(lengths) / count / n  # of the padded rows that are real

    def whole(function):
        return function(x.to(options.device, non_blocking=True).to(torch_type(options))).float().cpu()

    def rate(function):
        return batch * n * share / seconds_of(lambda: whole(function), options.device)

    ours, eager, fast = median_of_rounds(
        options, lambda: model.tokens_per_second(LENGTHS, count, 65536), lambda: rate(module),
        lambda: rate(compiled))
    row("log-normal lengths, padded to 512, from and to the host", f"{ours:,.0f} tokens/s; over the package eager "
        f"{ours / eager:.1f}x, compiled {ours / fast:.1f}x")


ENCODERS = {
    "all-MiniLM-L6-v2": {"hidden_size": 384, "num_hidden_layers": 6, "num_attention_heads": 12,
                         "intermediate_size": 1536},
    "bge-base-en-v1.5": {"hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12,
                         "intermediate_size": 3072}}


def encoders(options, directory):
    """Encoders of the sizes of known ones, from token ids to means, beside transformers on batches of like lengths."""
    try:
        import transformers  # noqa: E402
    except ImportError:
        return row("encoders", "left out: this Python has no transformers")
    count, batches = (64, (16, 32)) if options.quick else (8192, (64, 256, 1024))
    lengths = torch.tensor(ragged(count)).sort().values
    tokens = int(lengths.sum())
    row("encoders of transformers, log-normal lengths", "linserve tokens/s; over transformers (SDPA), batches of")
    for name, sizes in ENCODERS.items():
        sizes = {"vocab_size": 30522, "max_position_embeddings": 512} | sizes
        model = Linserve(options, directory, "transformers.BertModel", sizes | {"add_pooling_layer": False})
        bert = transformers.BertModel(transformers.BertConfig(**sizes), add_pooling_layer=False)
        bert.eval().to(options.device, torch_type(options))

        def rate(batch):
            def whole():
                means = []
                for some in lengths.split(batch):
                    x = torch.randint(30522, (some.numel(), int(some[-1])))
                    mask = torch.arange(x.size(1))[None] < some[:, None]
                    if options.device == "cuda":
                        x, mask = (part.pin_memory().to("cuda", non_blocking=True) for part in (x, mask))
                    rows = bert(input_ids=x, attention_mask=mask.long()).last_hidden_state
                    means.append((rows * mask.unsqueeze(-1)).sum(1) / mask.sum(1, keepdim=True))
                return torch.cat(means).float().cpu()
            return tokens / seconds_of(whole, options.device)

        ours, *others = median_of_rounds(options, lambda: model.tokens_per_second(LENGTHS, count, 65536),
                                         *(lambda batch=batch: rate(batch) for batch in batches))
        row(f"  {name}", f"{ours:12,.0f} " + " ".join(
            f"{batch}: {ours / other:.2f}x" for batch, other in zip(batches, others)))


def sentence_model(folder):
    """Writes a model of sentence-transformers with random weights, of the sizes of all-MiniLM-L6-v2 and a Dense
    module behind; returns the words that it knows."""
    import transformers  # noqa: E402
    from sentence_transformers import SentenceTransformer, models  # noqa: E402

    letters = "abcdefghijklmnopqrstuvwxyz"
    words = [a + b + c + d for a in letters for b in letters[:9] for c in letters[:9] for d in letters[:9]]
    bert = Path(folder) / "bert"
    bert.mkdir(parents=True)
    (bert / "vocab.txt").write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words]))
    transformers.BertTokenizerFast(vocab_file=str(bert / "vocab.txt")).save_pretrained(bert)
    sizes = ENCODERS["all-MiniLM-L6-v2"]
    transformers.BertModel(transformers.BertConfig(vocab_size=len(words) + 5, **sizes)).save_pretrained(bert)
    modules = [models.Transformer(str(bert), max_seq_length=512), models.Pooling(sizes["hidden_size"]),
               models.Dense(sizes["hidden_size"], 256)]
    SentenceTransformer(modules=modules, device="cpu").save(str(Path(folder) / "repository" / "sentences"))
    return words


def texts(options, directory):
    """From texts to vectors: a server and its client, beside sentence-transformers in process."""
    try:
        from sentence_transformers import SentenceTransformer  # noqa: E402
    except ImportError:
        return row("texts", "left out: this Python has no sentence-transformers")
    folder = Path(directory) / "texts"
    words = sentence_model(folder)
    count = 200 if options.quick else 20000
    drawn = torch.randint(len(words), (sum(ragged(count)),)).tolist()
    sentences = [" ".join(words[drawn.pop()] for _ in range(length // 3)) for length in ragged(count)]
    (folder / "texts.txt").write_text("\n".join(sentences) + "\n")
    package = SentenceTransformer(str(folder / "repository/sentences"), device=options.device,
                                  model_kwargs={"torch_dtype": torch_type(options)})

    def served():
        run(f"{options.bin}/linserve-client", "--target", server.grpc, "embed", folder / "texts.txt", "--format",
            "text", "--batch", 256, "--in-flight", 32, "--output", folder / "vectors.npy")

    def rate(function):
        start = time.perf_counter()
        function()
        return count / (time.perf_counter() - start)

    server = Server(options, folder / "repository", options.dtype)
    try:
        ours, *others = median_of_rounds(options, lambda: rate(served), *(
            lambda batch=batch: rate(lambda: package.encode(sentences, batch_size=batch)) for batch in (64, 256, 1024)))
    finally:
        server.stop()
    import numpy  # noqa: E402
    expected = SentenceTransformer(str(folder / "repository/sentences"), device=options.device).encode(sentences[:500])
    cosines = functional.cosine_similarity(torch.from_numpy(numpy.load(folder / "vectors.npy")[:500]).float(),
                                           torch.from_numpy(expected).float())
    row("texts of a file to vectors, all-MiniLM-L6-v2's sizes and a Dense", f"{ours:,.0f} texts/s; over "
        "sentence-transformers, batches of 64, 256 and 1,024: "
        + ", ".join(f"{ours / other:.1f}x" for other in others) + f"; least cosine to its f32 {cosines.min():.5f}")


def million(options, directory):
    """One forward of 1,230,000 rows of 64."""
    n = 10000 if options.quick else 1230000
    model = Linserve(options, directory, "linformer.Linformer",
                     {"dim": 64, "seq_len": n, "depth": 2, "heads": 2, "k": 64,
                      "one_kv_head": True, "share_kv": True})
    rate = model.tokens_per_second(f"fixed:{n}", 1, n)
    row(f"{n:,} x 64, one forward", f"{n / rate:.3f} s, {rate:,.0f} tokens/s")


def served(options, _):
    """The server's throughput over its engine's, by serve.py."""
    script = Path(__file__).parent / "serve.py"
    out = run(sys.executable, script, "--device", options.device, "--dtype", options.dtype, "--bin",
              options.bin, "--rounds", options.rounds, "--seconds", 3 if options.quick else 10,
              "--concurrency", 64, "--engine-sequences", 256 if options.quick else 8192)
    for line in out.splitlines():
        row("served", line)


PARTS = (kernels, package, million, served)
OTHERS = (table3, encoders, texts)


def main():
    options = arguments()
    os.environ.setdefault("LINSERVE_LOG_LEVEL", "warning")
    torch.set_grad_enabled(False)
    torch.backends.cuda.matmul.allow_tf32 = False
    if options.device == "cuda":
        row("GPU", torch.cuda.get_device_name())
    row("LibTorch, type", f"{torch.__version__}, {options.dtype}")
    with tempfile.TemporaryDirectory() as directory:
        for part in PARTS + OTHERS:
            if part.__name__ in options.only:
                part(options, directory)


if __name__ == "__main__":
    main()
