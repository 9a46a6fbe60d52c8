#include "text/huggingface/added_tokens.h"

#include <algorithm>

#include "text/huggingface/characters/characters.h"

namespace linserve {
namespace {

bool IsWord(char32_t code) { return (TraitsOf(code) & kWord) != 0; }

}  // namespace

AddedTokenFinder::AddedTokenFinder(std::vector<AddedToken> tokens, std::vector<Entry> entries)
    : tokens_(std::move(tokens)) {
  std::stable_sort(entries.begin(), entries.end(),
                   [](const Entry& a, const Entry& b) { return a.first < b.first; });
  std::vector<PieceTrie::Entry> unique;
  for (const auto& [text, index] : entries) {
    if (text.empty() || (!unique.empty() && unique.back().first == text)) continue;
    unique.emplace_back(text, index);
    begins_[static_cast<unsigned char>(text[0])] = true;
    const AddedToken& token = tokens_[static_cast<size_t>(index)];
    takes_space_before_ = takes_space_before_ || token.lstrip;
    takes_space_after_ = takes_space_after_ || token.rstrip;
    Character previous = CharacterAt(text, 0);
    for (size_t at = previous.bytes; at < text.size();) {
      const Character next = CharacterAt(text, at);
      neighbours_.push_back(PairOf(previous.code, next.code));
      previous = next;
      at += next.bytes;
    }
  }
  std::sort(neighbours_.begin(), neighbours_.end());
  trie_ = PieceTrie(std::move(unique));
}

std::optional<AddedTokenFinder::Match> AddedTokenFinder::Next(
    std::string_view text, size_t& from, size_t limit, size_t taken,
    std::optional<char32_t> before) const {
  for (size_t& at = from; at < limit;) {
    const bool may_begin = begins_[static_cast<unsigned char>(text[at])];
    const size_t bytes = may_begin ? trie_.LongestPrefix(text.substr(at)) : size_t{0};
    if (bytes == 0) {
      ++at;
      continue;
    }
    const auto index = static_cast<size_t>(trie_.Find(text.substr(at, bytes)));
    const AddedToken& token = tokens_[index];
    if (token.stays_text || (token.single_word && !IsSingleWord(text, at, at + bytes, before))) {
      at += bytes;
      continue;
    }
    Match match{.begin = at, .end = at + bytes, .resume = at + bytes, .token = &token};
    while (token.lstrip && match.begin > taken &&
           IsWhite(CharacterBefore(text, match.begin).code)) {
      match.begin -= CharacterBefore(text, match.begin).bytes;
    }
    while (token.rstrip && match.end < text.size() && IsWhite(CharacterAt(text, match.end).code)) {
      match.end += CharacterAt(text, match.end).bytes;
    }
    return match;
  }
  return std::nullopt;
}

bool AddedTokenFinder::IsSingleWord(std::string_view text, size_t begin, size_t end,
                                    std::optional<char32_t> before) const {
  if (begin > 0) before = CharacterBefore(text, begin).code;
  if (before && IsWord(*before)) return false;
  return end == text.size() || !IsWord(CharacterAt(text, end).code);
}

bool AddedTokenFinder::CanCut(char32_t previous, char32_t next) const {
  if (empty()) return true;
  if (takes_space_before_ && IsWhite(previous)) return false;
  if (takes_space_after_ && IsWhite(next)) return false;
  return !std::binary_search(neighbours_.begin(), neighbours_.end(), PairOf(previous, next));
}

}  // namespace linserve
