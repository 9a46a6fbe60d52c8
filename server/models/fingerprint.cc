#include "models/fingerprint.h"

#include <algorithm>
#include <string_view>

#include "core/system/sha256.h"

namespace linserve {

std::string FingerprintOf(const NetworkConfig& config, DType dtype, const TensorMap& tensors) {
  constexpr size_t kSampled = 4096;  // bytes at either end
  const nlohmann::json document = {config.architecture, config.params, config.wrapper, config.call,
                                   Name(dtype)};
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
