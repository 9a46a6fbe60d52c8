#include "models/registry.h"

#include <array>

#include "models/config_error.h"
#include "models/encoder.h"
#include "models/image_linear_attention.h"
#include "models/lat_encoder_decoder.h"
#include "models/linear_attention_transformer.h"
#include "models/linear_detr.h"
#include "models/linear_multihead_attention.h"
#include "models/linformer.h"
#include "models/linformer_pytorch.h"
#include "models/math_models.h"

namespace linserve {
namespace {

struct Row {
  const char* architecture;
  std::unique_ptr<Network> (*make)(Params&);
};

constexpr std::array kRows = {
    Row{"linformer.LinformerSelfAttention", MakeLinformerSelfAttention},
    Row{"linformer.Linformer", MakeLinformer},
    Row{"linformer.LinformerLM", MakeLinformerLM},
    Row{"math.softmax", MakeMathSoftmax},
    Row{"math.efficient", MakeMathEfficient},
    Row{"math.kernel", MakeMathKernel},
    Row{"math.taylor", MakeMathTaylor},
    Row{"math.linformer", MakeMathLinformer},
    Row{"linserve.Encoder", MakeEncoder},
    Row{"linear_attention_transformer.ImageLinearAttention", MakeImageLinearAttention},
    Row{"linear_multihead_attention.LinearMultiheadAttention", MakeLinearMultiheadAttention},
    Row{"linear_detr.Transformer", MakeDetrTransformer},
    Row{"linear_detr.TransformerEncoderLayer", MakeDetrEncoderLayer},
    Row{"linear_detr.TransformerDecoderLayer", MakeDetrDecoderLayer},
    Row{"linformer_pytorch.MHAttention", MakeLinformerPytorchAttention},
    Row{"linformer_pytorch.Linformer", MakeLinformerPytorchStack},
    Row{"linformer_pytorch.LinformerLM", MakeLinformerPytorchLM},
    Row{"linformer_pytorch.LinformerEncDec", MakeLinformerPytorchEncDec},
    Row{"linear_attention_transformer.LinearAttentionTransformer", MakeLinearAttentionTransformer},
    Row{"linear_attention_transformer.LinearAttentionTransformerLM",
        MakeLinearAttentionTransformerLM},
    Row{"linear_attention_transformer.EncoderDecoder", MakeLatEncoderDecoder},
};

}  // namespace

std::unique_ptr<Network> MakeNetwork(const NetworkConfig& config) {
  for (const Row& row : kRows) {
    if (row.architecture != config.architecture) continue;
    Params arguments(config);
    std::unique_ptr<Network> network = row.make(arguments);
    arguments.RefuseUnknown();
    return network;
  }
  std::string known;
  for (const Row& row : kRows) known += std::string(known.empty() ? "" : ", ") + row.architecture;
  throw ConfigError("unknown architecture \"" + config.architecture + "\"; known are " + known);
}

std::vector<std::string> KnownArchitectures() {
  std::vector<std::string> names;
  for (const Row& row : kRows) names.emplace_back(row.architecture);
  return names;
}

}  // namespace linserve
