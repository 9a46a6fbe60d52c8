#include "text/huggingface/normalize/charsmap.h"

#include <unicode/brkiter.h>
#include <unicode/locid.h>
#include <unicode/utext.h>

#include <array>
#include <cstdint>
#include <utility>

#include "text/huggingface/characters/characters.h"

namespace linserve {
namespace {

constexpr size_t kWholeCluster = 6;  // bytes: smaller clusters are replaced as a whole

// Returns the bytes that base64 stands for, with or without padding; nullopt if it is none.
absl::StatusOr<std::string> Decoded(std::string_view base64) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  static const std::array<int8_t, 256> values = [kDigits] {
    std::array<int8_t, 256> made{};
    made.fill(-1);
    for (size_t i = 0; i < kDigits.size(); ++i) {
      made[static_cast<unsigned char>(kDigits[i])] = static_cast<int8_t>(i);
    }
    return made;
  }();
  while (base64.ends_with('=')) base64.remove_suffix(1);
  std::string bytes;
  bytes.reserve(base64.size() * 3 / 4);
  uint32_t bits = 0;
  int held = 0;
  for (const char digit : base64) {
    const int8_t value = values[static_cast<unsigned char>(digit)];
    if (value < 0) return absl::InvalidArgumentError("precompiled_charsmap is no base64");
    bits = bits << 6u | static_cast<uint32_t>(value);
    held += 6;
    if (held < 8) continue;
    held -= 8;
    bytes += static_cast<char>(bits >> held & 0xFFu);
  }
  return bytes;
}

// Finds the ends of grapheme clusters by ICU.
class ClusterEnds {
 public:
  explicit ClusterEnds(std::string_view text) {
    UErrorCode error = U_ZERO_ERROR;
    iterator_.reset(icu::BreakIterator::createCharacterInstance(icu::Locale::getRoot(), error));
    text_ = utext_openUTF8(nullptr, text.data(), static_cast<int64_t>(text.size()), &error);
    if (U_SUCCESS(error)) iterator_->setText(text_, error);
    sound_ = U_SUCCESS(error) != 0;
  }
  ~ClusterEnds() { utext_close(text_); }
  ClusterEnds(const ClusterEnds&) = delete;
  ClusterEnds& operator=(const ClusterEnds&) = delete;

  // Returns where the cluster ends that begins at `at`.
  size_t After(std::string_view text, size_t at) {
    if (!sound_) return at + CharacterAt(text, at).bytes;
    return static_cast<size_t>(iterator_->following(static_cast<int32_t>(at)));
  }

 private:
  std::unique_ptr<icu::BreakIterator> iterator_;
  UText* text_ = nullptr;
  bool sound_ = false;
};

// Says whether a character is a cluster by itself wherever it stands beside such others.
bool IsPlain(char32_t code) {
  return (code >= 0x20u && code < 0x7Fu) || (TraitsOf(code) & kPlainCluster) != 0;
}

}  // namespace

absl::StatusOr<Charsmap> Charsmap::FromBase64(std::string_view base64) {
  auto bytes = Decoded(base64);
  if (!bytes.ok()) return bytes.status();
  NormalizerRules rules;
  rules.charsmap = *std::move(bytes);
  if (rules.charsmap.empty()) return absl::InvalidArgumentError("precompiled_charsmap is empty");
  if (absl::Status status = CheckRules(rules); !status.ok()) return status;
  return Charsmap(std::make_shared<const Rules>(std::move(rules)));
}

void Charsmap::Apply(const AlignedText& from, AlignedText& to) const {
  const std::string_view text = from.text;
  std::unique_ptr<ClusterEnds> ends;  // made where it is needed
  for (size_t at = 0; at < text.size();) {
    const Character first = CharacterAt(text, at);
    size_t end = at + first.bytes;
    const bool alone =
        IsPlain(first.code) && (end == text.size() || IsPlain(CharacterAt(text, end).code));
    if (!alone) {
      if (ends == nullptr) ends = std::make_unique<ClusterEnds>(text);
      end = ends->After(text, at);
    }
    ApplyToCluster(from, at, end, to);
    at = end;
  }
  // Where the beginning of a text is dropped, what follows stands at the beginning in its place.
  if (to.origins.empty() || from.origins[0].begin != 0) return;
  const size_t first = CharacterAt(to.text, 0).bytes;
  for (size_t i = 0; i < first; ++i) to.origins[i].begin = 0;
}

void Charsmap::ApplyToCluster(const AlignedText& from, size_t begin, size_t end,
                              AlignedText& to) const {
  const std::string_view text = from.text;
  const auto replaced = [&](size_t at, size_t bytes) {
    const Normalizer::Prefix rule = rules_->found.Shortest(text.substr(at, bytes));
    if (rule.bytes > 0) to.Add(rule.becomes, from.OriginAt(at));
    return rule.bytes > 0;
  };
  if (end - begin < kWholeCluster && replaced(begin, end - begin)) return;
  for (size_t at = begin; at < end;) {
    const size_t bytes = CharacterAt(text, at).bytes;
    if (!replaced(at, bytes)) to.AddFrom(from, at, at + bytes);
    at += bytes;
  }
}

}  // namespace linserve
