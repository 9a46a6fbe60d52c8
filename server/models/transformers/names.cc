#include "models/transformers/names.h"

namespace linserve::transformers {
namespace {

constexpr Names kBert = {.words = "embeddings.word_embeddings",
                         .positions = "embeddings.position_embeddings",
                         .types = "embeddings.token_type_embeddings",
                         .embedding_norm = "embeddings.LayerNorm",
                         .layers = "encoder.layer",
                         .query = "attention.self.query",
                         .key = "attention.self.key",
                         .value = "attention.self.value",
                         .convolution = "attention.self.conv",
                         .out = "attention.output.dense",
                         .attention_norm = "attention.output.LayerNorm",
                         .inner = "intermediate.dense",
                         .outer = "output.dense",
                         .inner_norm = "output.LayerNorm"};

constexpr Names kDistilBert = {.words = "embeddings.word_embeddings",
                               .positions = "embeddings.position_embeddings",
                               .embedding_norm = "embeddings.LayerNorm",
                               .layers = "transformer.layer",
                               .query = "attention.q_lin",
                               .key = "attention.k_lin",
                               .value = "attention.v_lin",
                               .out = "attention.out_lin",
                               .attention_norm = "sa_layer_norm",
                               .inner = "ffn.lin1",
                               .outer = "ffn.lin2",
                               .inner_norm = "output_layer_norm"};

// MPNet is BERT but for its attention.
constexpr Names kMpnet = [] {
  Names names = kBert;
  names.types = nullptr;
  names.query = "attention.attn.q";
  names.key = "attention.attn.k";
  names.value = "attention.attn.v";
  names.out = "attention.attn.o";
  names.attention_norm = "attention.LayerNorm";
  return names;
}();

constexpr Names kElectra = [] {
  Names names = kBert;
  names.embedding_projection = "embeddings_project";
  return names;
}();

constexpr Names kAlbert = {.words = "embeddings.word_embeddings",
                           .positions = "embeddings.position_embeddings",
                           .types = "embeddings.token_type_embeddings",
                           .embedding_projection = "encoder.embedding_hidden_mapping_in",
                           .embedding_norm = "embeddings.LayerNorm",
                           .layers = "encoder.albert_layer_groups",
                           .of_group = "albert_layers",
                           .query = "attention.query",
                           .key = "attention.key",
                           .value = "attention.value",
                           .out = "attention.dense",
                           .attention_norm = "attention.LayerNorm",
                           .inner = "ffn",
                           .outer = "ffn_output",
                           .inner_norm = "full_layer_layer_norm",
                           .pooler = "pooler"};

// DeBERTa is BERT but for its attention.
constexpr Names kDebertaV2 = [] {
  Names names = kBert;
  names.embedding_projection = "embeddings.embed_proj";
  names.query = "attention.self.query_proj";
  names.key = "attention.self.key_proj";
  names.value = "attention.self.value_proj";
  names.position_key = "attention.self.pos_key_proj";
  names.position_query = "attention.self.pos_query_proj";
  return names;
}();

constexpr Names kDeberta = [] {
  Names names = kBert;
  names.embedding_projection = "embeddings.embed_proj";
  names.joined = "attention.self.in_proj";
  names.position_key = "attention.self.pos_proj";
  names.position_query = "attention.self.pos_q_proj";
  return names;
}();

// JinaBERT is BERT but for its feed-forward.
constexpr Names kJinaBert = [] {
  Names names = kBert;
  names.inner = "mlp.gated_layers";
  names.outer = "mlp.wo";
  names.inner_norm = "mlp.layernorm";
  return names;
}();

constexpr Names kJinaCode = [] {
  Names names = kBert;
  names.query_norm = "attention.self.layer_norm_q";
  names.key_norm = "attention.self.layer_norm_k";
  names.again_norm = "layer_norm_1";
  names.inner = "mlp.up_gated_layer";
  names.outer = "mlp.down_layer";
  names.inner_norm = "layer_norm_2";
  return names;
}();

constexpr Names kBigBird = [] {
  Names names = kBert;
  names.pooler = "pooler";
  return names;
}();

// ESM is BERT but for its norms.
constexpr Names kEsm = [] {
  Names names = kBert;
  names.embedding_norm = "embeddings.layer_norm";
  names.attention_norm = "attention.LayerNorm";
  names.inner_norm = "LayerNorm";
  names.norm = "encoder.emb_layer_norm_after";
  return names;
}();

constexpr Names kRobertaPreNorm = [] {
  Names names = kBert;
  names.attention_norm = "attention.LayerNorm";
  names.inner_norm = "intermediate.LayerNorm";
  names.norm = "LayerNorm";
  return names;
}();

constexpr Names kXlmRobertaXl = [] {
  Names names = kBert;
  names.attention_norm = "attention.self_attn_layer_norm";
  names.inner_norm = "LayerNorm";
  names.norm = "encoder.LayerNorm";
  return names;
}();

constexpr Names kMegatronBert = [] {
  Names names = kBert;
  names.attention_norm = "attention.ln";
  names.inner_norm = "ln";
  names.norm = "encoder.ln";
  return names;
}();

constexpr Names kModernBert = {.words = "embeddings.tok_embeddings",
                               .embedding_norm = "embeddings.norm",
                               .layers = "layers",
                               .joined = "attn.Wqkv",
                               .out = "attn.Wo",
                               .attention_norm = "attn_norm",
                               .inner = "mlp.Wi",
                               .outer = "mlp.Wo",
                               .inner_norm = "mlp_norm",
                               .norm = "final_norm"};

constexpr Names kRotary = {.words = "embeddings.word_embeddings",
                           .types = "embeddings.token_type_embeddings",
                           .embedding_norm = "embeddings.LayerNorm",
                           .layers = "layers",
                           .query = "self_attn.q_proj",
                           .key = "self_attn.k_proj",
                           .value = "self_attn.v_proj",
                           .out = "self_attn.o_proj",
                           .attention_norm = "post_attention_layernorm",
                           .gate = "mlp.gate_proj",
                           .inner = "mlp.up_proj",
                           .outer = "mlp.down_proj",
                           .inner_norm = "post_mlp_layernorm"};

constexpr Names kJinaV3 = [] {
  Names names = kRotary;
  names.gate = nullptr;
  names.inner = "mlp.fc1";
  names.outer = "mlp.fc2";
  return names;
}();

}  // namespace

const Names& NamesOf(Family family) {
  switch (family) {
    case Family::kDistilBert:
      return kDistilBert;
    case Family::kMpnet:
      return kMpnet;
    case Family::kModernBert:
      return kModernBert;
    case Family::kNomicBert:
    case Family::kGte:
      return kRotary;
    case Family::kDeberta:
      return kDeberta;
    case Family::kDebertaV2:
      return kDebertaV2;
    case Family::kAlbert:
      return kAlbert;
    case Family::kElectra:
    case Family::kRoFormer:
      return kElectra;
    case Family::kJinaBert:
      return kJinaBert;
    case Family::kJinaCode:
      return kJinaCode;
    case Family::kBigBird:
      return kBigBird;
    case Family::kEsm:
      return kEsm;
    case Family::kRobertaPreNorm:
      return kRobertaPreNorm;
    case Family::kXlmRobertaXl:
      return kXlmRobertaXl;
    case Family::kMegatronBert:
      return kMegatronBert;
    case Family::kJinaV3:
      return kJinaV3;
    case Family::kErnie:
    case Family::kData2Vec:
    case Family::kBert:
    case Family::kRoberta:
    case Family::kLongformer:
    case Family::kNystromformer:
      break;
  }
  return kBert;
}

}  // namespace linserve::transformers
