"""Folders of late-interaction models, served unchanged: the rows of texts are those of MultiVectorEncoder."""

import contextlib
import json
import subprocess
import tempfile
import unittest
import urllib.error
import urllib.request
from pathlib import Path

import numpy as np
import python_package
import tokenizers as tk
import torch
import transformers as tf
from safetensors.torch import load_file, save_file
from sentence_transformers import MultiVectorEncoder
from sentence_transformers.base.modules import Dense, Normalize, Transformer
from sentence_transformers.multi_vector_encoder.modules import HierarchicalTokenPooling, MultiVectorMask
from served import BIN, Server
from transformers_folders import SIZES, byte_level, draw_texts

linserve = python_package.load("linserve")
LONGEST = 48  # tokens; some texts have more
WIDTH = 12
MODERN = dict(max_position_embeddings=128, local_attention=16, pad_token_id=1, bos_token_id=0, eos_token_id=2,
              cls_token_id=0, sep_token_id=2)
PUNCTUATION = ["!", "?", ".", ",", "(", ")", "no token of the vocabulary", "-"]


def wordpiece(texts):
    """One with tokens that stand before texts, which its own splitting would take apart."""
    tokenizer = tk.BertWordPieceTokenizer(lowercase=True)
    marks = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokenizer.train_from_iterator(texts, vocab_size=600, min_frequency=1, special_tokens=[*marks, "[unused0]", "[unused1]"])
    saved = json.loads(tokenizer.to_str())
    saved["added_tokens"] = [token for token in saved["added_tokens"] if token["content"] in marks]
    return tf.BertTokenizerFast(tokenizer_object=tk.Tokenizer.from_str(json.dumps(saved)))


def bert(vocabulary):
    return tf.BertModel(tf.BertConfig(vocab_size=vocabulary, max_position_embeddings=128, **SIZES))


def modernbert(vocabulary):
    return tf.ModernBertModel(tf.ModernBertConfig(vocab_size=vocabulary, **SIZES, **MODERN))


def lfm2(vocabulary):
    return tf.Lfm2Model(tf.Lfm2Config(vocab_size=vocabulary, max_position_embeddings=128, num_key_value_heads=2,
                                      block_multiple_of=8, layer_types=["conv", "full_attention"], **SIZES))


def expansion(length, strategy="fixed", **more):
    return dict(query_expansion=dict(strategy=strategy, length=length, **more))


PROMPTS = {"query": "search a query: ", "document": "a text: "}
# What sentence-transformers saves has: the tokenizer, the trunk, the arguments of its Transformer and of its
# MultiVectorMask, and the prompts.
NATIVE = {
    "native-bert": (wordpiece, bert, expansion(32), dict(skiplist_words=PUNCTUATION), {}),
    "native-bert-attended": (wordpiece, bert, expansion(24, attend=True, token="[SEP]") | dict(document_length=60), {},
                             PROMPTS),
    "native-bert-min": (wordpiece, bert, expansion(16, "min") | dict(query_length=20),
                        dict(skiplist_words=PUNCTUATION, skiplist_tasks=["query", "document"]), {}),
    "native-bert-plain": (wordpiece, bert, dict(query_length=10, document_length=20), {}, PROMPTS),
    "native-bert-residual": (wordpiece, bert, expansion(8), {}, {}),
    "native-lfm2": (byte_level, lfm2, expansion(32), dict(skiplist_words=PUNCTUATION), PROMPTS),
    "native-modernbert": (byte_level, modernbert, expansion(32), dict(skiplist_words=PUNCTUATION), PROMPTS),
}
PYLATE = dict(__version__={}, prompts={}, default_prompt_name=None, similarity_fn_name="MaxSim", query_prefix="[Q] ",
              document_prefix="[D] ", query_length=32, document_length=40, do_query_expansion=True,
              attend_to_expansion_tokens=False, skiplist_words=PUNCTUATION)
