"""Folders whose files say this and that of their tokenizers: the token ids are those of transformers."""

import json
import os
import random
import subprocess
import tempfile
import unittest
from pathlib import Path

import transformers as tf
from transformers_folders import byte_level, unigram, wordpiece

ENCODE_LINES = Path(os.environ["LINSERVE_TEST_BIN"], "encode_lines")
SENTENCES = Path(__file__).parents[2] / "data/sentence_encoder/texts.txt"
TEXTS = ["The server answers.  The Server", "Hello, World! Ünïcödé Straße", "  leading and  trailing  ", "", "e\u0301 漢字 🦀",
         "[MASK] <mask> [mask] x<mask>y  <mask> z", "[CLS] a [SEP] <s> b </s> [UNK] <unk> [PAD] <pad>",
         "new york Newton NEWYORK yorknew york", "<extra> <Extra> foo<extra>bar the<tok>the <tok> the",
         "tab\tnew\nline\r\n \u00a0x \u1680 y \u2028z ﬁne ½ x² ＡＢＣ"]

# The types of models, with how a tokenizer of their kind is trained.
TYPES = {"bert": wordpiece, "distilbert": wordpiece, "mpnet": wordpiece, "nomic_bert": wordpiece, "roberta": byte_level,
         "modernbert": byte_level, "xlm-roberta": unigram, "gte": unigram, "camembert": unigram, "nystromformer": unigram}
CLASSES = {wordpiece: ["BertTokenizer", "DistilBertTokenizerFast", "MPNetTokenizer", "ElectraTokenizer"],
           byte_level: ["RobertaTokenizer", "RobertaTokenizerFast", "LongformerTokenizer"],
           unigram: ["XLMRobertaTokenizer", "XLMRobertaTokenizerFast", "CamembertTokenizer"]}
OTHERS = ["PreTrainedTokenizerFast", "TokenizersBackend", "UnheardTokenizer"]
MARKS = ["bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"]
WORDS = ["<extra>", "york", "the", "<tok>", "new york", "Straße", "serv"]
NORMALIZERS = [None, {"type": "Lowercase"}, {"type": "Sequence", "normalizers": [{"type": "NFD"}, {"type": "StripAccents"}]}]
SPLITS = [{"type": "Whitespace"}, {"type": "BertPreTokenizer"},
          {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": True}]


class Folder:
    """The files of a tokenizer, which are changed at random."""

    def __init__(self, path, chance):
        self.path, self.chance = path, chance
        self.files = {name: json.loads((path / name).read_text()) for name in ("tokenizer.json", "tokenizer_config.json")}

    def token(self, content, **more):
        flags = {name: self.chance.random() < 0.3 for name in ("lstrip", "rstrip", "single_word", "normalized")}
        return {"content": content} | flags | more

    def mark(self):
        return self.chance.choice(["[MASK]", "<mask>", "[CLS]", "<s>", "</s>", "[SEP]"])

    def beyond(self):
        older = self.files.get("added_tokens.json", {}).values()
        return max([len(self.files["tokenizer.json"]["model"]["vocab"]) + 4, *older]) + 1

    def change(self, kind):
        file, config, chance = self.files["tokenizer.json"], self.files["tokenizer_config.json"], self.chance
        some = lambda: chance.random() < 0.5  # noqa: E731
        match kind:
            case "switch":
                config[chance.choice(["add_prefix_space", "do_lower_case", "strip_accents", "tokenize_chinese_chars",
                                      "trim_offsets", "split_special_tokens"])] = some()
            case "listed":
                listed = config.setdefault("added_tokens_decoder", {})
                for each in file["added_tokens"]:
                    listed[str(each["id"])] = {name: value for name, value in each.items() if name != "id"}
                listed[str(self.beyond())] = self.token(chance.choice(WORDS), special=some())
                changed = listed[chance.choice(list(listed))]
                changed["lstrip"] = not changed["lstrip"]
            case "older":
                self.files.setdefault("added_tokens.json", {})[chance.choice(WORDS)] = self.beyond()
            case "further":
                config[chance.choice(["extra_special_tokens", "additional_special_tokens"])] = chance.sample(WORDS, 2)
            case "named":
                token = {"__type": "AddedToken"} | self.token(self.mark())
                config[chance.choice(MARKS)] = self.mark() if some() else token
            case "dictionary":
                named = {"first": chance.choice(WORDS), "second": chance.choice(WORDS)}
                config[chance.choice(["extra_special_tokens", "model_specific_special_tokens"])] = named
            case "map":
                marks = self.files.setdefault("special_tokens_map.json", {})
                marks[chance.choice(MARKS)] = self.mark() if some() else self.token(self.mark())
                marks["additional_special_tokens"] = chance.sample(WORDS, 1)
                if some():
                    marks["image_token"] = chance.choice(WORDS)
            case "own":
                token = {"__type": "AddedToken"} | self.token(chance.choice(WORDS))
                config["image_token"] = chance.choice(WORDS) if some() else token
            case "added":
                file["added_tokens"].append({"id": self.beyond()} | self.token(chance.choice(WORDS), special=some()))
            case "dropped":
                file["added_tokens"] = []
            case "part":
                name, parts = chance.choice([("normalizer", NORMALIZERS), ("pre_tokenizer", SPLITS)])
                file[name] = chance.choice(parts)
            case "unconfigured":
                self.files["tokenizer_config.json"] = {}

    def write(self):
        for name, document in self.files.items():
            (self.path / name).write_text(json.dumps(document))


KINDS = ["switch", "switch", "listed", "older", "further", "dictionary", "named", "map", "own", "added", "dropped", "part", "unconfigured"]


class TokenizerSettingsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        texts = [text for text in SENTENCES.read_text(encoding="utf-8").splitlines() if text.strip()]
        cls.trained = {train: train(texts) for train in CLASSES}

    def folder(self, path, seed):
        """Makes a folder, and returns what was done to it."""
        chance = random.Random(seed)
        model_type = chance.choice(list(TYPES))
        train = TYPES[model_type]
        self.trained[train].save_pretrained(path)
        (path / "config.json").write_text(json.dumps({"model_type": model_type}))
        folder = Folder(path, chance)
        name = chance.choice(CLASSES[train] + OTHERS + [None])
        folder.files["tokenizer_config.json"].pop("tokenizer_class", None)
        if name:
            folder.files["tokenizer_config.json"]["tokenizer_class"] = name
        kinds = chance.choices(KINDS, k=chance.randrange(4))
        for kind in kinds:
            folder.change(kind)
        folder.write()
        return f"seed {seed}: {model_type}, {name}, {kinds}"

    def test_ids_are_those_of_transformers(self):
        first = random.randrange(1 << 30)
        lines = "\n".join(map(json.dumps, TEXTS))
        compared = 0
        for seed in range(first, first + 80):
            with tempfile.TemporaryDirectory() as folder, self.subTest(what := self.folder(Path(folder), seed)):
                try:
                    package = tf.AutoTokenizer.from_pretrained(folder)
                    expected = [package(text)["input_ids"] for text in TEXTS]
                except Exception as error:  # noqa: BLE001 - whatever the package refuses may be refused
                    print(what, error)
                    continue
                ours = subprocess.run([ENCODE_LINES, f"{folder}/tokenizer.json"], input=lines, text=True, check=True,
                                      capture_output=True).stdout
                self.assertEqual([list(map(int, line.split())) for line in ours.splitlines()], expected)
                compared += 1
        self.assertGreater(compared, 40, f"seed {first}")


if __name__ == "__main__":
    unittest.main(verbosity=2, buffer=True)
