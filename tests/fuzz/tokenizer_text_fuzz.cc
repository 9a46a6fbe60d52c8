#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/strings/utf8.h"
#include "text/huggingface/tokenizers.h"
#include "text/text_encoding.h"

namespace linserve {
namespace {

const Tokenizer& Chosen(uint8_t number) {
  static const std::vector<std::shared_ptr<const Tokenizer>> all = [] {
    std::vector<std::shared_ptr<const Tokenizer>> loaded;
    for (const std::string& name : TrainedNames()) loaded.push_back(TrainedTokenizer(name));
    return loaded;
  }();
  return *all[number % all.size()];
}

}  // namespace
}  // namespace linserve

// Checks a text, which follows the number of a tokenizer: its ids are those of the vocabulary, and
// the same where it is read in short turns.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const linserve::Tokenizer& tokenizer = linserve::Chosen(data[0]);
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const auto ids = tokenizer.Encode(text);
  if (!ids.ok()) {
    if (!linserve::IsUtf8(text)) return 0;
    // Some have no token for what is unknown.
    if (ids.status().message().find("what is unknown") != std::string_view::npos) return 0;
    std::abort();
  }
  if (!linserve::IsUtf8(text)) std::abort();
  const int64_t vocabulary = tokenizer.vocabulary();
  const auto known = [vocabulary](int64_t id) { return id >= 0 && id < vocabulary; };
  if (!std::all_of(ids->begin(), ids->end(), known)) std::abort();
  linserve::TextEncoding encoding(tokenizer, text, /*marks=*/true);
  while (!encoding.done()) {
    size_t budget = 1;
    if (!encoding.Advance(budget).ok()) std::abort();
  }
  if (!encoding.Finish().ok() || encoding.ids() != *ids) std::abort();
  return 0;
}
