#!/usr/bin/env python3
"""Makes golden cases of the encoders, classifiers and, with sentence-transformers 6.2.0, sparse encoders of
transformers 5.24.0 (requirements.txt), with random weights.

  python make.py ../goldens [BEGINNING]

makes all cases, or those whose names begin so.

Each case is a folder: config.json, model.safetensors (the state_dict), io.safetensors (input.*, output.*). A ragged
case has input.lengths: rows past them are zeros, and what is expected is that of each sequence alone.

Nyströmformer takes one length where its attention is by landmarks: shorter sequences are padded to it and masked. Its
own mask has a row for each query and not for each landmark, an error, and is given one row here, as in versions 4.
"""
import json
import os
import sys
import zlib

import torch
import transformers
from safetensors.torch import save_file
from sentence_transformers.sparse_encoder.modules import SpladePooling
from transformers.models.nystromformer import modeling_nystromformer as nystromformer

torch.set_num_threads(1)
SMALL = dict(vocab_size=40, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48)
DISTIL = dict(vocab_size=40, dim=32, n_layers=2, n_heads=4, hidden_dim=48)
MODERN = dict(SMALL, pad_token_id=0, bos_token_id=1, eos_token_id=2, cls_token_id=1, sep_token_id=2, norm_eps=1e-5)
NYSTROM = dict(SMALL, max_position_embeddings=40, num_landmarks=4, segment_means_seq_len=24, conv_kernel_size=5)
CASES = []


def case(name, architecture, params, length=24, batch=2, lengths=None, mask=False, types=False, pad=False,
         pooler=None, hide_first=False, tasks=False):
    CASES.append(dict(name=name, architecture=architecture, params=params, length=length, batch=batch,
                      lengths=lengths, mask=mask, types=types, pad=pad, pooler=pooler, hide_first=hide_first, tasks=tasks,
                      splade={}))


def family(short, architecture, params, positions, has_types, has_pooler, activation):
    """Those that all of the models with absolute positions are tried with."""
    p = dict(params, max_position_embeddings=positions(40))
    case(short + "-base", architecture, p, pooler=has_pooler)
    case(short + "-ragged", architecture, p, length=40, batch=6, lengths=[40, 1, 2, 17, 33, 16], pooler=has_pooler)
    case(short + "-mask", architecture, p, mask=True, types=has_types, pooler=has_pooler)
    case(short + "-tanh", architecture, dict(p, **{activation: "gelu_new"}))
    case(short + "-relu", architecture, dict(p, **{activation: "relu"}), batch=1)
    case(short + "-long", architecture, dict(params, max_position_embeddings=positions(300)), length=300, batch=4,
         lengths=[300, 129, 128, 64])


family("bert", "BertModel", SMALL, lambda n: n, True, True, "hidden_act")
case("bert-types", "BertModel", dict(SMALL, max_position_embeddings=30, type_vocab_size=3, layer_norm_eps=1e-6),
     types=True, pooler=True)
case("bert-odd-heads", "BertModel", dict(SMALL, hidden_size=30, num_attention_heads=6, max_position_embeddings=30,
                                         hidden_act="silu"))
family("roberta", "RobertaModel", dict(SMALL, type_vocab_size=1), lambda n: n + 2, False, True, "hidden_act")
case("roberta-pads-inside", "RobertaModel", dict(SMALL, max_position_embeddings=40, type_vocab_size=1), pad=True)
case("xlm-roberta-base", "XLMRobertaModel", dict(SMALL, max_position_embeddings=42, pad_token_id=3), pad=True,
     pooler=True)
family("distilbert", "DistilBertModel", DISTIL, lambda n: n, False, False, "activation")
family("mpnet", "MPNetModel", SMALL, lambda n: n + 2, False, True, "hidden_act")
case("mpnet-pads-inside", "MPNetModel", dict(SMALL, max_position_embeddings=40), pad=True, mask=True)
case("modernbert-base", "ModernBertModel", dict(MODERN, num_hidden_layers=4), length=40)
case("modernbert-window", "ModernBertModel", dict(MODERN, num_hidden_layers=4, local_attention=12), length=40)
case("modernbert-mask", "ModernBertModel", dict(MODERN, num_hidden_layers=3, local_attention=16), length=40, mask=True)
case("modernbert-biased", "ModernBertModel", dict(MODERN, norm_bias=True, attention_bias=True, mlp_bias=True,
                                                  hidden_activation="silu", local_attention=10,
                                                  global_attn_every_n_layers=2, num_hidden_layers=3))