COLBERT = PYLATE | dict(model_type="ColBERT")
# What PyLate saves has: the tokenizer, the trunk, its settings, and whether the tokenizer has its prefixes as tokens.
PYLATES = {
    "pylate-bert": (wordpiece, bert, COLBERT, True),
    "pylate-bert-as-text": (wordpiece, bert, COLBERT, False),
    "pylate-bert-attended": (wordpiece, bert, COLBERT | dict(attend_to_expansion_tokens=True, query_length=None), True),
    "pylate-bert-unfilled": (wordpiece, bert, COLBERT | dict(do_query_expansion=False, skiplist_words=None), True),
    "pylate-bert-prompted": (wordpiece, bert, COLBERT | dict(prompts={"query": "a question: ", "passage": "words: "},
                                                             query_prefix="[unused0] ", default_prompt_name="passage"),
                             True),
    "pylate-lfm2": (byte_level, lfm2, COLBERT, True),
    "pylate-modernbert": (byte_level, modernbert, COLBERT, True),
    "pylate-modernbert-old": (byte_level, modernbert, PYLATE, True),
}
# Those of Stanford's code have their settings.
STANFORD = {
    "stanford": dict(dim=WIDTH, query_maxlen=24, doc_maxlen=40, attend_to_mask_tokens=False, mask_punctuation=True,
                     query_token_id="[unused0]", doc_token_id="[unused1]"),
    "stanford-attended": dict(dim=WIDTH, attend_to_mask_tokens=True, mask_punctuation=False),
}


def save_trunk(folder, tokenizer_of, trunk, texts, prefixes=False):
    tokenizer = tokenizer_of(texts)
    tokenizer.model_max_length = LONGEST
    if prefixes:
        tokenizer.add_tokens(["[Q] ", "[D] "])
    model = trunk(len(tokenizer))
    with torch.no_grad():
        for tensor in model.parameters():  # rows that differ from each other
            tensor.add_(torch.randn_like(tensor) * 0.1)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def dense(*sizes, **more):
    return [Dense(inputs, outputs, bias=outputs != WIDTH, activation_function=torch.nn.Identity(),
                  module_input_name="token_embeddings", **more) for inputs, outputs in zip(sizes, sizes[1:])]


def save_native(folder, make, texts):
    tokenizer_of, trunk, arguments, mask, prompts = make
    plain = folder.parent.parent / "plain" / folder.name
    save_trunk(plain, tokenizer_of, trunk, texts)
    sizes = (32, 20, 20, WIDTH) if "residual" in folder.name else (32, 20, WIDTH)
    modules = [Transformer(str(plain), **arguments), *dense(*sizes, use_residual=len(sizes) > 3), MultiVectorMask(**mask),
               Normalize(module_input_name="token_embeddings")]
    MultiVectorEncoder(modules=modules, prompts=prompts, device="cpu",
                       similarity_fn_name="meanmaxsim" if "plain" in folder.name else None).save(str(folder))


def save_pylate(folder, make, texts):
    """Saves what PyLate 1.3 does, whose classes are not installed here."""
    tokenizer_of, trunk, settings, prefixes = make
    save_trunk(folder, tokenizer_of, trunk, texts, prefixes)
    [projection] = dense(32, WIDTH)
    (folder / "1_Dense").mkdir()
    projection.save(str(folder / "1_Dense"))
    (folder / "1_Dense/config.json").write_text(json.dumps(dict(
        in_features=32, out_features=WIDTH, bias=False, activation_function="torch.nn.modules.linear.Identity")))
    (folder / "sentence_bert_config.json").write_text(json.dumps(dict(max_seq_length=LONGEST, do_lower_case=False)))
    (folder / "config_sentence_transformers.json").write_text(json.dumps(settings))
    (folder / "modules.json").write_text(json.dumps([
        dict(idx=0, name="0", path="", type="sentence_transformers.models.Transformer"),
        dict(idx=1, name="1", path="1_Dense", type="pylate.models.Dense.Dense")]))


def save_stanford(folder, settings, texts):
    save_trunk(folder, wordpiece, bert, texts)
    weights = {f"bert.{name}": tensor for name, tensor in load_file(folder / "model.safetensors").items()}
    save_file(weights | {"linear.weight": torch.randn(WIDTH, 32)}, folder / "model.safetensors", {"format": "pt"})
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"architectures": ["HF_ColBERT"]}))
    (folder / "artifact.metadata").write_text(json.dumps(settings))


