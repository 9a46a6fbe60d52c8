"""Trains a tokenizer of each kind with the package `tokenizers`: together they have all parts that are known."""

import collections
import json
import unicodedata
from pathlib import Path

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

ROOT = Path(__file__).resolve().parents[3]
SPECIAL = ["[UNK]", "[PAD]", "[CLS]", "[SEP]", "[MASK]"]
CL100K = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
          r"|\s+(?!\S)|\s+")
QWEN = CL100K.replace("{1,3}", "")
CLIP = r"'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"


def charsmap():
    """The rules of NFKC of a SentencePiece model: field 2 of field 3 of its message."""
    data = (ROOT / "deploy/models/sentence-encoder/1/tokenizer.model").read_bytes()

    def fields(message):
        at = 0
        def varint():
            nonlocal at
            value = shift = 0
            while True:
                byte = message[at]
                at += 1
                value |= (byte & 127) << shift
                shift += 7
                if byte < 128:
                    return value
        while at < len(message):
            tag = varint()
            if tag & 7 == 0:
                varint()
            elif tag & 7 == 2:
                size = varint()
                yield tag >> 3, message[at:at + size]
                at += size
            else:
                at += 4 if tag & 7 == 5 else 8
    rules = next(value for number, value in fields(data) if number == 3)
    return next(value for number, value in fields(rules) if number == 2)


def sequence(kind, *parts):
    return kind.Sequence(list(parts))


def template(cls="[CLS]", sep="[SEP]", types=(0, 0, 0)):
    def made(tokenizer):
        return processors.TemplateProcessing(
            single=f"{cls}:{types[0]} $A:{types[1]} {sep}:{types[2]}", pair=f"{cls} $A {sep} $B:1 {sep}:1",
            special_tokens=[(mark, tokenizer.token_to_id(mark)) for mark in (cls, sep)])
    return made


def pair_of(kind, **options):
    def made(tokenizer):
        return kind(("[SEP]", tokenizer.token_to_id("[SEP]")), ("[CLS]", tokenizer.token_to_id("[CLS]")), **options)
    return made


def with_unknown(cls):
    return cls(unk_token="[UNK]")