case("modernbert-bases", "ModernBertModel",
     dict(MODERN, num_hidden_layers=3, local_attention=20,
          layer_types=["sliding_attention", "full_attention", "sliding_attention"],
          rope_parameters={"full_attention": {"rope_type": "default", "rope_theta": 5000.0},
                           "sliding_attention": {"rope_type": "default", "rope_theta": 300.0}}))
case("modernbert-long", "ModernBertModel", dict(MODERN, num_hidden_layers=4, local_attention=100), length=400,
     batch=4, lengths=[400, 130, 257, 51])
case("modernbert-ragged", "ModernBertModel", dict(MODERN, num_hidden_layers=3, local_attention=8), length=40, batch=6,
     lengths=[40, 1, 2, 17, 33, 16])

case("nystromformer-base", "NystromformerModel", NYSTROM, types=True)
case("nystromformer-ragged", "NystromformerModel", NYSTROM, batch=6, lengths=[24, 1, 2, 17, 23, 16])
case("nystromformer-mask", "NystromformerModel", NYSTROM, mask=True, types=True)
case("nystromformer-exact", "NystromformerModel",
     dict(NYSTROM, inv_coeff_init_option=True, num_landmarks=6, hidden_act="gelu", pad_token_id=3), lengths=[24, 11])
case("nystromformer-uneven", "NystromformerModel",
     dict(NYSTROM, segment_means_seq_len=27, num_landmarks=5, conv_kernel_size=None, hidden_act="relu"), length=25,
     lengths=[25, 13])
case("nystromformer-one-landmark", "NystromformerModel",
     dict(NYSTROM, num_landmarks=1, conv_kernel_size=65, hidden_size=30, num_attention_heads=6, type_vocab_size=1,
          layer_norm_eps=1e-12), mask=True)
case("nystromformer-softmax", "NystromformerModel", dict(NYSTROM, num_landmarks=24), length=40, batch=6,
     lengths=[40, 1, 2, 17, 33, 16])
case("nystromformer-softmax-mask", "NystromformerModel", dict(NYSTROM, num_landmarks=24, conv_kernel_size=3), mask=True,
     types=True)
case("nystromformer-softmax-long", "NystromformerModel",
     dict(NYSTROM, num_landmarks=64, segment_means_seq_len=64, conv_kernel_size=65, max_position_embeddings=300),
     length=300, batch=3, lengths=[300, 129, 64])
case("nystromformer-long", "NystromformerModel",
     dict(NYSTROM, num_landmarks=32, segment_means_seq_len=320, conv_kernel_size=33, max_position_embeddings=320),
     length=320, batch=3, lengths=[320, 200, 7])

for short, architecture, other in (("nomic-bert", "NomicBertModel", "gelu"), ("gte", "GteModel", "silu")):
    case(short + "-base", architecture, SMALL)
    case(short + "-ragged", architecture, SMALL, length=40, batch=6, lengths=[40, 1, 2, 17, 33, 16])
    case(short + "-mask", architecture, dict(SMALL, type_vocab_size=3), mask=True, types=True)
    case(short + "-other", architecture,
         dict(SMALL, hidden_act=other, num_attention_heads=2, layer_norm_eps=1e-6, num_hidden_layers=3,
              rope_parameters={"rope_type": "default", "rope_theta": 300.0}))
    case(short + "-odd-heads", architecture, dict(SMALL, hidden_size=30, num_attention_heads=5, hidden_act="relu"))
    case(short + "-long", architecture, SMALL, length=300, batch=4, lengths=[300, 129, 128, 64])
case("gte-no-types", "GteModel", dict(SMALL, type_vocab_size=0), length=33)

# The third version of DeBERTa, but for its sizes: distances are up to 40, of which those beyond 4 share buckets.
DEBERTA = dict(SMALL, max_position_embeddings=40, relative_attention=True, position_buckets=8, pos_att_type="p2c|c2p",
               share_att_key=True, norm_rel_ebd="layer_norm", position_biased_input=False)
