"""Small models of Llama's kin with tokenizers of their kinds, trained here; FOLDERS is as in transformers_folders.py."""

import tokenizers as tk
import torch
import transformers as tf
from tokenizers import decoders, normalizers, pre_tokenizers, processors

SIZES = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, intermediate_size=48)
CL100K = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
          r"|\s+(?!\S)|\s+")
QWEN = CL100K.replace("{1,3}", "")


def train(tokenizer, texts, marks, bytes_are_characters):
    options = dict(initial_alphabet=pre_tokenizers.ByteLevel.alphabet()) if bytes_are_characters else {}
    if not bytes_are_characters:
        marks = marks + [f"<0x{byte:02X}>" for byte in range(256)]
        options["max_token_length"] = 8
    tokenizer.train_from_iterator(texts, tk.trainers.BpeTrainer(vocab_size=700, special_tokens=marks,
                                                                show_progress=False, **options))
    return tokenizer


def template(tokenizer, single, pair, marks):
    return processors.TemplateProcessing(single=single, pair=pair,
                                         special_tokens=[(mark, tokenizer.token_to_id(mark)) for mark in marks])


def byte_tokenizer(texts, pattern, normalizer, marks, ignore_merges):
    tokenizer = tk.Tokenizer(tk.models.BPE(ignore_merges=ignore_merges))
    if normalizer is not None:
        tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(tk.Regex(pattern), "isolated"), pre_tokenizers.ByteLevel(False, use_regex=False)])
    tokenizer.decoder = decoders.ByteLevel()
    return train(tokenizer, texts, marks, True)


def qwen(texts):
    """As Qwen3-Embedding has it, which pads at the left and ends texts with the token that pads."""
    end = "<|endoftext|>"
    tokenizer = byte_tokenizer(texts, QWEN, normalizers.NFC(), [end, "<|im_start|>", "<|im_end|>"], False)
    tokenizer.post_processor = processors.Sequence([
        processors.ByteLevel(trim_offsets=False),
        template(tokenizer, f"$A {end}", f"$A:0 {end}:0 $B:1 {end}:1", [end])])
    return tf.PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<|im_end|>", pad_token=end,
                                      padding_side="left")


def llama3(texts):
    begin, end = "<|begin_of_text|>", "<|end_of_text|>"
    tokenizer = byte_tokenizer(texts, CL100K, None, [begin, end], True)
    tokenizer.post_processor = processors.Sequence([
        processors.ByteLevel(trim_offsets=False),
        template(tokenizer, f"{begin} $A {end}", f"{begin} $A {end} $B {end}", [begin, end])])
    return tf.PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token=begin, eos_token=end, pad_token=end)


def piece_tokenizer(texts, before, after, unknown, normalizer, pre_tokenizer):
    tokenizer = tk.Tokenizer(tk.models.BPE(unk_token=unknown, fuse_unk=True, byte_fallback=True))
    tokenizer.normalizer = normalizer
    if pre_tokenizer is not None:
        tokenizer.pre_tokenizer = pre_tokenizer
    tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    train(tokenizer, texts, ["<pad>", after, before, unknown], False)
    tokenizer.post_processor = template(tokenizer, f"{before} $A {after}", f"{before} $A {after} {before}:1 $B:1 {after}:1",
                                        [before, after])
    return tf.PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token=before, eos_token=after, unk_token=unknown,
                                      pad_token="<pad>")


def gemma(texts):
    return piece_tokenizer(texts, "<bos>", "<eos>", "<unk>", normalizers.Replace(" ", "▁"),
                           pre_tokenizers.Split(" ", "merged_with_previous"))


def llama2(texts):
    return piece_tokenizer(texts, "<s>", "</s>", "<unk>",
                           normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]), None)


def qwen3_model(vocabulary):
    return tf.Qwen3ForCausalLM(tf.Qwen3Config(vocab_size=vocabulary, head_dim=16, max_position_embeddings=128,
                                              rope_theta=1000000, tie_word_embeddings=True, **SIZES))


def qwen2_model(vocabulary):
    return tf.Qwen2Model(tf.Qwen2Config(vocab_size=vocabulary, max_position_embeddings=128, **SIZES))


def llama_model(vocabulary):
    scaling = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
               "original_max_position_embeddings": 32}
    return tf.LlamaModel(tf.LlamaConfig(vocab_size=vocabulary, max_position_embeddings=256, rope_scaling=scaling,
                                        rope_theta=5000.0, **SIZES))


def mistral_model(vocabulary):
    return tf.MistralModel(tf.MistralConfig(vocab_size=vocabulary, max_position_embeddings=128, sliding_window=16,
                                            **SIZES))


def gemma_model(vocabulary):
    return tf.GemmaForCausalLM(tf.GemmaConfig(vocab_size=vocabulary, max_position_embeddings=128, head_dim=16,
                                              hidden_act="gelu", **SIZES))


