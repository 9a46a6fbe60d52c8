#include "models/checkpoint/fingerprint.h"

#include <string_view>

#include "core/system/sha256.h"

namespace linserve {
namespace {

// Returns blocks of the bytes from the first to the last, at equal distances; all of few bytes.
std::string Sampled(std::string_view bytes) {
  constexpr size_t kBlock = 4096;
  constexpr size_t kBlocks = 64;
  if (bytes.size() <= kBlocks * kBlock) return std::string(bytes);
  std::string sampled;
  for (size_t i = 0; i < kBlocks; ++i) {
    sampled += bytes.substr(i * (bytes.size() - kBlock) / (kBlocks - 1), kBlock);
  }
  return sampled;
}

}  // namespace

std::string FingerprintOf(const NetworkConfig& config, DType dtype, const TensorMap& tensors) {
  nlohmann::json document = {config.architecture, config.params, config.wrapper, config.call,
                             Name(dtype)};
  for (const DenseModule& dense : config.sentence.dense) {
    document.push_back({Name(config.sentence.pooling), dense.path, dense.activation});
    if (dense.residual) document.back().push_back("residual");
  }
  if (config.sentence.leaves_out_prompts) document.push_back(Name(config.sentence.pooling));
  if (config.sentence.each_row) document.push_back({"each_row", config.sentence.normalize});
  std::string text = document.dump();
  for (const auto& [name, tensor] : tensors) {
    const std::string_view bytes(reinterpret_cast<const char*>(tensor.bytes()), tensor.byte_size());
    text += name + std::string(Name(tensor.dtype())) + ToString(tensor.shape());
    text += Sha256(Sampled(bytes));
  }
  return Sha256(text);
}

}  // namespace linserve
