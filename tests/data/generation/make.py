"""Writes expected.json: what the Python package's models answer to some prompts, greedily.

Each token comes of running the package on the whole prefix, as its AutoregressiveWrapper does. Needs
tests/bench/requirements.txt. The models are made by `linserve init` beside this file:

  python make.py MODEL...
"""

import json
import pathlib
import sys

import torch
from linear_attention_transformer import LinearAttentionTransformerLM
from linear_attention_transformer.autopadder import Autopadder
from safetensors.torch import load_file

PROMPTS = 3


def language_model(params, tensors):
    model = LinearAttentionTransformerLM(**params)
    model.load_state_dict(tensors, strict=False)
    return Autopadder(model.eval())


def part(tensors, name):
    return {key[len(name) + 1:]: value for key, value in tensors.items() if key.startswith(name + ".")}


@torch.no_grad()
def greedy(model, prompt, longest, **context):
    """Tokens until the model takes no more, and by how much each won."""
    tokens, margins = list(prompt), []
    while len(tokens) <= longest:
        logits = model(torch.tensor([tokens]), **context)[0, -1]
        best = logits.topk(2).values
        margins.append(float(best[0] - best[1]))
        tokens.append(int(logits.argmax()))
    return tokens[len(prompt):], margins


def main():
    torch.manual_seed(0)
    for name in sys.argv[1:]:
        directory = pathlib.Path(name)
        params = json.loads((directory / "config.json").read_text())["params"]
        tensors = load_file(directory / "model.safetensors")
        encoder = None
        if "decoder" in params:
            encoder = language_model(params["encoder"] | {"return_embeddings": True}, part(tensors, "encoder"))
            params, tensors = params["decoder"] | {"receives_context": True}, part(tensors, "decoder")
        model = language_model(params, tensors)
        cases = []
        for i in range(PROMPTS):
            case = {"prompt": torch.randint(0, params["num_tokens"], (1 + 7 * i,)).tolist()}
            context = {}
            if encoder:
                case["x"] = torch.randint(0, params["num_tokens"], (3 + 5 * i,)).tolist()
                with torch.no_grad():
                    context["context"] = encoder(torch.tensor([case["x"]]))
            tokens, margins = greedy(model, case["prompt"], params["max_seq_len"], **context)
            cases.append(case | {"tokens": tokens, "margins": [round(m, 6) for m in margins]})
        (directory / "expected.json").write_text(json.dumps(cases) + "\n")
        print(directory, "smallest margin", min(min(c["margins"]) for c in cases))


if __name__ == "__main__":
    main()
