#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string_view>

#include "core/strings/utf8.h"
#include "support/paths.h"
#include "text/sentencepiece/piece_tokenizer.h"
#include "text/tokenizer.h"

namespace linserve {
namespace {

const Tokenizer& Bundled() {
  static const auto tokenizer =
      *LoadSentencePiece(BundledModels() + "/sentence-encoder/1/tokenizer.model");
  return *tokenizer;
}

}  // namespace
}  // namespace linserve

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto ids = linserve::Bundled().Encode(text);
  if (ids.ok() != linserve::IsUtf8(text)) std::abort();
  if (!ids.ok()) return 0;
  const int64_t vocabulary = linserve::Bundled().vocabulary();
  const auto known = [vocabulary](int64_t id) { return id >= 0 && id < vocabulary; };
  if (!std::all_of(ids->begin(), ids->end(), known)) std::abort();
  return 0;
}