N, P, D = normalizers, pre_tokenizers, decoders
BYTES = P.ByteLevel.alphabet()
# Name: model, trainer, its options, normalizer, pre-tokenizer, post-processor, decoder.
KINDS = {
    "bert-uncased": (with_unknown(models.WordPiece), trainers.WordPieceTrainer, {}, N.BertNormalizer(),
                     P.BertPreTokenizer(), template(types=(0, 0, 1)), D.WordPiece()),
    "bert-cased": (with_unknown(models.WordPiece), trainers.WordPieceTrainer, {},
                   N.BertNormalizer(lowercase=False, strip_accents=False), P.BertPreTokenizer(),
                   pair_of(processors.BertProcessing), D.WordPiece(cleanup=False)),
    "roberta": (models.BPE(), trainers.BpeTrainer, {"initial_alphabet": BYTES}, None, P.ByteLevel(add_prefix_space=False),
                pair_of(processors.RobertaProcessing), D.ByteLevel()),
    "bytes-prefixed": (models.BPE(), trainers.BpeTrainer, {"initial_alphabet": BYTES}, N.NFC(),
                       P.ByteLevel(add_prefix_space=True), processors.ByteLevel(), D.ByteLevel()),
    "bytes-unknown": (with_unknown(models.BPE), trainers.BpeTrainer, {}, None, P.ByteLevel(add_prefix_space=False), None,
                      D.ByteLevel()),
    "llama3": (models.BPE(ignore_merges=True), trainers.BpeTrainer, {"initial_alphabet": BYTES}, None,
               sequence(P, P.Split(Regex(CL100K), "isolated"), P.ByteLevel(False, use_regex=False)),
               lambda tokenizer: processors.Sequence([processors.ByteLevel(trim_offsets=False), template()(tokenizer)]),
               D.ByteLevel()),
    "qwen": (models.BPE(), trainers.BpeTrainer, {"initial_alphabet": BYTES}, N.NFC(),
             sequence(P, P.Split(Regex(QWEN), "isolated"), P.ByteLevel(False, use_regex=False)), None, D.ByteLevel()),
    "digits-bytes": (models.BPE(), trainers.BpeTrainer, {"initial_alphabet": BYTES}, None,
                     sequence(P, P.Digits(individual_digits=True), P.ByteLevel(False)), None, D.ByteLevel()),
    "clip": (models.BPE(unk_token="[UNK]", end_of_word_suffix="</w>"), trainers.BpeTrainer,
             {"initial_alphabet": BYTES, "end_of_word_suffix": "</w>"},
             sequence(N, N.NFC(), N.Replace(Regex(r"\s+"), " "), N.Lowercase()),
             sequence(P, P.Split(Regex(CLIP), "removed", invert=True), P.ByteLevel(False)),
             pair_of(processors.RobertaProcessing, trim_offsets=False, add_prefix_space=False), D.BPEDecoder()),
    "bytes-normalized": (models.BPE(), trainers.BpeTrainer, {"initial_alphabet": BYTES},
                         sequence(N, N.NFKC(), N.ByteLevel()), None, None, D.ByteLevel()),
    "continuing": (models.BPE(unk_token="[UNK]", continuing_subword_prefix="##"), trainers.BpeTrainer,
                   {"continuing_subword_prefix": "##"}, N.NFKD(), P.Whitespace(), None, None),
    "llama": (models.BPE(unk_token="[UNK]", fuse_unk=True, byte_fallback=True), trainers.BpeTrainer,
              {"special_tokens": SPECIAL + [f"<0x{byte:02X}>" for byte in range(256)], "max_token_length": 8},
              sequence(N, N.Prepend("▁"), N.Replace(" ", "▁")), None, template(),
              sequence(D, D.Replace("▁", " "), D.ByteFallback(), D.Fuse(), D.Strip(" ", 1, 0))),
    "gemma": (models.BPE(unk_token="[UNK]", fuse_unk=True, byte_fallback=True), trainers.BpeTrainer,
              {"special_tokens": SPECIAL + [f"<0x{byte:02X}>" for byte in range(256)], "max_token_length": 8},
              N.Replace(" ", "▁"), P.Split(" ", "merged_with_previous"), template(),
              sequence(D, D.Replace("▁", " "), D.ByteFallback(), D.Fuse())),
    "metaspace-unsplit": (with_unknown(models.BPE), trainers.BpeTrainer, {"max_token_length": 8}, None,
                          P.Metaspace(prepend_scheme="first", split=False), None,
                          D.Metaspace(prepend_scheme="first")),
    "xlm-roberta": (models.Unigram(), trainers.UnigramTrainer, {"unk_token": "[UNK]"}, "charsmap",
                    sequence(P, P.WhitespaceSplit(), P.Metaspace()), template(), D.Metaspace()),
    "albert": (models.Unigram(), trainers.UnigramTrainer, {"unk_token": "[UNK]"},
               (N.Replace("``", '"'), N.Replace("''", '"'), N.NFKD(), N.StripAccents(), N.Lowercase(), "charsmap"),
               P.Metaspace(), template(), D.Metaspace()),
    "deberta": (models.Unigram(), trainers.UnigramTrainer, {"unk_token": "[UNK]"},
                (N.Strip(), "charsmap", N.Replace(Regex(" {2,}"), " ")), P.Metaspace(prepend_scheme="first"), template(),
                D.Metaspace(prepend_scheme="first")),
    "never": (models.Unigram(), trainers.UnigramTrainer, {"unk_token": "[UNK]"}, sequence(N, N.Nmt(), N.NFKC()),
              P.Metaspace(prepend_scheme="never"), None, D.Metaspace(prepend_scheme="never")),
    "unigram-bytes": (models.Unigram(), trainers.UnigramTrainer,
                      {"unk_token": "[UNK]", "special_tokens": SPECIAL + [f"<0x{byte:02X}>" for byte in range(256)]},
                      None, P.Metaspace(), None, sequence(D, D.ByteFallback(), D.Metaspace())),
    "words": (with_unknown(models.WordLevel), trainers.WordLevelTrainer, {},
              sequence(N, N.NFD(), N.Lowercase(), N.StripAccents()), P.Whitespace(), template(), None),
    "words-contiguous": (with_unknown(models.WordLevel), trainers.WordLevelTrainer, {}, N.Strip(left=False),
                         sequence(P, P.Punctuation("contiguous"), P.WhitespaceSplit(), P.Digits()), None, None),
    "words-merged": (with_unknown(models.WordLevel), trainers.WordLevelTrainer, {}, N.NFD(),
                     sequence(P, P.WhitespaceSplit(), P.Punctuation("merged_with_previous")), None, None),
    "words-next": (with_unknown(models.WordLevel), trainers.WordLevelTrainer, {}, None,
                   sequence(P, P.Split(" ", "merged_with_next"), P.Punctuation("merged_with_next")), None, None),
    "delimited": (with_unknown(models.WordPiece), trainers.WordPieceTrainer, {}, None,
                  sequence(P, P.CharDelimiterSplit("e"), P.Split(Regex(r"[^\p{L}\d]+|\w"), "isolated")), None,
                  D.WordPiece()),
    "looking": (with_unknown(models.WordPiece), trainers.WordPieceTrainer, {}, N.Replace(Regex("[aeiou]"), "_"),
                P.Split(Regex(r"(?<=\s)(?=\S)|(?i:x)+"), "removed"), None, D.WordPiece()),
}