# The first version of DeBERTa, and the second where it is like that.
APART = dict(SMALL, max_position_embeddings=40, relative_attention=True, pos_att_type=["c2p", "p2c"])

for short, architecture, params in (("deberta", "DebertaModel", APART), ("deberta-v2", "DebertaV2Model", DEBERTA)):
    case(short + "-base", architecture, params)
    case(short + "-ragged", architecture, params, length=40, batch=6, lengths=[40, 1, 2, 17, 33, 16])
    case(short + "-mask", architecture, params, mask=True, hide_first=True)
    case(short + "-c2p", architecture,
         dict(APART, pos_att_type="C2P", max_relative_positions=10, type_vocab_size=2, layer_norm_eps=1e-12),
         types=True)
    case(short + "-p2c", architecture, dict(APART, pos_att_type=["p2c"], max_relative_positions=40, hidden_act="relu"))
    case(short + "-neither", architecture, dict(APART, pos_att_type=[], type_vocab_size=1), mask=True)
    case(short + "-absolute", architecture, dict(APART, relative_attention=False, max_relative_positions=3), batch=1)
    case(short + "-projected", architecture,
         dict(params, embedding_size=20, hidden_size=30, num_attention_heads=6, position_biased_input=True,
              type_vocab_size=3), types=True, mask=True)
    case(short + "-long", architecture,
         dict(APART, max_position_embeddings=300, max_relative_positions=140, position_biased_input=False), length=300,
         batch=4, lengths=[300, 129, 128, 64])
case("deberta-v2-long-buckets", "DebertaV2Model", dict(DEBERTA, position_buckets=64, max_position_embeddings=300),
     length=300, batch=4, lengths=[300, 129, 128, 64])
# Buckets that are further apart than distances are, so that some have none.
case("deberta-v2-skipped", "DebertaV2Model", dict(DEBERTA, position_buckets=400, max_position_embeddings=300,
                                                  num_hidden_layers=1), length=300, batch=2, lengths=[300, 220])
case("deberta-v2-conv", "DebertaV2Model", dict(DEBERTA, conv_kernel_size=3, conv_act="gelu", share_att_key=False),
     mask=True, hide_first=True)
case("deberta-v2-conv-groups", "DebertaV2Model", dict(DEBERTA, conv_kernel_size=5, conv_groups=4, position_buckets=-1,
                                                      max_relative_positions=-1, norm_rel_ebd="none"),
     length=40, batch=6, lengths=[40, 1, 2, 17, 33, 16])

ALBERT = dict(SMALL, max_position_embeddings=40, embedding_size=20, num_hidden_layers=3)
case("albert-base", "AlbertModel", ALBERT, types=True, pooler=True)
case("albert-ragged", "AlbertModel", dict(ALBERT, embedding_size=32, hidden_act="gelu"), length=40, batch=6,
     lengths=[40, 1, 2, 17, 33, 16], pooler=True)
case("albert-groups", "AlbertModel", dict(ALBERT, num_hidden_groups=2, inner_group_num=2, layer_norm_eps=1e-6),
     mask=True, types=True)
ELECTRA = dict(SMALL, max_position_embeddings=40, embedding_size=20)
case("electra-base", "ElectraModel", ELECTRA, types=True)
case("electra-ragged", "ElectraModel", dict(ELECTRA, hidden_act="relu"), length=40, batch=6,
     lengths=[40, 1, 2, 17, 33, 16])
case("electra-mask", "ElectraModel", dict(ELECTRA, embedding_size=32, layer_norm_eps=1e-6), mask=True, types=True)

ESM = dict(SMALL, vocab_size=20, pad_token_id=1, mask_token_id=5, position_embedding_type="rotary", token_dropout=True,
           max_position_embeddings=42)
case("esm-base", "EsmModel", ESM, pooler=True)
case("esm-ragged", "EsmModel", ESM, length=40, batch=6, lengths=[40, 1, 2, 17, 33, 16], pooler=True)
case("esm-mask", "EsmModel", dict(ESM, emb_layer_norm_before=True, layer_norm_eps=1e-5), mask=True, hide_first=True)
case("esm-absolute", "EsmModel", dict(ESM, position_embedding_type="absolute", token_dropout=False), mask=True, pad=True)
case("esm-absolute-ragged", "EsmModel",
     dict(ESM, position_embedding_type="absolute", emb_layer_norm_before=True, pad_token_id=0), length=40, batch=6,
     lengths=[40, 1, 2, 17, 33, 16], pooler=True)
