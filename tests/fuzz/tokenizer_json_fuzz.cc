#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "text/huggingface/json_tokenizer.h"
#include "text/text_encoding.h"

namespace {

// Holds what is hard for some part of a tokenizer.
constexpr std::string_view kText =
    "The server's  answers: caf\xC3\xA9 e\xCC\x81\xCC\xA7 \xEF\xB7\xBA 12,345\r\n[MASK] "
    "\xE4\xBD\xA0\xE5\xA5\xBD\xE3\x80\x82 \xF0\x9F\x91\xA9\xE2\x80\x8D\xF0\x9F\x92\xBB \xC4\xB0 "
    "aaaa";

// Checks that two texts become as many ids as are asked for, each with a type or none.
void CheckPair(const linserve::Tokenizer& tokenizer) {
  constexpr size_t kLongest = 9;
  linserve::TextEncoding encoding(tokenizer, kText, "the server", linserve::Truncation::kRight,
                                  kLongest);
  while (!encoding.done()) {
    size_t budget = 16;
    if (!encoding.Advance(budget).ok()) return;
  }
  if (!encoding.Finish().ok()) return;
  if (encoding.ids().size() > kLongest) std::abort();
  if (!encoding.types().empty() && encoding.types().size() != encoding.ids().size()) std::abort();
}

}  // namespace

// Checks that what is accepted as a tokenizer makes ids of its vocabulary, with places in the text.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view json(reinterpret_cast<const char*>(data), size);
  const auto tokenizer = linserve::ParseTokenizerJson(json);
  if (!tokenizer.ok()) return 0;
  if ((*tokenizer)->pair()) CheckPair(**tokenizer);
  linserve::TextEncoding encoding(**tokenizer, kText, /*marks=*/false);
  while (!encoding.done()) {
    size_t budget = 16;
    if (!encoding.Advance(budget).ok()) return 0;
  }
  if (!encoding.Finish().ok()) return 0;
  if (encoding.places().size() != encoding.ids().size()) std::abort();
  for (size_t i = 0; i < encoding.ids().size(); ++i) {
    const linserve::TokenPlace& place = encoding.places()[i];
    if (encoding.ids()[i] < 0 || encoding.ids()[i] >= (*tokenizer)->vocabulary()) std::abort();
    if (place.begin > place.end || place.end > kText.size()) std::abort();
  }
  (void)(*tokenizer)->Decode(encoding.ids(), true);
  return 0;
}
