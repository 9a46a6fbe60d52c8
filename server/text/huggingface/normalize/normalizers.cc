#include "text/huggingface/normalize/normalizers.h"

#include <algorithm>
#include <array>
#include <type_traits>
#include <utility>

#include "core/strings/utf8.h"
#include "text/huggingface/characters/byte_characters.h"
#include "text/huggingface/characters/characters.h"

namespace linserve {
namespace {

// Replaces each character that becomes something else by what the change adds for it.
template <typename Change>
void Transform(AlignedText& block, const Change& change) {
  AlignedText to{.aligned = block.aligned};
  to.text.reserve(block.text.size() + block.text.size() / 4);
  const std::string_view text = block.text;
  size_t same = 0;  // where what was not copied yet begins
  bool changed = false;
  for (size_t at = 0; at < text.size();) {
    const Character next = CharacterAt(text, at);
    if (change.Becomes(next.code)) {
      changed = true;
      to.AddFrom(block, same, at);
      change.Add(next.code, block.OriginAt(at), to);
      same = at + next.bytes;
    }
    at += next.bytes;
  }
  if (!changed) return;
  to.AddFrom(block, same, text.size());
  block = std::move(to);
}

struct Clean {
  static bool Becomes(char32_t code) {
    return code != ' ' && (TraitsOf(code) & (uint32_t{kRemoved} | kWhite)) != 0;
  }
  static void Add(char32_t code, Origin origin, AlignedText& to) {
    if ((TraitsOf(code) & kRemoved) == 0) to.Add(" ", origin);
  }
};

struct SpaceIdeographs {
  static bool Becomes(char32_t code) { return (TraitsOf(code) & kIdeograph) != 0; }
  static void Add(char32_t code, Origin origin, AlignedText& to) {
    to.Add(" ", origin);
    to.Add(Utf8Character(code), origin);
    to.Add(" ", origin);
  }
};

// Removes characters of a trait.
struct Remove {
  bool Becomes(char32_t code) const { return (TraitsOf(code) & trait) != 0; }
  static void Add(char32_t /*code*/, Origin /*origin*/, AlignedText& /*to*/) {}
  CharacterTrait trait;
};

struct Lower {
  static bool Becomes(char32_t code) { return (TraitsOf(code) & kUpper) != 0; }
  static void Add(char32_t code, Origin origin, AlignedText& to) {
    std::u32string lower;
    AppendLower(code, lower);
    for (const char32_t one : lower) to.Add(Utf8Character(one), origin);
  }
};

// Does what SentencePiece's rules of this name do besides the form NFKC.
struct Nmt {
  static bool IsRemoved(char32_t code) {
    return (code >= 0x01u && code <= 0x08u) || code == 0x0Bu || (code >= 0x0Eu && code <= 0x1Fu) ||
           code == 0x7Fu || code == 0x8Fu || code == 0x9Fu;
  }
  static bool Becomes(char32_t code) {
    constexpr std::array<char32_t, 11> kSpaces = {0x09,   0x0A,   0x0C,   0x0D,   0x1680, 0x2028,
                                                  0x2029, 0x2581, 0xFEFF, 0xFFFD, 0x200B};
    return IsRemoved(code) || (code >= 0x200Bu && code <= 0x200Fu) ||
           std::find(kSpaces.begin(), kSpaces.end(), code) != kSpaces.end();
  }
  static void Add(char32_t code, Origin origin, AlignedText& to) {
    if (!IsRemoved(code)) to.Add(" ", origin);
  }
};

bool IsAscii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char byte) { return byte >= 0; });
}

// Does in one go what BertNormalizer does with ASCII.
void CleanAscii(const BertNormalizer& bert, AlignedText& block) {
  size_t kept = 0;
  for (size_t at = 0; at < block.text.size(); ++at) {
    char byte = block.text[at];
    const bool upper = bert.lowercase && byte >= 'A' && byte <= 'Z';
    if (upper) byte = static_cast<char>(byte + ('a' - 'A'));
    if (bert.clean_text && (byte < ' ' || byte == '\x7F')) {
      if (byte != '\t' && byte != '\n' && byte != '\r') continue;
      byte = ' ';
    }
    block.text[kept] = byte;
    if (block.aligned) block.origins[kept] = block.origins[at];
    ++kept;
  }
  block.text.resize(kept);
  if (block.aligned) block.origins.resize(kept);
}

void Bring(UnicodeForm form, AlignedText& block) {
  AlignedText to{.aligned = block.aligned};
  Normalize(form, block, to);
  block = std::move(to);
}

// Says where a block stands in its text.
struct BlockPlace {
  bool last = false;
  char& begun;  // whether this part has had something before
};

absl::Status Do(const BertNormalizer& bert, BlockPlace /*place*/, AlignedText& block) {
  if (IsAscii(block.text)) {
    CleanAscii(bert, block);
    return absl::OkStatus();
  }
  if (bert.clean_text) Transform(block, Clean());
  if (bert.handle_chinese_chars) Transform(block, SpaceIdeographs());
  if (bert.strip_accents) {
    Bring(UnicodeForm::kNfd, block);
    Transform(block, Remove{kNonspacing});
  }
  if (bert.lowercase) Transform(block, Lower());
  return absl::OkStatus();
}