case("esm-odd-heads", "EsmModel", dict(ESM, hidden_size=30, num_attention_heads=5, num_hidden_layers=3,
                                       token_dropout=False, rope_theta=50.0), pad=True)
case("esm-long", "EsmModel", dict(ESM, max_position_embeddings=300), length=300, batch=4, lengths=[300, 129, 128, 64])

ERNIE = dict(SMALL, max_position_embeddings=40, task_type_vocab_size=3, use_task_id=True)
case("ernie-base", "ErnieModel", dict(ERNIE, use_task_id=False), types=True, pooler=True)
case("ernie-ragged", "ErnieModel", ERNIE, length=40, batch=6, lengths=[40, 1, 2, 17, 33, 16], pooler=True)
case("ernie-tasks", "ErnieModel", dict(ERNIE, hidden_act="relu", type_vocab_size=4), mask=True, types=True, tasks=True)

for short, architecture in (("data2vec-text", "Data2VecText"), ("roberta-prelayernorm", "RobertaPreLayerNorm"),
                            ("xlm-roberta-xl", "XLMRobertaXL")):
    p = dict(SMALL, max_position_embeddings=42, layer_norm_eps=1e-5)
    case(short + "-base", architecture + "Model", p, pad=True, pooler=True)
    case(short + "-ragged", architecture + "Model", dict(p, pad_token_id=0, num_hidden_layers=3), length=40, batch=6,
         lengths=[40, 1, 2, 17, 33, 16], pooler=True)
    case(short + "-mask", architecture + "Model", dict(p, type_vocab_size=3, hidden_act="relu", layer_norm_eps=1e-12),
         mask=True, types=True, hide_first=True)

MEGATRON = dict(SMALL, max_position_embeddings=40)
case("megatron-bert-base", "MegatronBertModel", MEGATRON, types=True, pooler=True)
case("megatron-bert-ragged", "MegatronBertModel", dict(MEGATRON, num_hidden_layers=3, hidden_act="gelu_new"), length=40,
     batch=6, lengths=[40, 1, 2, 17, 33, 16], pooler=True)
case("megatron-bert-mask", "MegatronBertModel", dict(MEGATRON, layer_norm_eps=1e-6), mask=True, types=True, hide_first=True)

ROFORMER = dict(SMALL, max_position_embeddings=40)
case("roformer-base", "RoFormerModel", ROFORMER, types=True)
case("roformer-ragged", "RoFormerModel", dict(ROFORMER, rotary_value=True, hidden_act="relu"), length=40, batch=6,
     lengths=[40, 1, 2, 17, 33, 16])
case("roformer-mask", "RoFormerModel", dict(ROFORMER, rotary_value=True, embedding_size=20, layer_norm_eps=1e-6),
     mask=True, types=True, hide_first=True)
case("roformer-long", "RoFormerModel", dict(ROFORMER, max_position_embeddings=300, num_attention_heads=2), length=300,
     batch=4, lengths=[300, 129, 128, 64])

JINA = dict(SMALL, max_position_embeddings=40, layer_norm_eps=1e-5)
case("jina-v3-base", "JinaEmbeddingsV3Model", JINA, pooler=True)
case("jina-v3-ragged", "JinaEmbeddingsV3Model", dict(JINA, hidden_act="relu"), length=40, batch=6,
     lengths=[40, 1, 2, 17, 33, 16], pooler=True)
case("jina-v3-mask", "JinaEmbeddingsV3Model",
     dict(JINA, type_vocab_size=3, rope_parameters={"rope_type": "default", "rope_theta": 300.0}), mask=True, types=True,
     hide_first=True)
case("jina-v3-long", "JinaEmbeddingsV3Model", dict(JINA, max_position_embeddings=300), length=300, batch=4,
     lengths=[300, 129, 128, 64])

