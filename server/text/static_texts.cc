#include "text/static_texts.h"

#include <algorithm>
#include <string>

#include "core/strings/utf8.h"

namespace linserve {
namespace {

// Returns the median length of a vocabulary's tokens, in characters and rounded down.
int64_t MedianLength(const Tokenizer& tokenizer) {
  std::vector<size_t> lengths;
  for (int64_t id = 0; id < tokenizer.vocabulary(); ++id) {
    const std::string& piece = tokenizer.PieceOf(id);
    if (!piece.empty()) lengths.push_back(CountCharacters(piece));
  }
  if (lengths.empty()) return 0;
  std::sort(lengths.begin(), lengths.end());
  const size_t upper = lengths.size() / 2;
  const size_t lower = (lengths.size() - 1) / 2;
  return static_cast<int64_t>((lengths[lower] + lengths[upper]) / 2);
}

}  // namespace

StaticTexts::StaticTexts(const StaticSettings& settings, const Tokenizer& tokenizer) {
  if (!settings.as_model2vec) return;
  characters_of_token_ = MedianLength(tokenizer);
  unknown_ = tokenizer.unknown();
}

std::string_view StaticTexts::Read(std::string_view text, int64_t longest) const {
  // A character has a byte at least, so that most texts need not be counted.
  int64_t left = 0;
  if (__builtin_mul_overflow(longest, characters_of_token_, &left) || left == 0) return text;
  if (std::ssize(text) <= left) return text;
  size_t end = 0;
  for (; left > 0 && end < text.size(); --left) {
    const size_t bytes = CharacterBytes(text.substr(end));
    if (bytes == 0) return text;  // it is no UTF-8, as whoever reads it will say
    end += bytes;
  }
  return text.substr(0, end);
}

void StaticTexts::LeaveOut(std::vector<int64_t>& ids) const {
  if (unknown_) std::erase(ids, *unknown_);
}

}  // namespace linserve
