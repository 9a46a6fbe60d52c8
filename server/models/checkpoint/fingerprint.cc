#include "models/checkpoint/fingerprint.h"

#include <algorithm>
#include <string_view>

#include "core/system/sha256.h"

namespace linserve {

std::string FingerprintOf(const NetworkConfig& config, DType dtype, const TensorMap& tensors) {
  constexpr size_t kSampled = 4096;  // bytes at either end
  nlohmann::json document = {config.architecture, config.params, config.wrapper, config.call,
                             Name(dtype)};
  for (const DenseModule& dense : config.sentence.dense) {
    document.push_back({Name(config.sentence.pooling), dense.path, dense.activation});
  }
  std::string text = document.dump();
  for (const auto& [name, tensor] : tensors) {
    const std::string_view bytes(reinterpret_cast<const char*>(tensor.bytes()), tensor.byte_size());
    text += name + ToString(tensor.shape());
    text += bytes.substr(0, kSampled);
    text += bytes.substr(bytes.size() - std::min(bytes.size(), kSampled));
  }
  return Sha256(text);
}

}  // namespace linserve
