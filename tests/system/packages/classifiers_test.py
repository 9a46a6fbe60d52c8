"""Folders of re-rankers and classifiers, served unchanged: the scores are those of CrossEncoder and of transformers."""

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
from served import Server
from transformers_folders import SIZES, bird_pieces, byte_level, draw_texts, pieces, unigram, wordpiece

LONGEST = 48  # tokens; some pairs have more

PLACES = dict(max_position_embeddings=130, pad_token_id=1, type_vocab_size=1)
MODERN = dict(max_position_embeddings=128, local_attention=16, pad_token_id=1, bos_token_id=0, eos_token_id=2,
              cls_token_id=0, sep_token_id=2)

# Each folder has: the tokenizer, the class of the model, and the arguments of its configuration.
FOLDERS = {
    "bert": (wordpiece, "Bert", dict(SIZES, max_position_embeddings=128)),
    "roberta": (byte_level, "Roberta", dict(SIZES, **PLACES)),
    "xlm-roberta": (unigram, "XLMRoberta", dict(SIZES, **PLACES)),
    "distilbert": (wordpiece, "DistilBert", dict(max_position_embeddings=128, dim=32, n_layers=2, n_heads=4,
                                                 hidden_dim=64)),
    "mpnet": (wordpiece, "MPNet", dict(SIZES, max_position_embeddings=130)),
    "modernbert": (byte_level, "ModernBert", dict(SIZES, classifier_pooling="mean", **MODERN)),
    "albert": (unigram, "Albert", dict(SIZES, max_position_embeddings=128, embedding_size=24)),
    "electra": (wordpiece, "Electra", dict(SIZES, max_position_embeddings=128, embedding_size=24)),
    "nomic-bert": (wordpiece, "NomicBert", dict(SIZES, max_position_embeddings=128)),
    "gte": (unigram, "Gte", dict(SIZES, max_position_embeddings=128)),
    "longformer": (byte_level, "Longformer", dict(SIZES, attention_window=[8, 16], **PLACES)),
    "big-bird": (bird_pieces, "BigBird", dict(SIZES, max_position_embeddings=128)),
    # A longer kernel would read the padding of batches.
    "nystromformer": (unigram, "Nystromformer", dict(SIZES, max_position_embeddings=128, conv_kernel_size=1)),
} | llama_folders.CLASSIFIERS
# Microsoft's third version, but for its sizes.
DEBERTA = dict(SIZES, max_position_embeddings=64, relative_attention=True, position_buckets=16, pos_att_type="p2c|c2p",
               share_att_key=True, norm_rel_ebd="layer_norm", position_biased_input=False)
FOLDERS["deberta-v3"] = (pieces, "DebertaV2", DEBERTA)
FOLDERS["deberta-v2"] = (pieces, "DebertaV2", dict(DEBERTA, share_att_key=False, conv_kernel_size=3, type_vocab_size=2))
LABELS = ["no", "perhaps", "yes"]


def save_folder(folder, make, texts, labels, as_cross_encoder):
    """Saves such a model as it would lie on the hub."""
    tokenizer_of, kind, arguments = make
    tokenizer = tokenizer_of(texts)
    tokenizer.model_max_length = LONGEST
    config = getattr(tf, kind + "Config")(vocab_size=len(tokenizer), id2label=dict(enumerate(labels)),
                                          label2id={label: i for i, label in enumerate(labels)}, **arguments)
    model = getattr(tf, kind + "ForSequenceClassification")(config)
    with torch.no_grad():
        for tensor in model.parameters():  # biases and norms of their own, so that none is left out unnoticed
            tensor.add_(torch.randn_like(tensor) * 0.2)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    if as_cross_encoder:
        CrossEncoder(str(folder), device="cpu").save(str(folder))


def scores_of(folder, inputs):
    """The raw scores of texts and pairs, each computed alone."""
    tokenizer = tf.AutoTokenizer.from_pretrained(folder)
    model = tf.AutoModelForSequenceClassification.from_pretrained(folder).eval()
    with torch.no_grad():
        return [model(**tokenizer(*texts, truncation=True, return_tensors="pt")).logits[0].numpy() for texts in inputs]


class ClassifiersTest(unittest.TestCase):
    """Two tests a family of models, which the loop below adds."""

    @classmethod
    def setUpClass(cls):
        torch.manual_seed(1)
        cls.seed, texts, chosen = draw_texts(24)
        cls.query, cls.texts = chosen[0], chosen[1:]
        cls.inputs = [[text] for text in chosen] + [[one, other] for one, other in zip(chosen, reversed(chosen))]
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.repository = Path(folder.name, "models")
        for number, (name, make) in enumerate(FOLDERS.items()):
            save_folder(cls.repository / f"{name}-ranks", make, texts, ["fits"], as_cross_encoder=number % 2 == 0)
            save_folder(cls.repository / f"{name}-classes", make, texts, LABELS, as_cross_encoder=False)
        cls.server = Server(repository=cls.repository)

    @classmethod
    def tearDownClass(cls):
        assert cls.server.close() == 0

    def ask(self, path, model, body):
        request = urllib.request.Request(f"http://{self.server.http}{path}", json.dumps(body).encode(),
                                         {"linserve-model": model})
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)

    def compare(self, found, expected):
        np.testing.assert_allclose(found, expected, rtol=0, atol=2e-5 * max(1, np.abs(expected).max()),
                                   err_msg=f"seed {self.seed}")

    def ranks(self, name):
        model = CrossEncoder(str(self.repository / name), device="cpu")
        expected = model.predict([(self.query, text) for text in self.texts], activation_fn=torch.nn.Identity())
        body = {"query": self.query, "texts": self.texts}
        ranks = self.ask("/rerank", name, body | {"raw_scores": True})
        self.assertEqual(sorted(rank["index"] for rank in ranks), list(range(len(self.texts))))
        self.assertEqual([rank["score"] for rank in ranks], sorted((rank["score"] for rank in ranks), reverse=True))
        self.compare([rank["score"] for rank in ranks], expected[[rank["index"] for rank in ranks]])
        chances = self.ask("/rerank", name, body)
        self.compare([rank["score"] for rank in chances],
                     [1 / (1 + np.exp(-expected[rank["index"]])) for rank in chances])

    def classes(self, name):
        expected = np.stack(scores_of(self.repository / name, self.inputs))
        for raw in (True, False):
            if not raw:
                expected = torch.from_numpy(expected).softmax(-1).numpy()
            answers = self.ask("/predict", name, {"inputs": self.inputs, "raw_scores": raw})
            found = [{one["label"]: one["score"] for one in answer} for answer in answers]
            self.compare([[scores[label] for label in LABELS] for scores in found], expected)


for each in FOLDERS:
    for what in ("ranks", "classes"):
        setattr(ClassifiersTest, f"test_{each.replace('-', '_')}_{what}",
                lambda self, name=f"{each}-{what}", check=what: getattr(self, check)(name))

if __name__ == "__main__":
    unittest.main(verbosity=2, buffer=True)
