#include <cstdint>
#include <string>

#include "access/token_table.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto tokens = linserve::TokenTable::Parse(text);
  if (tokens.ok()) (void)tokens->Find(text);
  return 0;
}