absl::Status Do(const StripNormalizer& strip, BlockPlace place, AlignedText& block) {
  const std::string_view text = block.text;
  const auto is_white = [](Character one) { return IsWhite(one.code); };
  size_t begin = 0;
  while (strip.left && place.begun == 0 && begin < text.size() &&
         is_white(CharacterAt(text, begin))) {
    begin += CharacterAt(text, begin).bytes;
  }
  size_t end = text.size();
  while (strip.right && place.last && end > begin && is_white(CharacterBefore(text, end))) {
    end -= CharacterBefore(text, end).bytes;
  }
  if (begin < end) place.begun = 1;
  AlignedText to{.aligned = block.aligned};
  to.AddFrom(block, begin, end);
  block = std::move(to);
  return absl::OkStatus();
}

absl::Status Do(const ReplaceNormalizer& replace, BlockPlace /*place*/, AlignedText& block) {
  std::vector<ByteRange> matches;
  absl::Status status = replace.pattern.Find(block.text, matches);
  if (!status.ok() || matches.empty()) return status;
  AlignedText to{.aligned = block.aligned};
  size_t copied = 0;
  for (const ByteRange& match : matches) {
    to.AddFrom(block, copied, match.begin);
    // What is new stands where the last thing stood that it is put for.
    const size_t last = match.end > 0 ? match.end - 1 : 0;
    to.Add(replace.content, block.OriginAt(std::min(last, block.text.size() - 1)));
    copied = match.end;
  }
  to.AddFrom(block, copied, block.text.size());
  block = std::move(to);
  return status;
}

absl::Status Do(const PrependNormalizer& prepend, BlockPlace place, AlignedText& block) {
  if (place.begun != 0 || block.text.empty()) return absl::OkStatus();
  place.begun = 1;
  AlignedText to{.aligned = block.aligned};
  to.Add(prepend.prepend, block.OriginAt(0));
  to.AddFrom(block, 0, block.text.size());
  block = std::move(to);
  return absl::OkStatus();
}

absl::Status Do(const StripAccentsNormalizer& /*part*/, BlockPlace /*place*/, AlignedText& block) {
  Transform(block, Remove{kMark});
  return absl::OkStatus();
}

absl::Status Do(const LowercaseNormalizer& /*part*/, BlockPlace /*place*/, AlignedText& block) {
  Transform(block, Lower());
  return absl::OkStatus();
}

absl::Status Do(const NmtNormalizer& /*part*/, BlockPlace /*place*/, AlignedText& block) {
  Transform(block, Nmt());
  return absl::OkStatus();
}

absl::Status Do(const ByteLevelNormalizer& /*part*/, BlockPlace /*place*/, AlignedText& block) {
  AlignedText to{.aligned = block.aligned};
  for (size_t at = 0; at < block.text.size(); ++at) {
    to.Add(CharacterOfByte(block.text[at]), block.OriginAt(at));
  }
  block = std::move(to);
  return absl::OkStatus();
}

absl::Status Do(UnicodeForm form, BlockPlace /*place*/, AlignedText& block) {
  if (!IsAscii(block.text)) Bring(form, block);
  return absl::OkStatus();
}

absl::Status Do(const Charsmap& charsmap, BlockPlace /*place*/, AlignedText& block) {
  AlignedText to{.aligned = block.aligned};
  charsmap.Apply(block, to);
  block = std::move(to);
  return absl::OkStatus();
}

bool IsAsciiWord(char32_t code) {
  return (code >= 'a' && code <= 'z') || (code >= 'A' && code <= 'Z') ||
         (code >= '0' && code <= '9');
}

// Returns whether a text that is looked for may hold a space, or what one may have become, behind a
// letter or a digit.
bool MayReachOverSpace(std::string_view literal) {
  for (size_t at = 1; at < literal.size(); ++at) {
    const bool may_be_space = literal[at] == ' ' || literal[at] < 0;
    if (may_be_space && IsAsciiWord(static_cast<unsigned char>(literal[at - 1]))) return true;
  }
  return false;
}

}  // namespace

NormalizerChain::NormalizerChain(std::vector<NormalizerPart> parts) : parts_(std::move(parts)) {
  FindWhatReaches();
}

void NormalizerChain::FindWhatReaches() {
  for (const NormalizerPart& part : parts_) {
    clusters_ = clusters_ || std::holds_alternative<Charsmap>(part);
    // Spaces at the end of a block may be the last ones.
    words_ = words_ || std::holds_alternative<StripNormalizer>(part);
    const auto* const replace = std::get_if<ReplaceNormalizer>(&part);
    if (replace == nullptr) continue;
    const std::string* const literal = replace->pattern.literal();
    if (literal == nullptr) {
      words_ = true;
      whole_ = whole_ || !replace->pattern.finds_spaces();
    } else if (CountCharacters(*literal) > 1) {
      words_ = true;
      whole_ = whole_ || MayReachOverSpace(*literal);
    }
  }
}

absl::Status NormalizerChain::Apply(NormalizerState& state, bool last, AlignedText& block) const {
  for (size_t i = 0; i < parts_.size() && !block.text.empty(); ++i) {
    const BlockPlace place{.last = last, .begun = state.begun[i]};
    absl::Status status =
        std::visit([&](const auto& part) { return Do(part, place, block); }, parts_[i]);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

bool NormalizerChain::CanCut(std::string_view text, size_t at) const {
  if (whole_) return false;
  const char32_t next = CharacterAt(text, at).code;
  const char32_t previous = CharacterBefore(text, at).code;
  if (words_) return next == ' ' && IsAsciiWord(previous);
  if (next >= 0x80u && (TraitsOf(next) & kJoins) != 0) return false;
  if (!clusters_) return true;
  const auto is_plain = [](char32_t code) { return (TraitsOf(code) & kPlainCluster) != 0; };
  return is_plain(previous) && is_plain(next);
}

}  // namespace linserve