T5 = dict(vocab_size=40, d_model=32, d_kv=8, d_ff=48, num_layers=2, num_heads=4)
for short, architecture in (("t5", "T5EncoderModel"), ("mt5", "MT5EncoderModel"), ("umt5", "UMT5EncoderModel")):
    case(short + "-base", architecture, T5)
    case(short + "-ragged", architecture, dict(T5, d_kv=12, num_heads=3), length=40, batch=6,
         lengths=[40, 1, 2, 17, 33, 16])
    case(short + "-mask", architecture, dict(T5, feed_forward_proj="gated-gelu"), mask=True, hide_first=True)
case("t5-gated", "T5EncoderModel", dict(T5, d_ff=37, feed_forward_proj="gated-silu"), length=33)
case("t5-buckets", "T5EncoderModel",
     dict(T5, relative_attention_num_buckets=11, relative_attention_max_distance=20, layer_norm_epsilon=1e-3,
          feed_forward_proj="gelu"), length=40, mask=True)
case("t5-odd", "T5EncoderModel", dict(T5, d_model=30, d_kv=7, d_ff=41, num_heads=5, num_layers=3), length=40, batch=3,
     lengths=[40, 23, 9])
case("t5-long", "T5EncoderModel", dict(T5, feed_forward_proj="gated-gelu"), length=300, batch=4,
     lengths=[300, 129, 128, 64])
case("umt5-long", "UMT5EncoderModel", dict(T5, relative_attention_num_buckets=64, relative_attention_max_distance=200),
     length=400, batch=2, lengths=[400, 260])


def classifier(name, architecture, params, **options):
    case(name, architecture + "ForSequenceClassification", params, **options)


def names_of(count):
    return {str(i): f"class {i}" for i in range(count)}


RAGGED = dict(length=30, batch=4, lengths=[30, 1, 17, 2])
classifier("bert-classifier", "Bert", dict(SMALL, max_position_embeddings=30, id2label=names_of(3)), mask=True,
           types=True, hide_first=True)
classifier("bert-reranker", "Bert", dict(SMALL, max_position_embeddings=30, num_labels=1, hidden_act="gelu_new"),
           **RAGGED)
classifier("roberta-classifier", "Roberta", dict(SMALL, max_position_embeddings=40, type_vocab_size=1, num_labels=7),
           pad=True)
classifier("roberta-reranker", "Roberta",
           dict(SMALL, max_position_embeddings=40, id2label={"0": "score"}, problem_type="regression"), **RAGGED)
classifier("xlm-roberta-classifier", "XLMRoberta",
           dict(SMALL, max_position_embeddings=40, id2label=names_of(7), problem_type="multi_label_classification"),
           mask=True, types=True, hide_first=True)
classifier("xlm-roberta-reranker", "XLMRoberta",
           dict(SMALL, max_position_embeddings=40, type_vocab_size=1, num_labels=1, pad_token_id=3), **RAGGED)
classifier("distilbert-classifier", "DistilBert", dict(DISTIL, max_position_embeddings=30), mask=True, hide_first=True)
classifier("distilbert-reranker", "DistilBert",
           dict(DISTIL, max_position_embeddings=30, num_labels=1, activation="relu"), **RAGGED)
classifier("mpnet-classifier", "MPNet",
           dict(SMALL, max_position_embeddings=40, id2label=names_of(3), problem_type="single_label_classification"),
           mask=True, hide_first=True)
classifier("mpnet-reranker", "MPNet", dict(SMALL, max_position_embeddings=40, num_labels=1), **RAGGED)
classifier("modernbert-classifier", "ModernBert",
           dict(MODERN, id2label=names_of(3), norm_bias=True, classifier_bias=True, classifier_activation="relu",
                local_attention=8), mask=True, hide_first=True)
classifier("modernbert-classifier-mean", "ModernBert",
           dict(MODERN, num_labels=7, classifier_pooling="mean", classifier_activation="tanh"), mask=True,
           hide_first=True)
classifier("modernbert-reranker", "ModernBert",
           dict(MODERN, num_labels=1, classifier_pooling="mean", norm_bias=True, num_hidden_layers=3), **RAGGED)
classifier("nystromformer-classifier", "Nystromformer", dict(NYSTROM, id2label=names_of(3)), mask=True, types=True,
           hide_first=True)
