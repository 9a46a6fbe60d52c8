"""Small models of transformers with tokenizers trained here, saved as sentence-transformers does."""

import json
import random
import tempfile
from pathlib import Path

import tokenizers as tk
import torch
import transformers as tf
from sentence_transformers import SentenceTransformer
from sentence_transformers import models as parts
from transformers.models.esm.configuration_esm import get_default_vocab_list

TEXTS = Path(__file__).parents[2] / "data/sentence_encoder/texts.txt"
SIZES = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64)


def draw_texts(number):
    """A seed, all texts to train tokenizers with, and those that it draws, with some hard ones behind them."""
    seed = random.randrange(1 << 30)
    texts = [text for text in TEXTS.read_text(encoding="utf-8").splitlines() if text.strip()]
    return seed, texts, random.Random(seed).sample(texts, number) + ["a " * 600, "Ünïcödé, 漢字 und 🦀!", "x"]


def wordpiece(texts):
    tokenizer = tk.BertWordPieceTokenizer(lowercase=True)
    tokenizer.train_from_iterator(texts, vocab_size=600, min_frequency=1)
    return tf.BertTokenizerFast(tokenizer_object=tokenizer._tokenizer)


def cased_wordpiece(texts):
    tokenizer = tk.BertWordPieceTokenizer(lowercase=False, strip_accents=False)
    tokenizer.train_from_iterator(texts, vocab_size=700, min_frequency=1)
    return tf.BertTokenizerFast(tokenizer_object=tokenizer._tokenizer, do_lower_case=False, strip_accents=False)


def byte_level(texts):
    tokenizer = tk.ByteLevelBPETokenizer()
    tokenizer.train_from_iterator(texts, vocab_size=700, special_tokens=["<s>", "<pad>", "</s>", "<unk>", "<mask>"])
    return tf.RobertaTokenizerFast(tokenizer_object=tokenizer._tokenizer)


def unigram(texts):
    tokenizer = tk.SentencePieceUnigramTokenizer()
    tokenizer.train_from_iterator(texts, vocab_size=600, special_tokens=["<s>", "<pad>", "</s>", "<unk>", "<mask>"],
                                  unk_token="<unk>")
    tokenizer._tokenizer.post_processor = tk.processors.TemplateProcessing(
        single="<s> $A </s>", pair="<s> $A </s> </s> $B </s>", special_tokens=[("<s>", 0), ("</s>", 2)])
    return tf.PreTrainedTokenizerFast(tokenizer_object=tokenizer._tokenizer, bos_token="<s>", eos_token="</s>",
                                      unk_token="<unk>", pad_token="<pad>", mask_token="<mask>", cls_token="<s>",
                                      sep_token="</s>")


def pieces(texts):
    """DeBERTa's, whose texts keep their case and whose words end before punctuation."""
    marks = ["[PAD]", "[CLS]", "[SEP]", "[UNK]", "[MASK]"]
    trained = tk.SentencePieceUnigramTokenizer()
    trained.train_from_iterator(texts, vocab_size=600, special_tokens=marks, unk_token="[UNK]")
    model = json.loads(trained.to_str())["model"]
    return tf.DebertaV2TokenizerFast(vocab=[tuple(piece) for piece in model["vocab"]], split_by_punct=True)


def t5_pieces(texts):
    """T5's, whose texts end with a mark and begin with none."""
    trained = tk.SentencePieceUnigramTokenizer()
    trained.train_from_iterator(texts, vocab_size=600, special_tokens=["<pad>", "</s>", "<unk>"], unk_token="<unk>")
    model = json.loads(trained.to_str())["model"]
    return tf.T5TokenizerFast(vocab=[tuple(piece) for piece in model["vocab"]])


def bird_pieces(texts):
    """BigBird's, whose marks are partly BERT's."""
    marks = ["<pad>", "</s>", "<s>", "<unk>", "[SEP]", "[MASK]", "[CLS]"]
    trained = tk.SentencePieceUnigramTokenizer()
    trained.train_from_iterator(texts, vocab_size=600, special_tokens=marks, unk_token="<unk>")
    model = json.loads(trained.to_str())["model"]
    return tf.BigBirdTokenizer(vocab=[tuple(piece) for piece in model["vocab"]])


