#include <cstdint>
#include <cstdlib>

#include "core/files/npy.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto* bytes = reinterpret_cast<const std::byte*>(data);
  const auto tensor = linserve::ParseNpy(bytes, size, nullptr, "fuzz");
  if (!tensor.ok() || tensor->byte_size() == 0) return 0;
  if (tensor->bytes() < bytes || tensor->bytes() + tensor->byte_size() > bytes + size) std::abort();
  return 0;
}