classifier("nystromformer-reranker", "Nystromformer",
           dict(NYSTROM, num_landmarks=24, num_labels=1, hidden_act="relu"), **RAGGED)
for short, architecture, other in (("nomic-bert", "NomicBert", "gelu"), ("gte", "Gte", "silu")):
    classifier(short + "-classifier", architecture, dict(SMALL, type_vocab_size=3, id2label=names_of(7)), mask=True,
               types=True, hide_first=True)
    classifier(short + "-reranker", architecture, dict(SMALL, num_labels=1, hidden_act=other), **RAGGED)
for short, architecture, params in (("deberta", "Deberta", APART), ("deberta-v2", "DebertaV2", DEBERTA)):
    classifier(short + "-classifier", architecture, dict(params, id2label=names_of(3)), mask=True, hide_first=True)
    classifier(short + "-reranker", architecture, dict(params, num_labels=1, pooler_hidden_act="tanh",
                                                       position_biased_input=True), **RAGGED)
classifier("albert-classifier", "Albert", dict(ALBERT, id2label=names_of(3)), mask=True, hide_first=True)
classifier("albert-reranker", "Albert", dict(ALBERT, num_labels=1, num_hidden_groups=3), **RAGGED)
classifier("electra-classifier", "Electra", dict(ELECTRA, id2label=names_of(3)), mask=True, hide_first=True)
classifier("electra-reranker", "Electra", dict(ELECTRA, num_labels=1, hidden_act="gelu_new"), **RAGGED)
classifier("esm-classifier", "Esm", dict(ESM, id2label=names_of(3)), mask=True, hide_first=True)
classifier("esm-reranker", "Esm", dict(ESM, num_labels=1, position_embedding_type="absolute"), **RAGGED)
for short, architecture, params in (("ernie", "Ernie", ERNIE), ("data2vec-text", "Data2VecText", MEGATRON),
                                    ("roberta-prelayernorm", "RobertaPreLayerNorm", MEGATRON),
                                    ("xlm-roberta-xl", "XLMRobertaXL", MEGATRON),
                                    ("megatron-bert", "MegatronBert", MEGATRON), ("roformer", "RoFormer", ROFORMER),
                                    ("jina-v3", "JinaEmbeddingsV3", JINA)):
    classifier(short + "-classifier", architecture, dict(params, id2label=names_of(3)), mask=True, hide_first=True)
    classifier(short + "-reranker", architecture, dict(params, num_labels=1, hidden_act="relu"), **RAGGED)


def sparse(name, architecture, params, strategy="max", activation="relu", **options):
    case(name, architecture + "ForMaskedLM", params, **options)
    CASES[-1]["splade"] = dict(pooling_strategy=strategy, activation_function=activation)


sparse("bert-splade", "Bert", dict(SMALL, max_position_embeddings=30), mask=True, types=True, hide_first=True)
sparse("bert-splade-ragged", "Bert", dict(SMALL, vocab_size=530, num_hidden_layers=1, max_position_embeddings=130,
                                         hidden_act="gelu_new"), length=130, batch=6, lengths=[130, 1, 17, 2, 128, 129])
sparse("bert-splade-sum", "Bert", dict(SMALL, max_position_embeddings=30, layer_norm_eps=1e-6), strategy="sum", **RAGGED)
sparse("bert-splade-twice", "Bert", dict(SMALL, max_position_embeddings=30), activation="log1p_relu", **RAGGED)
sparse("bert-splade-sum-twice", "Bert", dict(SMALL, max_position_embeddings=30), strategy="sum",
       activation="log1p_relu", mask=True)
sparse("bert-splade-untied", "Bert", dict(SMALL, max_position_embeddings=30, tie_word_embeddings=False), mask=True)
sparse("distilbert-splade", "DistilBert", dict(DISTIL, max_position_embeddings=30, activation="relu"), **RAGGED)
sparse("distilbert-splade-untied", "DistilBert", dict(DISTIL, max_position_embeddings=30, tie_word_embeddings=False),
       strategy="sum", mask=True, hide_first=True)
sparse("roberta-splade", "Roberta", dict(SMALL, max_position_embeddings=40, type_vocab_size=1, hidden_act="relu"),
       pad=True, mask=True)
