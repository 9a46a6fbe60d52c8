#include <cstdint>
#include <cstdlib>
#include <numeric>

#include "core/files/safetensors.h"

// Checks that what is accepted lies within the bytes, whatever they are.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto* bytes = reinterpret_cast<const std::byte*>(data);
  const auto file = linserve::ParseSafetensors(bytes, size, nullptr, "fuzz");
  if (!file.ok()) return 0;
  for (const auto& [name, tensor] : file->tensors) {
    const size_t held = tensor.byte_size();
    if (held == 0) continue;
    if (tensor.bytes() < bytes || tensor.bytes() + held > bytes + size) std::abort();
    volatile auto read = std::accumulate(tensor.bytes(), tensor.bytes() + held, 0,
                                         [](int sum, std::byte b) { return sum ^ int(b); });
    (void)read;
  }
  return 0;
}
