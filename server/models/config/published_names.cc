#include "models/config/published_names.h"

namespace linserve {

std::vector<CheckpointNames::Renamed> PublishedNames(const std::string& architecture) {
  if (architecture.starts_with("transformers.NomicBert")) {
    return {{"bert.", {"nomic_bert."}},
            {"encoder.layers.", {"layers."}},
            {"emb_ln.", {"embeddings.LayerNorm."}},
            {"attn.Wqkv.", {"self_attn.q_proj.", "self_attn.k_proj.", "self_attn.v_proj."}},
            {"attn.out_proj.", {"self_attn.o_proj."}},
            {"mlp.fc1.", {"mlp.up_proj."}},
            {"mlp.fc11.", {"mlp.up_proj."}},
            {"mlp.fc12.", {"mlp.gate_proj."}},
            {"mlp.fc2.", {"mlp.down_proj."}},
            {"norm1.", {"post_attention_layernorm."}},
            {"norm2.", {"post_mlp_layernorm."}}};
  }
  if (architecture.starts_with("transformers.Gte")) {
    return {
        {"new.", {"gte."}},
        {"encoder.layer.", {"layers."}},
        {"attention.qkv_proj.", {"self_attn.q_proj.", "self_attn.k_proj.", "self_attn.v_proj."}},
        {"attention.q_proj.", {"self_attn.q_proj."}},
        {"attention.k_proj.", {"self_attn.k_proj."}},
        {"attention.v_proj.", {"self_attn.v_proj."}},
        {"attention.o_proj.", {"self_attn.o_proj."}},
        {"mlp.up_gate_proj.", {"mlp.up_proj.", "mlp.gate_proj."}},
        {"attn_ln.", {"post_attention_layernorm."}},
        {"mlp_ln.", {"post_mlp_layernorm."}}};
  }
  if (architecture.starts_with("transformers.JinaEmbeddingsV3")) {
    return {{"encoder.layers.", {"layers."}},
            {"emb_ln.", {"embeddings.LayerNorm."}},
            {"mixer.Wqkv.", {"self_attn.q_proj.", "self_attn.k_proj.", "self_attn.v_proj."}},
            {"mixer.out_proj.", {"self_attn.o_proj."}},
            {"norm1.", {"post_attention_layernorm."}},
            {"norm2.", {"post_mlp_layernorm."}}};
  }
  return {};
}

}  // namespace linserve