SAVED = [(save_native, NATIVE), (save_pylate, PYLATES), (save_stanford, STANFORD)]


class LateInteractionTest(unittest.TestCase):
    """A test a folder, which the loop below adds, and one of each protocol."""

    @classmethod
    def setUpClass(cls):
        torch.manual_seed(1)
        cls.seed, texts, cls.texts = draw_texts(20)
        cls.texts += ["", "...", "(?!)", "a text, with marks - and more!", "Wörter, 言葉.", "[Q] a [unused1] b"]
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.repository = Path(folder.name, "models")
        for save, folders in SAVED:
            for name, make in folders.items():
                (cls.repository / name).mkdir(parents=True)
                save(cls.repository / name, make, texts)
        cls.server = Server(repository=cls.repository)
        cls.client = linserve.Client(cls.server.grpc)

    @classmethod
    def tearDownClass(cls):
        cls.client.close()
        assert cls.server.close() == 0

    def encoder(self, name):
        return MultiVectorEncoder(str(self.repository / name), device="cpu")

    def same(self, answers, expected):
        self.assertEqual(len(answers), len(expected))
        for answer, rows, text in zip(answers, expected, self.texts):
            rows = rows.numpy()
            self.assertEqual(np.shape(answer), rows.shape, text)
            np.testing.assert_allclose(answer, rows, rtol=0, atol=1e-5, err_msg=f"{text}, seed {self.seed}")

    def rows(self, name):
        encoder = self.encoder(name)
        for encode, prompt in ((encoder.encode_query, "query"), (encoder.encode_document, "document"),
                               (encoder.encode, "")):
            with self.subTest(task=prompt):
                answers = self.client.embed(self.texts, model=name, pooling="none", prompt_name=prompt)
                self.same(answers, encode(self.texts, batch_size=7))

    def ask(self, path, body):
        request = urllib.request.Request(f"http://{self.server.http}{path}", json.dumps(body).encode())
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)

    def test_rows_of_every_protocol(self):
        encoder = self.encoder("native-bert")
        for prompt, encode in ("query", encoder.encode_query), ("document", encoder.encode_document):
            expected = encode(self.texts)
            body = {"model": "native-bert", "inputs": self.texts, "prompt_name": prompt, "truncate": True}
            self.same(self.ask("/embed_all", body), expected)
            answers = []
            for text in self.texts:
                data = {"name": "text", "datatype": "BYTES", "shape": [1], "data": [text]}
                body = {"inputs": [data], "parameters": {"prompt_name": prompt}}
                [output] = self.ask("/v2/models/native-bert/infer", body)["outputs"]
                self.assertEqual(output["name"], "token_embeddings")
                answers.append(np.reshape(output["data"], output["shape"][1:]))
            self.same(answers, expected)

    def test_token_ids_have_all_rows(self):
        [rows] = self.client.embed([[2, 7, 8, 9, 3]], model="native-bert")
        self.assertEqual(rows.shape, (5, WIDTH))

    def test_a_pooled_vector_is_made_of_the_rows_that_are_given(self):
        expected = [rows.mean(0) for rows in self.encoder("native-bert").encode_document(self.texts)]
        self.same(self.client.embed(self.texts, model="native-bert", pooling="mean", prompt_name="document"), expected)

    def test_rankings(self):
        query, texts = self.texts[0], self.texts[1:]
        for name in "native-bert", "native-bert-plain", "pylate-modernbert":
            encoder = self.encoder(name)
            [expected] = encoder.similarity(encoder.encode_query([query]), encoder.encode_document(texts)).numpy()
            order = np.argsort(-expected, kind="stable")
            rerank = {"model": name, "query": query}
            for path, body, rows in (("/rerank", {"texts": texts}, lambda answer: answer),
                                     ("/v1/rerank", {"documents": texts}, lambda answer: answer["results"])):
                ranks = rows(self.ask(path, rerank | body))
                scores = np.empty_like(expected)
                for one in ranks:
                    scores[one["index"]] = one.get("score", one.get("relevance_score"))
                np.testing.assert_allclose(scores, expected, rtol=0, atol=1e-4, err_msg=f"seed {self.seed}")
                np.testing.assert_allclose(expected[[one["index"] for one in ranks]], expected[order], rtol=0, atol=1e-4)
            # Either side may be one text, or as many as the other's.
            data = self.ask("/v1/score", {"model": name, "text_1": texts, "text_2": query})["data"]
            queries = encoder.encode_query(texts)
            np.testing.assert_allclose([one["score"] for one in data],
                                       encoder.similarity(queries, encoder.encode_document([query]))[:, 0].numpy(),
                                       rtol=0, atol=1e-4)

    def refused(self, path, body):
        with self.assertRaises(urllib.error.HTTPError) as raised:
            self.ask(path, body)
        with raised.exception as answer:
            return answer.read().decode()

    def test_a_fault_of_a_ranking_names_its_text(self):
        body = {"model": "native-bert", "query": "a", "texts": ["b", "c " * 200, "d"], "truncate": False}
        self.assertIn("sequence 1 of the batch: ", self.refused("/rerank", body))
        self.assertIn("the query: ", self.refused("/rerank", body | {"query": "q " * 200, "texts": ["b"]}))

    def test_settings_that_no_query_would_fit_are_refused_at_once(self):
        with tempfile.TemporaryDirectory() as folder:
            self.encoder("native-bert").save(folder)
            path = Path(folder, "sentence_bert_config.json")
            written = json.loads(path.read_text())
            for change, says in (({"length": 6000}, "fills queries up to 6000 tokens, but the model takes"),
                                 ({"token": "[none]"}, "has no token '[none]'")):
                expansion = {"strategy": "min", "length": 8} | change
                path.write_text(json.dumps(written | {"query_expansion": expansion, "query_length": None}))
                inspected = subprocess.run([BIN / "linserve", "inspect", "--model", folder], capture_output=True, text=True)
                self.assertNotEqual(inspected.returncode, 0)
                self.assertIn(says, inspected.stderr)

    def test_prompts_of_ones_own_leave_the_tasks(self):
        with tempfile.TemporaryDirectory() as folder:
            self.encoder("native-bert").save(folder + "/model")
            path = Path(folder, "model/config.json")
            path.write_text(json.dumps(json.loads(path.read_text()) | {"serving": {"prompts": {"passage": "p: "}}}))
            with contextlib.closing(Server(repository=folder)) as server, linserve.Client(server.grpc) as client:
                self.same(client.embed(self.texts, pooling="none", prompt_name="query"),
                          self.encoder("native-bert").encode_query(self.texts))
                # The only model that ranks needs no name.
                body = json.dumps({"query": "a", "texts": ["b"]}).encode()
                with urllib.request.urlopen(urllib.request.Request(f"http://{server.http}/rerank", body)) as answer:
                    self.assertEqual(len(json.load(answer)), 1)

    def test_a_pair_is_not_read_as_one_text(self):
        pair = {"name": "text", "datatype": "BYTES", "shape": [1, 2], "data": ["a", "b"]}
        self.assertIn("compare the rows of two, as /rerank does",
                      self.refused("/v2/models/native-bert/infer", {"inputs": [pair]}))

    def test_what_is_not_computed_is_refused_by_name(self):
        encoder = self.encoder("native-bert")
        for module, name in ((HierarchicalTokenPooling(), "HierarchicalTokenPooling"),
                             (MultiVectorMask(keep_only_token_ids=[7]), "keep_only_token_ids")):
            with tempfile.TemporaryDirectory() as folder:
                MultiVectorEncoder(modules=[*encoder, module], device="cpu").save(folder)
                inspected = subprocess.run([BIN / "linserve", "inspect", "--model", folder], capture_output=True, text=True)
            self.assertNotEqual(inspected.returncode, 0)
            self.assertIn(name, inspected.stderr)


for _, folders in SAVED:
    for each in folders:
        setattr(LateInteractionTest, f"test_{each.replace('-', '_')}", lambda self, name=each: self.rows(name))

if __name__ == "__main__":
    unittest.main(verbosity=2, buffer=True)
