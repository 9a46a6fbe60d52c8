#include "text/huggingface/split/pre_tokenizers.h"

#include <algorithm>
#include <type_traits>
#include <utility>

#include "text/huggingface/characters/byte_characters.h"
#include "text/huggingface/characters/characters.h"
#include "text/huggingface/split/borders.h"
#include "text/huggingface/split/character_classes.h"
#include "text/huggingface/split/split_behavior.h"

namespace linserve {
namespace {

// Holds a text on its way through the parts.
struct Splitting {
  const std::string_view text;
  std::vector<ByteRange>& pieces;  // that are left of those before

  void Keep(size_t begin, size_t end) {
    if (begin < end) pieces.push_back({begin, end});
  }
};

// Calls `take(begin, character)` for each character of a piece.
template <typename Take>
void ForEach(std::string_view text, ByteRange piece, const Take& take) {
  for (size_t at = piece.begin; at < piece.end;) {
    const Character next = CharacterAt(text, at);
    take(at, next);
    at += next.bytes;
  }
}

absl::Status SplitOne(const BertSplit& /*part*/, ByteRange piece, Splitting& to) {
  size_t begin = piece.begin;
  ForEach(to.text, piece, [&](size_t at, Character next) {
    const uint32_t traits = TraitsOf(next.code);
    if ((traits & (uint32_t{kWhite} | kPunctuation)) == 0) return;
    to.Keep(begin, at);
    begin = at + next.bytes;
    if ((traits & kPunctuation) != 0) to.Keep(at, begin);
  });
  to.Keep(begin, piece.end);
  return absl::OkStatus();
}

absl::Status SplitOne(const WhitespaceWords& /*part*/, ByteRange piece, Splitting& to) {
  size_t begin = piece.begin;
  WordClass current = WordClass::kSpace;
  const auto end_word = [&](size_t at) {
    if (current != WordClass::kSpace) to.Keep(begin, at);
    begin = at;
  };
  ForEach(to.text, piece, [&](size_t at, Character next) {
    const WordClass own = ClassOf(next.code);
    if (own == current) return;
    end_word(at);
    current = own;
  });
  end_word(piece.end);
  return absl::OkStatus();
}

// Splits at each character of a kind.
template <typename Is>
absl::Status SplitAtCharacters(const Is& is, SplitBehavior behavior, ByteRange piece,
                               Splitting& to) {
  std::vector<ByteRange> matches;
  ForEach(to.text, piece, [&](size_t at, Character next) {
    if (is(next.code)) matches.push_back({at, at + next.bytes});
  });
  DivideAt(matches, behavior, false, piece, to.pieces);
  return absl::OkStatus();
}

absl::Status SplitOne(const WhitespaceSplit& /*part*/, ByteRange piece, Splitting& to) {
  size_t begin = piece.begin;
  ForEach(to.text, piece, [&](size_t at, Character next) {
    if (!IsWhite(next.code)) return;
    to.Keep(begin, at);
    begin = at + next.bytes;
  });
  to.Keep(begin, piece.end);
  return absl::OkStatus();
}

absl::Status SplitOne(const DelimiterSplit& part, ByteRange piece, Splitting& to) {
  const auto is = [&part](char32_t code) { return code == part.delimiter; };
  return SplitAtCharacters(is, SplitBehavior::kRemoved, piece, to);
}

absl::Status SplitOne(const PunctuationSplit& part, ByteRange piece, Splitting& to) {
  return SplitAtCharacters(IsPunctuation, part.behavior, piece, to);
}

absl::Status SplitOne(const DigitsSplit& part, ByteRange piece, Splitting& to) {
  const auto behavior = part.individual ? SplitBehavior::kIsolated : SplitBehavior::kContiguous;
  return SplitAtCharacters(IsNumeric, behavior, piece, to);
}

absl::Status SplitOne(const PatternSplit& part, ByteRange piece, Splitting& to) {
  std::vector<ByteRange> matches;
  absl::Status status =
      part.pattern.Find(to.text.substr(piece.begin, piece.end - piece.begin), matches);
  if (!status.ok()) return status;
  for (ByteRange& match : matches) {
    match = {match.begin + piece.begin, match.end + piece.begin};
  }
  DivideAt(matches, part.behavior, part.invert, piece, to.pieces);
  return status;
}

// Says where a piece stands that may have something put before it.
struct PieceStart {
  bool goes_on = false;
  bool begins_text = false;
};

// Appends a piece with all spaces replaced, and splits it.
void ChangeOne(const MetaspaceSplit& part, const AlignedText& from, ByteRange piece,
               PieceStart start, AlignedText& to, std::vector<ByteRange>& pieces) {
  const std::string_view text = from.text;
  const std::string_view own = part.replacement;
  const bool prepends = part.scheme == PrependScheme::kAlways ||
                        (part.scheme == PrependScheme::kFirst && start.begins_text);
  size_t begin = to.text.size();
  const bool there = text[piece.begin] == ' ' || text.substr(piece.begin).starts_with(own);
  if (prepends && !start.goes_on && !there) to.Add(own, from.OriginAt(piece.begin));
  for (size_t at = piece.begin; at < piece.end;) {
    const bool symbol = text[at] == ' ' || text.substr(at, piece.end - at).starts_with(own);
    if (symbol && part.split && to.text.size() > begin) {
      pieces.push_back({begin, to.text.size()});
      begin = to.text.size();
    }
    const size_t bytes = text[at] == ' ' ? 1 : CharacterAt(text, at).bytes;
    if (text[at] == ' ') {
      to.Add(own, from.OriginAt(at));
    } else {
      to.AddFrom(from, at, at + bytes);
    }
    at += bytes;
  }
  pieces.push_back({begin, to.text.size()});
}

// Appends a piece, with a space before it if that is wanted.
void ChangeOne(const ByteLevelSplit& part, const AlignedText& from, ByteRange piece,
               PieceStart start, AlignedText& to, std::vector<ByteRange>& pieces) {
  const size_t begin = to.text.size();
  if (part.add_prefix_space && !start.goes_on && from.text[piece.begin] != ' ') {
    to.Add(" ", from.OriginAt(piece.begin));
  }
  to.AddFrom(from, piece.begin, piece.end);
  if (!part.use_regex) {
    pieces.push_back({begin, to.text.size()});
    return;
  }
  for (size_t at = begin; at < to.text.size();) {
    const size_t end = WordEnd(WordPattern::kGpt2, to.text, at);
    pieces.push_back({at, end});
    at = end;
  }
}

// Puts the characters of bytes in their place.
void ToByteCharacters(AlignedText& text, std::vector<ByteRange>& pieces) {
  AlignedText to{.aligned = text.aligned};
  to.text.reserve(text.text.size() + text.text.size() / 2);
  for (ByteRange& piece : pieces) {
    const size_t begin = to.text.size();
    for (size_t at = piece.begin; at < piece.end; ++at) {
      to.Add(CharacterOfByte(text.text[at]), text.OriginAt(at));
    }
    piece = {begin, to.text.size()};
  }
  text = std::move(to);
}

template <typename Part>
inline constexpr bool kChangesText =
    std::is_same_v<Part, MetaspaceSplit> || std::is_same_v<Part, ByteLevelSplit>;

bool IsLeftToModel(const SplitPart& part) {
  return std::holds_alternative<WhitespaceSplit>(part) ||
         std::holds_alternative<MetaspaceSplit>(part);
}

}  // namespace

SplitChain::SplitChain(std::vector<SplitPart> parts) : parts_(std::move(parts)) {
  leaves_to_model_ = std::all_of(parts_.begin(), parts_.end(), IsLeftToModel);
}

bool SplitChain::ends_in_bytes() const {
  return !parts_.empty() && std::holds_alternative<ByteLevelSplit>(parts_.back());
}

bool SplitChain::asks_for_first_place() const {
  return std::any_of(parts_.begin(), parts_.end(), [](const SplitPart& part) {
    const auto* const metaspace = std::get_if<MetaspaceSplit>(&part);
    return metaspace != nullptr && metaspace->scheme == PrependScheme::kFirst;
  });
}

char32_t SplitChain::SpaceBecomes() const {
  for (const SplitPart& part : parts_) {
    const auto* const metaspace = std::get_if<MetaspaceSplit>(&part);
    if (metaspace != nullptr) return CharacterAt(metaspace->replacement, 0).code;
  }
  return U' ';
}

absl::Status SplitChain::Split(const SplitPlace& place, AlignedText& text,
                               std::vector<ByteRange>& pieces) const {
  pieces.clear();
  if (!text.text.empty()) pieces.push_back({0, text.text.size()});
  std::vector<ByteRange> before;
  for (size_t i = 0; i < parts_.size(); ++i) {
    before.swap(pieces);
    pieces.clear();
    const auto run = [&](const auto& part) -> absl::Status {
      if constexpr (kChangesText<std::decay_t<decltype(part)>>) {
        AlignedText to{.aligned = text.aligned};
        to.text.reserve(text.text.size() + text.text.size() / 2);
        for (const ByteRange& piece : before) {
          const PieceStart start{
              .goes_on = piece.begin == 0 && i < place.goes_on,
              .begins_text = place.begins_text && text.OriginAt(piece.begin).begin == 0};
          ChangeOne(part, text, piece, start, to, pieces);
        }
        text = std::move(to);
      } else {
        Splitting to{text.text, pieces};
        for (const ByteRange& piece : before) {
          if (absl::Status status = SplitOne(part, piece, to); !status.ok()) return status;
        }
      }
      return absl::OkStatus();
    };
    if (absl::Status status = std::visit(run, parts_[i]); !status.ok()) return status;
    const bool to_characters = std::holds_alternative<ByteLevelSplit>(parts_[i]) &&
                               !(keeps_bytes_ && i + 1 == parts_.size());
    if (to_characters) ToByteCharacters(text, pieces);
  }
  return absl::OkStatus();
}

std::optional<size_t> SplitChain::CanCut(std::string_view text, size_t at) const {
  const char32_t previous = CharacterBefore(text, at).code;
  const char32_t next = CharacterAt(text, at).code;
  for (size_t i = 0; i < parts_.size(); ++i) {
    const Border border = BorderOf(parts_[i], previous, next);
    if (border == Border::kCut) return i + 1;
    if (border == Border::kForbidden) break;
  }
  return std::nullopt;
}

}  // namespace linserve
