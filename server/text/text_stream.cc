#include "text/text_stream.h"

namespace linserve {
namespace {

// TextStream keeps kContext tokens before those whose text is not told yet, and at most kMost
// tokens.
constexpr std::ptrdiff_t kContext = 4;
constexpr size_t kMost = 32;

// SentencePiece decodes bytes that are not a character, or not one yet, to this text.
constexpr std::string_view kIncomplete = "\xEF\xBF\xBD";

}  // namespace

std::string TextStream::Text() const { return tokenizer_->Decode(ids_).value_or(""); }

std::string TextStream::Add(int64_t id) {
  ids_.push_back(id);
  const std::string text = Text();
  if (text.size() < told_ || (text.ends_with(kIncomplete) && ids_.size() < kMost)) return "";
  std::string added = text.substr(told_);
  told_ = text.size();
  if (ids_.size() >= kMost) {
    ids_.erase(ids_.begin(), ids_.end() - kContext);
    told_ = Text().size();
  }
  return added;
}

std::string TextStream::Rest() {
  const std::string text = Text();
  return text.size() > told_ ? text.substr(told_) : "";
}

}  // namespace linserve
