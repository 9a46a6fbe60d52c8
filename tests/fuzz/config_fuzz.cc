#include <cstdint>
#include <string>

#include "models/config/model_config.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  (void)linserve::ParseModelConfig(std::string(reinterpret_cast<const char*>(data), size));
  return 0;
}