def proteins(texts):
    """ESM's, of which texts are mostly unknown."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "vocab.txt")
        path.write_text("\n".join(get_default_vocab_list()))
        return tf.EsmTokenizer(path)


def esm(vocabulary):
    return tf.EsmForMaskedLM(tf.EsmConfig(vocab_size=vocabulary, max_position_embeddings=130, pad_token_id=1,
                                          mask_token_id=32, position_embedding_type="rotary", token_dropout=True,
                                          **SIZES))


def ernie(vocabulary):
    return tf.ErnieModel(tf.ErnieConfig(vocab_size=vocabulary, max_position_embeddings=128, use_task_id=True, **SIZES))


def jina_v3(vocabulary):
    return tf.JinaEmbeddingsV3Model(tf.JinaEmbeddingsV3Config(vocab_size=vocabulary, max_position_embeddings=130, **SIZES))


def roberta_prelayernorm(vocabulary):
    return tf.RobertaPreLayerNormModel(tf.RobertaPreLayerNormConfig(
        vocab_size=vocabulary, max_position_embeddings=130, type_vocab_size=1, **SIZES))


def bert(vocabulary):
    return tf.BertModel(tf.BertConfig(vocab_size=vocabulary, max_position_embeddings=128, **SIZES))


def masked_bert(vocabulary):
    return tf.BertForMaskedLM(tf.BertConfig(vocab_size=vocabulary, max_position_embeddings=128, **SIZES))


def roberta(vocabulary):
    return tf.RobertaModel(tf.RobertaConfig(vocab_size=vocabulary, max_position_embeddings=130, type_vocab_size=1,
                                            pad_token_id=1, **SIZES))


def xlm_roberta(vocabulary):
    return tf.XLMRobertaModel(tf.XLMRobertaConfig(vocab_size=vocabulary, max_position_embeddings=130,
                                                  type_vocab_size=1, pad_token_id=1, **SIZES))


def distilbert(vocabulary):
    return tf.DistilBertModel(tf.DistilBertConfig(vocab_size=vocabulary, max_position_embeddings=128, dim=32,
                                                  n_layers=2, n_heads=4, hidden_dim=64))


def mpnet(vocabulary):
    return tf.MPNetModel(tf.MPNetConfig(vocab_size=vocabulary, max_position_embeddings=130, **SIZES))


def modernbert(vocabulary):
    return tf.ModernBertModel(tf.ModernBertConfig(vocab_size=vocabulary, max_position_embeddings=128,
                                                  local_attention=16, pad_token_id=1, bos_token_id=0, eos_token_id=2,
                                                  cls_token_id=0, sep_token_id=2, **SIZES))


def longformer(vocabulary):
    return tf.LongformerModel(tf.LongformerConfig(vocab_size=vocabulary, max_position_embeddings=130, type_vocab_size=1,
                                                  attention_window=[8, 16], **SIZES))


def big_bird(vocabulary):
    # With smaller blocks a short text's vector would depend on the longest of its batch.
    return tf.BigBirdModel(tf.BigBirdConfig(vocab_size=vocabulary, max_position_embeddings=128, **SIZES))


def nystromformer(vocabulary):
    # A longer kernel would read the padding of batches.
    return tf.NystromformerForMaskedLM(tf.NystromformerConfig(vocab_size=vocabulary, max_position_embeddings=128,
                                                              conv_kernel_size=1, **SIZES))


def nomic_bert(vocabulary):
    return tf.NomicBertModel(tf.NomicBertConfig(vocab_size=vocabulary, max_position_embeddings=128, **SIZES))


def deberta_v2(vocabulary):
    return tf.DebertaV2Model(tf.DebertaV2Config(vocab_size=vocabulary, max_position_embeddings=64, relative_attention=True,
                                                position_buckets=16, pos_att_type="p2c|c2p", share_att_key=True,
                                                norm_rel_ebd="layer_norm", position_biased_input=False, **SIZES))


def t5(vocabulary):
    return tf.T5ForConditionalGeneration(tf.T5Config(vocab_size=vocabulary, d_model=32, d_kv=12, d_ff=48, num_layers=2,
                                                     num_heads=4))


def mt5(vocabulary):
    return tf.MT5EncoderModel(tf.MT5Config(vocab_size=vocabulary, d_model=32, d_kv=8, d_ff=48, num_layers=2, num_heads=4,
                                           relative_attention_num_buckets=16, relative_attention_max_distance=40))


def gte(vocabulary):
    return tf.GteForMaskedLM(tf.GteConfig(vocab_size=vocabulary, max_position_embeddings=128, **SIZES))


# Each folder has: the tokenizer, the model, how it pools, whether it normalizes, how many tokens a text may have, and the
# widths of Dense modules, with their other arguments where they have any.
FOLDERS = {
    "bert": (wordpiece, bert, "mean", True, 64),
    "bert-cased-cls": (cased_wordpiece, bert, "cls", False, 128),
    "bert-dense": (wordpiece, bert, "mean", True, 64, 24, 16),
    "bert-max": (wordpiece, bert, "max", True, 32),
    "roberta": (byte_level, roberta, "mean", False, 128),
    "xlm-roberta": (unigram, xlm_roberta, "mean", True, 100),
    "distilbert": (wordpiece, distilbert, "mean", False, 128),
    "mpnet": (wordpiece, mpnet, "cls", True, 100),
    "modernbert": (byte_level, modernbert, "mean", True, 128),
    "nomic-bert": (wordpiece, nomic_bert, "mean", True, 128),
    "gte": (unigram, gte, "cls", True, 128),
    "longformer": (byte_level, longformer, "mean", True, 128),
    "big-bird": (bird_pieces, big_bird, "mean", True, 100),
    "nystromformer": (unigram, nystromformer, "mean", True, 100),
    "deberta-v2": (pieces, deberta_v2, "mean", True, 100),
    "esm": (proteins, esm, "mean", False, 100),
    "ernie": (wordpiece, ernie, "cls", True, 100),
    "jina-v3": (unigram, jina_v3, "mean", True, 128),
    "roberta-prelayernorm": (byte_level, roberta_prelayernorm, "mean", False, 128),
    # As sentence-t5 and gtr-t5 have it.
    "t5": (t5_pieces, t5, "mean", True, 256, (24, dict(bias=False, activation_function=torch.nn.Identity()))),
    "mt5": (t5_pieces, mt5, "mean", False, 600),
}

INSTRUCTED = {"config_sentence_transformers.json": {"prompts": {"query": "represent it: "},
                                                    "default_prompt_name": "query"},
              "1_Pooling/config.json": {"include_prompt": False}}

# Folders that are those above but for what some of their files say.
CHANGES = {
    "bert-prompted": ("bert", {"config_sentence_transformers.json": {"prompts": {"query": "query: ", "passage": ""},
                                                                     "default_prompt_name": "query"}}),
    # As INSTRUCTOR's folders are: a prompt's tokens are not pooled.
    "t5-instructed": ("t5", INSTRUCTED),
    "bert-instructed": ("bert", INSTRUCTED),
    "bert-instructed-dense": ("bert-dense", INSTRUCTED),
    "bert-instructed-cls": ("bert-cased-cls", INSTRUCTED),
    "bert-instructed-max": ("bert-max", INSTRUCTED),
    "esm-masked": ("esm", {"config_sentence_transformers.json": {"prompts": {"query": "MK<mask>T<mask>"},
                                                                 "default_prompt_name": "query"}}),
    "bert-cut-left": ("bert", {"tokenizer_config.json": {"truncation_side": "left"}}),
    "bert-short": ("bert", {"sentence_bert_config.json": {"processor_kwargs": {"model_max_length": 20}}}),
    "bert-lowered": ("bert-cased-cls", {"tokenizer_config.json": {"do_lower_case": True}}),
    "bert-lowered-first": ("bert-cased-cls", {"sentence_bert_config.json": {"do_lower_case": True}}),
    "bert-mish": ("bert", {"config.json": {"hidden_act": "mish"}}),
    "bert-accents": ("bert", {"tokenizer_config.json": {"strip_accents": False}}),
    "modernbert-long": ("modernbert", {"sentence_bert_config.json": {"max_seq_length": 300}}),
    "bert-mean-of-none": ("bert-max", {"1_Pooling/config.json": {"pooling_mode": None}}),
}


def change(folder, files):
    """Rewrites members of a folder's JSON files; None takes one away."""
    for name, members in files.items():
        path = folder / name
        document = json.loads(path.read_text()) | members
        path.write_text(json.dumps({key: value for key, value in document.items() if value is not None}))


def save_folder(folder, make, texts, changes):
    """Saves such a model as it would lie on the hub, and returns it as sentence-transformers loads it."""
    tokenizer_of, model_of, pooling, normalize, longest, *widths = make
    tokenizer = tokenizer_of(texts)
    model = model_of(len(tokenizer))
    with torch.no_grad():
        for tensor in model.parameters():  # biases and norms of their own, so that none is left out unnoticed
            tensor.add_(torch.randn_like(tensor) * 0.1)
    with tempfile.TemporaryDirectory() as saved:
        model.save_pretrained(saved)
        tokenizer.save_pretrained(saved)
        transformer = parts.Transformer(saved, max_seq_length=longest)
        modules = [transformer, parts.Pooling(transformer.get_word_embedding_dimension(), pooling_mode=pooling)]
        for width in widths:
            before = modules[-1].get_sentence_embedding_dimension()
            width, options = width if isinstance(width, tuple) else (width, dict(activation_function=torch.nn.Tanh()))
            modules.append(parts.Dense(before, width, **options))
        whole = SentenceTransformer(modules=modules + [parts.Normalize()] * normalize, device="cpu")
    whole.save(str(folder))
    change(folder, changes)
    return SentenceTransformer(str(folder), device="cpu")
