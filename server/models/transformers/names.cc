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
    case Family::kBert:
    case Family::kRoberta:
    case Family::kNystromformer:
      break;
  }
  return kBert;
}

}  // namespace linserve::transformers