sparse("xlm-roberta-splade", "XLMRoberta", dict(SMALL, max_position_embeddings=40, type_vocab_size=1,
                                               tie_word_embeddings=False), activation="log1p_relu", **RAGGED)
sparse("modernbert-splade", "ModernBert", dict(MODERN, norm_bias=True, classifier_bias=True,
                                              classifier_activation="silu", local_attention=8), mask=True)
sparse("modernbert-splade-unbiased", "ModernBert", dict(MODERN, decoder_bias=False), **RAGGED)


def weights(model, generator):
    """Random weights of which nothing can be left out unnoticed: biases and norms, too."""
    for name, tensor in model.state_dict().items():
        if not tensor.is_floating_point():
            continue
        module = name.split(".")[-2].lower() if "." in name else ""
        norm = ("norm" in module or module == "ln") and name.endswith("weight")
        scale = 0.2 if norm or tensor.dim() == 1 else 0.7 if "embeddings" in name or "bias" in name else \
            (tensor[0].numel() if tensor.dim() == 3 else tensor.shape[-1]) ** -0.5
        if name.endswith("SelfAttention.q.weight"):  # whose products are not scaled
            scale *= model.config.d_kv ** -0.5
        tensor.copy_(torch.randn(tensor.shape, generator=generator) * scale + (1.0 if norm else 0.0))


def inputs_of(case, vocabulary, padding, generator):
    shape = (case["batch"], case["length"])
    ids = torch.randint(4, vocabulary, shape, generator=generator)
    if case["pad"]:
        ids[:, 5:7] = padding
        ids[0, -1] = padding
    inputs = {"x": ids}
    if case["mask"]:
        mask = torch.rand(shape, generator=generator) < 0.7
        mask[:, 0] = not case["hide_first"]
        inputs["attention_mask"] = mask
    if case["types"]:
        inputs["token_type_ids"] = torch.randint(0, case["params"].get("type_vocab_size", 2), shape,
                                                 generator=generator)
    if case["tasks"]:
        inputs["task_type_ids"] = torch.randint(0, case["params"]["task_type_vocab_size"], shape, generator=generator)
    return inputs


def forward(case, model, inputs):
    """The rows and what the model makes of them: of a classifier the logits, of a masked language model what
    SpladePooling makes of these."""
    encoder = model.base_model
    result, arguments = encoder_forward(encoder, inputs)
    if encoder is model:
        return result
    if isinstance(encoder, transformers.NystromformerModel):
        result.logits = model.classifier(result.last_hidden_state)
    else:
        result.logits = model(**arguments).logits
    if case["splade"]:
        features = {"token_embeddings": result.logits, "attention_mask": arguments["attention_mask"]}
        del result.logits
        result.sparse_embedding = SpladePooling(**case["splade"]).eval()(features)["sentence_embedding"]
    return result


def encoder_forward(model, inputs):
    arguments = {("input_ids" if name == "x" else name): tensor for name, tensor in inputs.items()}
    if "attention_mask" in arguments:
        arguments["attention_mask"] = arguments["attention_mask"].long()
    elif arguments["input_ids"].shape[0] > 0:
        arguments["attention_mask"] = torch.ones_like(arguments["input_ids"])
    if "token_type_ids" in arguments and not hasattr(model.embeddings, "token_type_embeddings"):
        del arguments["token_type_ids"]
    if isinstance(model, transformers.NystromformerModel):
        return nystromformer_forward(model, arguments), arguments
    return model(**arguments), arguments


def nystromformer_forward(model, arguments):
    """Each sequence alone, since the inverse begins at the largest sum of a batch, at the length that it takes."""
    config = model.config
    length = arguments["input_ids"].shape[1]
    missing = 0
    if config.num_landmarks != config.segment_means_seq_len:
        missing = config.segment_means_seq_len // config.num_landmarks * config.num_landmarks - length
    filling = {"input_ids": config.pad_token_id, "attention_mask": 0, "token_type_ids": 0}
    full = {name: torch.nn.functional.pad(tensor, (0, missing), value=filling[name])
            for name, tensor in arguments.items()}
    alone = [model(**{name: tensor[i:i + 1] for name, tensor in full.items()}).last_hidden_state[:, :length]
             for i in range(len(full["input_ids"]))]
    return transformers.modeling_outputs.BaseModelOutput(last_hidden_state=torch.cat(alone))


