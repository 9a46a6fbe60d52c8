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
                         .joined = nullptr,
                         .out = "attention.output.dense",
                         .attention_norm = "attention.output.LayerNorm",
                         .inner = "intermediate.dense",
                         .outer = "output.dense",
                         .inner_norm = "output.LayerNorm",
                         .norm = nullptr};

constexpr Names kDistilBert = {.words = "embeddings.word_embeddings",
                               .positions = "embeddings.position_embeddings",
                               .types = nullptr,
                               .embedding_norm = "embeddings.LayerNorm",
                               .layers = "transformer.layer",
                               .query = "attention.q_lin",
                               .key = "attention.k_lin",
                               .value = "attention.v_lin",
                               .joined = nullptr,
                               .out = "attention.out_lin",
                               .attention_norm = "sa_layer_norm",
                               .inner = "ffn.lin1",
                               .outer = "ffn.lin2",
                               .inner_norm = "output_layer_norm",
                               .norm = nullptr};

constexpr Names kMpnet = {.words = "embeddings.word_embeddings",
                          .positions = "embeddings.position_embeddings",
                          .types = nullptr,
                          .embedding_norm = "embeddings.LayerNorm",
                          .layers = "encoder.layer",
                          .query = "attention.attn.q",
                          .key = "attention.attn.k",
                          .value = "attention.attn.v",
                          .joined = nullptr,
                          .out = "attention.attn.o",
                          .attention_norm = "attention.LayerNorm",
                          .inner = "intermediate.dense",
                          .outer = "output.dense",
                          .inner_norm = "output.LayerNorm",
                          .norm = nullptr};

constexpr Names kModernBert = {.words = "embeddings.tok_embeddings",
                               .positions = nullptr,
                               .types = nullptr,
                               .embedding_norm = "embeddings.norm",
                               .layers = "layers",
                               .query = nullptr,
                               .key = nullptr,
                               .value = nullptr,
                               .joined = "attn.Wqkv",
                               .out = "attn.Wo",
                               .attention_norm = "attn_norm",
                               .inner = "mlp.Wi",
                               .outer = "mlp.Wo",
                               .inner_norm = "mlp_norm",
                               .norm = "final_norm"};

}  // namespace

const Names& NamesOf(Family family) {
  switch (family) {
    case Family::kDistilBert:
      return kDistilBert;
    case Family::kMpnet:
      return kMpnet;
    case Family::kModernBert:
      return kModernBert;
    case Family::kBert:
    case Family::kRoberta:
      break;
  }
  return kBert;
}

}  // namespace linserve::transformers
