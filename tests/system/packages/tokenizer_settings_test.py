"""Folders whose files say this and that of their tokenizers: the token ids are those of transformers.

SEEDS in the environment says how many folders are tried, and SEED with which one to begin.
"""

import json
import os
import random
import subprocess
import tempfile
import unittest
from pathlib import Path

import transformers as tf
from transformers.models.esm.configuration_esm import get_default_vocab_list
from transformers_folders import bird_pieces, byte_level, t5_pieces, unigram, wordpiece

ENCODE_LINES = Path(os.environ["LINSERVE_TEST_BIN"], "encode_lines")
SENTENCES = Path(__file__).parents[2] / "data/sentence_encoder/texts.txt"
TEXTS = ["The server answers.  The Server", "Hello, World! Ünïcödé Straße", "  leading and  trailing  ", "", "e\u0301 漢字 🦀",
         "[MASK] <mask> [mask] x<mask>y  <mask> z", "[CLS] a [SEP] <s> b </s> [UNK] <unk> [PAD] <pad>",
         "new york Newton NEWYORK yorknew york", "<extra> <Extra> foo<extra>bar the<tok>the <tok> the",
         "tab\tnew\nline\r\n \u00a0x \u1680 y \u2028z ﬁne ½ x² ＡＢＣ"]

# The types of models, with how a tokenizer of their kind is trained.
TYPES = {"bert": wordpiece, "distilbert": wordpiece, "mpnet": wordpiece, "nomic_bert": wordpiece, "ernie": wordpiece,
         "megatron-bert": wordpiece, "data2vec-text": byte_level, "roberta-prelayernorm": byte_level, "roberta": byte_level,
         "modernbert": byte_level, "longformer": byte_level, "jina_embeddings_v3": unigram, "xlm-roberta-xl": unigram,
         "xlm-roberta": unigram, "gte": unigram, "camembert": unigram, "nystromformer": unigram, "deberta-v2": unigram,
         "big_bird": bird_pieces, "t5": t5_pieces, "mt5": t5_pieces, "umt5": t5_pieces}
CLASSES = {wordpiece: ["BertTokenizer", "DistilBertTokenizerFast", "MPNetTokenizer", "ElectraTokenizer"],
           byte_level: ["RobertaTokenizer", "RobertaTokenizerFast", "LongformerTokenizer"],
           unigram: ["XLMRobertaTokenizer", "XLMRobertaTokenizerFast", "CamembertTokenizer", "DebertaV2Tokenizer",
                     "DebertaV2TokenizerFast"], t5_pieces: ["T5Tokenizer", "T5TokenizerFast"],
           bird_pieces: ["BigBirdTokenizer", "BigBirdTokenizerFast"]}
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

    def processors(self):
        """Parts that put marks around texts, and say how two are read together."""
        def marks(kind):
            vocabulary = self.files["tokenizer.json"]["added_tokens"] or [{"id": 0, "content": "a"}]
            first, last = vocabulary[0], vocabulary[-1]
            return {"type": kind, "cls": [first["content"], first["id"]], "sep": [last["content"], last["id"]]}
        mark = {"SpecialToken": {"id": "|", "type_id": self.chance.randrange(3)}}
        first = {"Sequence": {"id": "A", "type_id": 0}}
        second = {"Sequence": {"id": "B", "type_id": self.chance.randrange(3)}}
        single = [{"SpecialToken": {"id": "|", "type_id": 0}}, first]
        tokens = {"|": {"id": "|", "ids": [1, 2], "tokens": ["x", "y"]}}
        template = {"type": "TemplateProcessing", "single": single, "special_tokens": tokens,
                    "pair": self.chance.choice([[first, mark, second], [mark, second, mark, first], [first, second, mark]])}
        trims = {"trim_offsets": True, "add_prefix_space": False}
        bytes_alone = {"type": "ByteLevel", "use_regex": True} | trims
        roberta = marks("RobertaProcessing") | trims
        sequence = [bytes_alone, self.chance.choice([template, roberta, marks("BertProcessing")])]
        self.chance.shuffle(sequence)
        return [None, template, roberta, marks("BertProcessing"), bytes_alone,
                {"type": "Sequence", "processors": sequence}]

    def change(self, kind):
        file, config, chance = self.files["tokenizer.json"], self.files["tokenizer_config.json"], self.chance
        some = lambda: chance.random() < 0.5  # noqa: E731
        match kind:
            case "switch":
                config[chance.choice(["add_prefix_space", "do_lower_case", "strip_accents", "tokenize_chinese_chars",
                                      "trim_offsets", "split_special_tokens", "add_bos_token", "split_by_punct"])] = some()
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
            case "inputs":
                names = ["input_ids", "attention_mask"] + ["token_type_ids"] * some()
                config["model_input_names"] = chance.sample(names, len(names))
            case "processor":
                file["post_processor"] = chance.choice(self.processors())
            case "unconfigured":
                self.files["tokenizer_config.json"] = {}

    def write(self):
        for name, document in self.files.items():
            (self.path / name).write_text(json.dumps(document))