def nystromformer_model(kind, params):
    """The configuration refuses a kernel of None, and the model fails at inv_coeff_init_option."""
    config = transformers.NystromformerConfig(**{key: value for key, value in params.items()
                                                 if key != "inv_coeff_init_option" and value is not None})
    if "conv_kernel_size" in params and params["conv_kernel_size"] is None:
        object.__setattr__(config, "conv_kernel_size", None)
    model = kind(config)
    for layer in model.base_model.encoder.layer:
        layer.attention.self.init_option = "exact" if params.get("inv_coeff_init_option") else "original"
    return model


def one_row_of_the_mask(**arguments):
    mask = MASK_OF(**arguments)
    return None if mask is None else mask[:, :, :1]


MASK_OF = nystromformer.create_bidirectional_mask
nystromformer.create_bidirectional_mask = one_row_of_the_mask


def outputs_of(case, model, inputs):
    lengths = case["lengths"]
    if lengths is None:
        result = forward(case, model, inputs)
        rows, pooled = result.last_hidden_state, getattr(result, "pooler_output", None)
        others = {name: getattr(result, name) for name in ("logits", "sparse_embedding") if hasattr(result, name)}
    else:
        alone = [forward(case, model, {"x": inputs["x"][i:i + 1, :n]}) for i, n in enumerate(lengths)]
        rows = torch.zeros(*inputs["x"].shape, alone[0].last_hidden_state.shape[-1], dtype=torch.float64)
        for i, (one, n) in enumerate(zip(alone, lengths)):
            rows[i, :n] = one.last_hidden_state[0]
        pooled = torch.cat([one.pooler_output for one in alone]) if case["pooler"] else None
        others = {name: torch.cat([getattr(one, name) for one in alone]) for name in ("logits", "sparse_embedding")
                  if hasattr(alone[0], name)}
    outputs = {"last_hidden_state": rows} if case["length"] < 50 or not case["splade"] else {}
    if case["pooler"]:
        outputs["pooler_output"] = pooled
    outputs.update(others)
    return {name: tensor.float().contiguous() for name, tensor in outputs.items()}


def make(case, root):
    generator = torch.Generator().manual_seed(zlib.crc32(case["name"].encode()))
    kind = getattr(transformers, case["architecture"])
    if kind.config_class is transformers.NystromformerConfig:
        model = nystromformer_model(kind, case["params"]).eval()
    else:
        config = kind.config_class(**case["params"])
        config._attn_implementation = "eager"
        model = kind(config).eval()
    config = model.config
    with torch.no_grad():
        weights(model, generator)
        inputs = inputs_of(case, config.vocab_size, config.pad_token_id, generator)
        expected = outputs_of(case, model.double(), inputs)
    if case["lengths"] is not None:
        inputs["lengths"] = torch.tensor(case["lengths"])
        inputs["x"] *= torch.arange(case["length"])[None] < inputs["lengths"][:, None]
    state = {name: tensor.float() for name, tensor in model.state_dict().items()
             if name not in model.all_tied_weights_keys}
    params = dict(case["params"], **case["splade"])
    if model is model.base_model and getattr(model, "pooler", None) is not None and not case["pooler"]:
        params["add_pooling_layer"] = False
        state = {name: tensor for name, tensor in state.items() if not name.startswith("pooler.")}
    folder = os.path.join(root, case["name"])
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "config.json"), "w") as file:
        json.dump({"schema": 1, "architecture": "transformers." + case["architecture"], "params": params,
                   "wrapper": None, "call": {}, "compare": "all", "package": "transformers==" + transformers.__version__, "tolerance": 1e-5}, file,
                  indent=1)
        file.write("\n")
    save_file(state, os.path.join(folder, "model.safetensors"), {"format": "pt"})
    save_file({**{"input." + name: tensor.contiguous() for name, tensor in inputs.items()},
               **{"output." + name: tensor for name, tensor in expected.items()}},
              os.path.join(folder, "io.safetensors"))


for one in CASES:
    if one["name"].startswith(sys.argv[2] if len(sys.argv) > 2 else ""):
        make(one, sys.argv[1])
        print(one["name"])
