#include "text/text_stream.h"

#include <algorithm>
#include <string_view>

#include "core/strings/utf8.h"

namespace linserve {
namespace {

// So many tokens at least are kept before those whose text is not told yet, of which nothing is
// forgotten below kMost.
constexpr std::ptrdiff_t kContext = 4;
constexpr size_t kMost = 32;

// Text that may end within a character is held back for so many tokens, as a model may write any
// number of bytes that are none.
constexpr size_t kMostHeld = 32;

// SentencePiece decodes bytes that are not a character, or not one yet, to this text.
constexpr std::string_view kIncomplete = "\xEF\xBF\xBD";

}  // namespace

std::string TextStream::TextOf(const std::vector<int64_t>& ids) const {
  return tokenizer_->Decode(ids).value_or("");
}

std::string TextStream::Add(int64_t id) {
  ids_.push_back(id);
  ++held_;
  const std::string text = TextOf(ids_);
  const bool incomplete = text.ends_with(kIncomplete) && held_ < kMostHeld;
  if (incomplete || text.size() < told_) return "";
  // What is told all the same may still begin a character at its end; and where bytes became
  // another text by those behind them, may have ended within one.
  const size_t end = text.size() - (text.ends_with(kIncomplete) ? kIncomplete.size() : 0);
  const size_t begin = told_ < end ? CharacterBegin(text, told_) : end;
  std::string added = text.substr(begin, end - begin);
  told_ = std::max(told_, end);
  held_ = 0;
  if (ids_.size() >= kMost) Forget(text);
  return added;
}

void TextStream::Forget(const std::string& text) {
  for (std::ptrdiff_t context = kContext; context <= 2 * kContext; ++context) {
    std::vector<int64_t> last(ids_.end() - context, ids_.end());
    const std::string of_last = TextOf(last);
    // Bytes from within a character on have another text when they are alone.
    if (!text.ends_with(of_last) && ids_.size() < 2 * kMost) continue;
    ids_ = std::move(last);
    told_ = of_last.size() - std::min(of_last.size(), text.size() - told_);
    return;
  }
}

std::string TextStream::Rest() {
  const std::string text = TextOf(ids_);
  return text.size() > told_ ? text.substr(CharacterBegin(text, told_)) : "";
}

}  // namespace linserve