KINDS = ["switch", "switch", "listed", "older", "further", "dictionary", "named", "map", "own", "added", "dropped", "part", "unconfigured",
         "inputs", "inputs", "processor", "processor"]
CUTS = [("none", 0)] + [(side, longest) for side in ("left", "right") for longest in range(4, 20)]


def pairs_by(package, pairs, side, longest):
    """What transformers gives to a model of pairs that are cut: ids, and types where some are not 0."""
    package.truncation_side = side if longest else "right"
    made = package(*map(list, zip(*pairs)), truncation=longest > 0, max_length=longest or None)
    for ids, types in zip(made["input_ids"], made.get("token_type_ids", [[]] * len(pairs))):
        yield [f"{one}:{kind}" for one, kind in zip(ids, types)] if any(types) else list(map(str, ids))


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

    def encoded(self, folder, lines, *options, file="tokenizer.json"):
        """The ids that are printed for each line."""
        ours = subprocess.run([ENCODE_LINES, f"{folder}/{file}", *options], text=True, check=True,
                              input="\n".join(map(json.dumps, lines)), capture_output=True).stdout
        return [line.split() for line in ours.splitlines()]

    def compare(self, folder, package, chance):
        """Compares texts, and two that are read together."""
        expected = [list(map(str, package(text)["input_ids"])) for text in TEXTS]
        self.assertEqual(self.encoded(folder, TEXTS), expected)
        asked, expected = [], []
        for side, longest in chance.sample(CUTS, 12):
            pairs = [(chance.choice(TEXTS), chance.choice(TEXTS)) for _ in range(8)]
            asked += [[*pair, side, longest] for pair in pairs]
            expected += pairs_by(package, pairs, side, longest)
        for pair, got, want in zip(asked, self.encoded(folder, asked, "--pairs"), expected, strict=True):
            self.assertEqual(got, want, pair)

    def test_ids_are_those_of_transformers(self):
        seeds = int(os.environ.get("SEEDS", 80))
        first = int(os.environ.get("SEED", random.randrange(1 << 30)))
        compared = 0
        for seed in range(first, first + seeds):
            with tempfile.TemporaryDirectory() as folder, self.subTest(what := self.folder(Path(folder), seed)):
                try:
                    package = tf.AutoTokenizer.from_pretrained(folder)
                    package(TEXTS)
                except Exception as error:  # noqa: BLE001 - whatever the package refuses may be refused
                    print(what, error)
                    continue
                self.compare(folder, package, random.Random(seed))
                compared += 1
        self.assertGreater(compared, seeds // 2, f"seed {first}")

    def test_ids_of_proteins_are_those_of_esm_tokenizer(self):
        seed = int(os.environ.get("SEED", random.randrange(1 << 30)))
        chance = random.Random(seed)
        vocabulary = list(get_default_vocab_list())
        parts = vocabulary + ["x", "mkl", " ", "\n", "\x1c", "\u2003", "<", "<mask", "J"]
        texts = ["".join(chance.choices(parts, k=chance.randrange(40))) for _ in range(300)]
        kinds = [{}, {"extra_special_tokens": ["<x>", "AB"]}, {"cls_token": "<x>", "eos_token": "L"},
                 {"mask_token": {"__type": "AddedToken"} | dict(content="<mask>", lstrip=True, rstrip=True, special=True)}]
        for kind in kinds:
            with tempfile.TemporaryDirectory() as folder, self.subTest(seed=seed, kind=kind):
                path = Path(folder)
                (path / "vocab.txt").write_text("\n".join(vocabulary))
                (path / "config.json").write_text('{"model_type": "esm"}')
                (path / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "EsmTokenizer"} | kind))
                package = tf.AutoTokenizer.from_pretrained(folder)
                for save in (False, True):  # the second time as the package saves it
                    if save:
                        package.save_pretrained(folder)
                    expected = [list(map(str, package(text)["input_ids"])) for text in texts]
                    self.assertEqual(self.encoded(folder, texts, file="vocab.txt"), expected)


if __name__ == "__main__":
    unittest.main(verbosity=2, buffer=True)
