#include "text/sentencepiece/normalizer.h"

#include <algorithm>
#include <cstring>

#include "core/strings/utf8.h"
#include "text/sentencepiece/vocabulary.h"

namespace linserve {
namespace {

// Represents one unit of a double-array trie as darts-clone lays it out
// (https://github.com/s-yata/darts-clone). Units beyond the array are zero, so that a faulty file
// leads nowhere.
class Unit {
 public:
  Unit(std::string_view trie, uint32_t index) {
    if (index < trie.size() / sizeof(bits_)) {
      std::memcpy(&bits_, trie.data() + index * sizeof(bits_), sizeof(bits_));
    }
  }
  bool has_leaf() const { return (bits_ >> 8 & 1) != 0; }
  uint32_t value() const { return bits_ & 0x7FFFFFFFU; }
  uint32_t label() const { return bits_ & 0x800000FFU; }
  uint32_t offset() const { return bits_ >> 10 << ((bits_ & 1U << 9) >> 6); }

 private:
  uint32_t bits_ = 0;
};

// Returns the bytes of the trie that a charsmap begins with.
std::string_view TrieOf(std::string_view map) {
  uint32_t bytes = 0;
  if (map.size() < sizeof(bytes)) return {};
  std::memcpy(&bytes, map.data(), sizeof(bytes));
  return map.substr(sizeof(bytes), bytes);
}

}  // namespace

absl::Status CheckRules(const NormalizerRules& rules) {
  if (rules.charsmap.empty()) return absl::OkStatus();
  const std::string_view trie = TrieOf(rules.charsmap);
  const std::string_view becomes =
      std::string_view(rules.charsmap).substr(std::min(rules.charsmap.size(), 4 + trie.size()));
  if (trie.empty() || becomes.empty()) {
    return absl::InvalidArgumentError("the rules of its normalizer are cut off");
  }
  if (IsUtf8(becomes)) return absl::OkStatus();
  return absl::InvalidArgumentError("the rules of its normalizer are not UTF-8");
}

Normalizer::Normalizer(const NormalizerRules& rules, const PieceTrie& kept, bool space_at_end)
    : rules_(rules), kept_(kept), space_at_end_(space_at_end), trie_(TrieOf(rules.charsmap)) {
  if (!trie_.empty()) becomes_ = std::string_view(rules.charsmap).substr(4 + trie_.size());
}

Normalizer::Prefix Normalizer::First(std::string_view text) const {
  if (const size_t kept = kept_.LongestPrefix(text); kept > 0) return {text.substr(0, kept), kept};
  if (const Prefix mapped = Mapped(text, false); mapped.bytes > 0) return mapped;
  const size_t bytes = CharacterBytes(text);
  return {text.substr(0, bytes), bytes};
}

Normalizer::Prefix Normalizer::Mapped(std::string_view text, bool shortest) const {
  Prefix longest;
  uint32_t value = 0;
  uint32_t node = Unit(trie_, 0).offset();
  for (size_t i = 0; i < text.size() && !trie_.empty(); ++i) {
    const auto label = static_cast<unsigned char>(text[i]);
    node ^= label;
    const Unit unit(trie_, node);
    if (label == 0 || unit.label() != label) break;
    node ^= unit.offset();
    if (!unit.has_leaf()) continue;
    longest.bytes = i + 1;
    value = Unit(trie_, node).value();
    if (shortest) break;
  }
  if (longest.bytes == 0 || value >= becomes_.size()) return {};
  longest.becomes = becomes_.substr(value);
  longest.becomes = longest.becomes.substr(0, longest.becomes.find('\0'));
  // A rule of a faulty file could begin within a character.
  return CharacterBytes(longest.becomes) > 0 || longest.becomes.empty() ? longest : Prefix();
}

absl::Status NormalizedText::Append(size_t work, std::string& target,
                                    std::vector<size_t>* origins) {
  origins_ = origins;
  const size_t enough = target.size() + work;
  const size_t least_left = rest_.size() > work ? rest_.size() - work : 0;
  while (rest_.size() > least_left && target.size() < enough) {
    const Normalizer::Prefix prefix = normalizer_.First(rest_);
    if (prefix.bytes == 0) return absl::InvalidArgumentError("the text is not UTF-8");
    rest_.remove_prefix(prefix.bytes);
    Take(prefix.becomes, target);
    at_ += prefix.bytes;
  }
  if (rest_.empty() && !done_) End(target);
  return absl::OkStatus();
}

void NormalizedText::Take(std::string_view becomes, std::string& target) {
  const NormalizerRules& rules = normalizer_.rules();
  if (!begun_) {
    if (rules.remove_extra_whitespaces && becomes == " ") return;
    begun_ = true;
    after_space_ = rules.remove_extra_whitespaces;
    if (rules.add_dummy_prefix && !normalizer_.space_at_end()) PutSpace(target);
  }
  while (after_space_ && becomes.starts_with(' ')) becomes.remove_prefix(1);
  if (becomes.empty()) return;
  after_space_ = rules.remove_extra_whitespaces && becomes.ends_with(' ');
  Put(becomes, target);
}

void NormalizedText::Put(std::string_view text, std::string& target) {
  const bool escaped = normalizer_.rules().escape_whitespaces;
  while (!text.empty()) {
    const bool symbol = escaped && text.starts_with(kSpaceSymbol);
    if (symbol || text[0] == ' ') {
      PutSpace(target);
      text.remove_prefix(symbol ? kSpaceSymbol.size() : 1);
      continue;
    }
    for (const size_t at : held_spaces_) Emit(escaped ? kSpaceSymbol : " ", at, target);
    held_spaces_.clear();
    Emit(text.substr(0, 1), at_, target);
    text.remove_prefix(1);
  }
}

void NormalizedText::PutSpace(std::string& target) {
  if (normalizer_.rules().remove_extra_whitespaces) {
    held_spaces_.push_back(at_);
  } else {
    Emit(normalizer_.rules().escape_whitespaces ? kSpaceSymbol : " ", at_, target);
  }
}

void NormalizedText::Emit(std::string_view text, size_t origin, std::string& target) {
  target += text;
  if (origins_ != nullptr) origins_->insert(origins_->end(), text.size(), origin);
}

void NormalizedText::End(std::string& target) {
  const NormalizerRules& rules = normalizer_.rules();
  done_ = true;
  end_ = held_spaces_.empty() ? at_ : held_spaces_.front();
  if (!begun_ || !rules.add_dummy_prefix || !normalizer_.space_at_end()) return;
  Emit(rules.escape_whitespaces ? kSpaceSymbol : " ", end_, target);
}

}  // namespace linserve