def gemma2_model(vocabulary):
    """Its scores, of random weights, are small, and so is what caps them."""
    return tf.Gemma2Model(tf.Gemma2Config(vocab_size=vocabulary, max_position_embeddings=128, head_dim=8,
                                          query_pre_attn_scalar=8, sliding_window=16, attn_logit_softcapping=0.5,
                                          **SIZES))


def phi3_model(vocabulary):
    scaling = {"rope_type": "longrope", "short_factor": [1.0, 1.2, 1.5], "long_factor": [4.0, 4.0, 4.0],
               "original_max_position_embeddings": 128}
    return tf.Phi3Model(tf.Phi3Config(vocab_size=vocabulary, max_position_embeddings=1024, partial_rotary_factor=0.75,
                                      original_max_position_embeddings=128, rope_parameters=scaling, pad_token_id=0,
                                      **SIZES))


def granite_model(vocabulary):
    return tf.GraniteModel(tf.GraniteConfig(vocab_size=vocabulary, max_position_embeddings=128, embedding_multiplier=4.0,
                                            residual_multiplier=0.3, attention_multiplier=0.2, **SIZES))


def smollm3_model(vocabulary):
    return tf.SmolLM3ForCausalLM(tf.SmolLM3Config(vocab_size=vocabulary, max_position_embeddings=128, pad_token_id=0,
                                                  no_rope_layers=[1, 0], **SIZES))


def olmo2_model(vocabulary):
    return tf.Olmo2Model(tf.Olmo2Config(vocab_size=vocabulary, max_position_embeddings=128, **SIZES))


def lfm2_model(vocabulary):
    return tf.Lfm2ForCausalLM(tf.Lfm2Config(vocab_size=vocabulary, max_position_embeddings=128, block_multiple_of=8,
                                            layer_types=["conv", "full_attention"], **SIZES))


def gemma3_model(vocabulary):
    return tf.Gemma3TextModel(tf.Gemma3TextConfig(
        vocab_size=vocabulary, max_position_embeddings=128, head_dim=8, query_pre_attn_scalar=8, sliding_window=16,
        use_bidirectional_attention=True, layer_types=["sliding_attention", "full_attention"], **SIZES))


def eurobert_model(vocabulary):
    return tf.EuroBertModel(tf.EuroBertConfig(vocab_size=vocabulary, max_position_embeddings=128, pad_token_id=1,
                                              bos_token_id=0, eos_token_id=1, mask_token_id=1, **SIZES))


LINEAR = dict(bias=False, activation_function=torch.nn.Identity())
FOLDERS = {
    "qwen3": (qwen, qwen3_model, "lasttoken", True, 100),
    "qwen2": (qwen, qwen2_model, "lasttoken", True, 128),
    "llama": (llama3, llama_model, "mean", False, 200),
    "mistral": (llama2, mistral_model, "lasttoken", True, 128),
    "gemma": (gemma, gemma_model, "lasttoken", True, 128),
    "gemma2": (gemma, gemma2_model, "lasttoken", True, 128),
    "phi3": (llama2, phi3_model, "lasttoken", True, 128),
    "granite": (qwen, granite_model, "lasttoken", True, 128),
    "smollm3": (llama3, smollm3_model, "mean", True, 128),
    "olmo2": (qwen, olmo2_model, "lasttoken", True, 128),
    "lfm2": (qwen, lfm2_model, "lasttoken", True, 128),
    "embedding-gemma": (gemma, gemma3_model, "mean", True, 128, (96, LINEAR), (32, LINEAR)),
    "eurobert": (llama3, eurobert_model, "mean", True, 128),
}
QWEN_FILES = {"tokenizer_config.json": {"tokenizer_class": "Qwen2Tokenizer", "add_bos_token": False}}
CHANGES = {
    "qwen3-instructed": ("qwen3", QWEN_FILES | {"config_sentence_transformers.json": {
        "prompts": {"query": "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery:",
                    "document": ""}, "default_prompt_name": "query"}}),
    "qwen3-cut-left": ("qwen3", {"tokenizer_config.json": {"truncation_side": "left"}}),
    "mistral-class": ("mistral", {"tokenizer_config.json": {"tokenizer_class": "LlamaTokenizer", "add_eos_token": True}}),
    "gemma-class": ("embedding-gemma", {"tokenizer_config.json": {"tokenizer_class": "GemmaTokenizer"}}),
}

# As in classifiers_test.py.
CLASSIFIERS = {
    "qwen3": (qwen, "Qwen3", dict(SIZES, head_dim=16, max_position_embeddings=128, pad_token_id=0)),
    "llama": (llama3, "Llama", dict(SIZES, max_position_embeddings=128, pad_token_id=1)),
    "eurobert": (llama3, "EuroBert", dict(SIZES, max_position_embeddings=128, pad_token_id=1, bos_token_id=0,
                                          eos_token_id=1, mask_token_id=1)),
}