def normalizer_of(value, rules):
    if value is None or isinstance(value, N.Normalizer):
        return value
    if value == "charsmap":
        return N.Precompiled(rules)
    return N.Sequence([normalizer_of(part, rules) for part in value])


def of_few_characters(texts, most):
    """The texts whose characters are all among the most frequent: the package wants a token for each."""
    counts = collections.Counter(character for text in texts for character in unicodedata.normalize("NFKD", text))
    frequent = {character for character, _ in counts.most_common(most)}
    return [text for text in texts if set(unicodedata.normalize("NFKD", text)) <= frequent]


def train(name, texts, size):
    """A tokenizer of this kind whose vocabulary is learned from the texts."""
    model, trainer, options, normalizer, pre_tokenizer, post_processor, decoder = KINDS[name]
    # A model is trained in its place, so that each needs one of its own.
    state = json.loads(model.__getstate__())
    fresh = {"BPE": models.BPE, "WordPiece": models.WordPiece, "WordLevel": models.WordLevel,
             "Unigram": models.Unigram}[state["type"]]
    kept = {key: state[key] for key in ("unk_token", "continuing_subword_prefix", "end_of_word_suffix", "fuse_unk",
                                        "byte_fallback", "ignore_merges") if state.get(key) is not None}
    if state["type"] in ("WordPiece", "Unigram"):
        kept = {key: value for key, value in kept.items() if key == "unk_token"}
    tokenizer = Tokenizer(fresh(**kept))
    normalizer = normalizer_of(normalizer, charsmap())
    if normalizer is not None:
        tokenizer.normalizer = normalizer
    if pre_tokenizer is not None:
        tokenizer.pre_tokenizer = pre_tokenizer
    learner = trainer(vocab_size=size, show_progress=False, **{"special_tokens": SPECIAL, **options})
    tokenizer.train_from_iterator(of_few_characters(texts, size // 5) if fresh is models.Unigram else texts, learner)
    if name == "unigram-bytes":
        changed = json.loads(tokenizer.to_str())
        changed["model"]["byte_fallback"] = True
        tokenizer = Tokenizer.from_str(json.dumps(changed))
    if decoder is not None:
        tokenizer.decoder = decoder
    if post_processor is not None:
        ready = isinstance(post_processor, processors.PostProcessor)
        tokenizer.post_processor = post_processor if ready else post_processor(tokenizer)
    tokenizer.add_special_tokens([AddedToken("[MASK]", lstrip=True, special=True)])
    tokenizer.add_tokens([AddedToken("<|word|>", single_word=True, normalized=False),
                          AddedToken("Straße", normalized=True), AddedToken("<right>", rstrip=True, normalized=False),
                          AddedToken("new york", single_word=True, normalized=True)])
    return tokenizer
