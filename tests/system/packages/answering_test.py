"""Re-rankers that answer by words, as Qwen3-Reranker does: the scores are those of CrossEncoder's LogitScore."""

import json
import tempfile
import unittest
import urllib.request
from pathlib import Path

import llama_folders
import numpy as np
import torch
import transformers as tf
from sentence_transformers import CrossEncoder
from sentence_transformers.base.modules import Transformer
from sentence_transformers.cross_encoder.modules import LogitScore
from served import Server
from transformers_folders import draw_texts

LONGEST = 4096  # tokens; longer than any pair
BEFORE = ("<|im_start|>system\nJudge whether the Document meets the requirements based on the Query and the Instruct "
          "provided. Note that the answer can only be \"yes\" or \"no\".<|im_end|>\n<|im_start|>user\n<Instruct>: ")
AFTER = "<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n"
INSTRUCTION = "Given a web search query, retrieve relevant passages that answer the query"
PAIR_TEMPLATE = BEFORE + "{prompt}\n<Query>: {query}\n<Document>: {document}" + AFTER
ROLES = ("{%- set ns = namespace(system='" + INSTRUCTION + "', query='', document='') -%}"
         "{%- for m in messages -%}{%- if m.role == 'system' -%}{%- set ns.system = m.content -%}"
         "{%- elif m.role == 'query' -%}{%- set ns.query = m.content -%}"
         "{%- elif m.role == 'document' -%}{%- set ns.document = m.content -%}{%- endif -%}{%- endfor -%}"
         "{{- '" + BEFORE.replace("\n", "\\n") + "' + ns.system + '\\n<Query>: ' + ns.query + '\\n<Document>: ' "
         "+ ns.document + '" + AFTER.replace("\n", "\\n") + "' -}}")
# Each has: the model, the tied or untied head, the tokens of yes and no, and whether pairs are written in a chat template.
FOLDERS = {"tied": ("Qwen3", True, 40, 41, True), "untied": ("Qwen3", False, 50, 7, True),
           "one-word": ("Qwen3", True, 9, None, True), "joined": ("Qwen3", True, 40, 41, False),
           "granite": ("Granite", False, 40, 41, False), "gemma": ("Gemma", True, 40, 41, False), "gemma2": ("Gemma2", True, 40, 41, False)}
OPTIONS = {"Granite": dict(logits_scaling=4.0, residual_multiplier=0.5, attention_multiplier=0.25),
           "Gemma2": dict(query_pre_attn_scalar=8, attn_logit_softcapping=2.0, final_logit_softcapping=2.0)}


def save_folder(folder, texts, kind, tied, yes, no, chats):
    """Saves a re-ranker as sentence-transformers does, and adds what linserve asks for."""
    tokenizer = llama_folders.qwen(texts)
    tokenizer.model_max_length = LONGEST
    if chats:
        tokenizer.chat_template = ROLES
    sizes = dict(vocab_size=len(tokenizer), head_dim=16, max_position_embeddings=LONGEST, tie_word_embeddings=tied)
    config = getattr(tf, kind + "Config")(**sizes, **llama_folders.SIZES, **OPTIONS.get(kind, {}))
    model = getattr(tf, kind + "ForCausalLM")(config)
    with torch.no_grad():
        for tensor in model.parameters():
            tensor.add_(torch.randn_like(tensor) * 0.2)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    reads = Transformer(str(folder), transformer_task="text-generation")
    CrossEncoder(modules=[reads, LogitScore(true_token_id=yes, false_token_id=no)], device="cpu").save(str(folder))
    if chats:
        written = json.loads((folder / "config.json").read_text())
        written["serving"] = {"pair_template": PAIR_TEMPLATE, "prompts": {"web": INSTRUCTION}, "default_prompt": "web"}
        (folder / "config.json").write_text(json.dumps(written))


class AnsweringTest(unittest.TestCase):
    """One test a folder, which the loop below adds."""

    @classmethod
    def setUpClass(cls):
        torch.manual_seed(1)
        cls.seed, texts, chosen = draw_texts(24)
        cls.query, cls.texts = chosen[0] + "?", chosen[1:] + [" two spaces before and one behind ", "ends\n"]
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.repository = Path(folder.name, "models")
        for name, arguments in FOLDERS.items():
            (cls.repository / name).mkdir(parents=True)
            save_folder(cls.repository / name, texts, *arguments)
        cls.server = Server(repository=cls.repository)

    @classmethod
    def tearDownClass(cls):
        assert cls.server.close() == 0

    def ranks(self, name):
        model = CrossEncoder(str(self.repository / name), device="cpu")
        expected = model.predict([(self.query, text) for text in self.texts], activation_fn=torch.nn.Identity())
        request = urllib.request.Request(f"http://{self.server.http}/rerank", json.dumps(
            {"query": self.query, "texts": self.texts, "raw_scores": True}).encode(), {"linserve-model": name})
        with urllib.request.urlopen(request) as answer:
            found = {rank["index"]: rank["score"] for rank in json.load(answer)}
        np.testing.assert_allclose([found[i] for i in range(len(self.texts))], expected, rtol=0,
                                   atol=2e-5 * max(1, np.abs(expected).max()), err_msg=f"seed {self.seed}")


for each in FOLDERS:
    setattr(AnsweringTest, f"test_{each.replace('-', '_')}", lambda self, name=each: self.ranks(name))

if __name__ == "__main__":
    unittest.main(verbosity=2, buffer=True)
