#include "text/sentencepiece/decode_pieces.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "core/strings/utf8.h"

namespace linserve {
namespace {

// Joins the texts of pieces. Bytes that stand one after another make characters together.
class Joined {
 public:
  Joined(const Vocabulary& vocabulary, bool marks) : vocabulary_(vocabulary), marks_(marks) {}

  void Add(const Piece& piece) {
    if (piece.kind == PieceKind::kByte) {
      const auto id = static_cast<int32_t>(&piece - vocabulary_.model.pieces.data());
      const auto found = std::find(vocabulary_.bytes.begin(), vocabulary_.bytes.end(), id);
      bytes_ += static_cast<char>(found - vocabulary_.bytes.begin());
      return;
    }
    EndBytes();
    // Only what begins the text loses the space that was added to it.
    if (prefix_seen_ || !text_.empty()) at_begin_ = false;
    prefix_seen_ = false;
    if (piece.kind == PieceKind::kUnknown) text_ += vocabulary_.model.unknown_surface;
    if (piece.kind == PieceKind::kControl && marks_) text_ += piece.text;
    if (piece.kind == PieceKind::kUnknown || piece.kind == PieceKind::kControl) return;
    AddSpaced(WithoutPrefix(piece.text));
  }

  std::string Text() && {
    EndBytes();
    return std::move(text_);
  }

 private:
  std::string_view WithoutPrefix(std::string_view piece) {
    const NormalizerRules& rules = vocabulary_.model.normalizer;
    if (!at_begin_ || !(rules.add_dummy_prefix || rules.remove_extra_whitespaces)) return piece;
    if (!piece.starts_with(kSpaceSymbol)) return piece;
    piece.remove_prefix(kSpaceSymbol.size());
    // Where extra spaces are removed, all of those at the beginning are extra.
    prefix_seen_ = !rules.remove_extra_whitespaces;
    return piece;
  }

  void AddSpaced(std::string_view piece) {
    for (size_t at = piece.find(kSpaceSymbol); at != std::string_view::npos;
         at = piece.find(kSpaceSymbol)) {
      text_.append(piece.substr(0, at)).append(" ");
      piece.remove_prefix(at + kSpaceSymbol.size());
    }
    text_ += piece;
  }

  void EndBytes() {
    constexpr std::string_view kReplacement = "\xEF\xBF\xBD";
    for (std::string_view rest = bytes_; !rest.empty();) {
      const size_t bytes = CharacterBytes(rest);
      text_ += bytes > 0 ? rest.substr(0, bytes) : kReplacement;
      rest.remove_prefix(std::max<size_t>(bytes, 1));
    }
    bytes_.clear();
  }

  const Vocabulary& vocabulary_;
  const bool marks_;
  std::string text_;
  std::string bytes_;  // of the last pieces
  bool at_begin_ = true;
  bool prefix_seen_ = false;
};

}  // namespace

std::string DecodePieces(const Vocabulary& vocabulary, const std::vector<int64_t>& ids,
                         bool marks) {
  Joined joined(vocabulary, marks);
  for (const int64_t id : ids) {
    if (id < 0 || std::cmp_greater_equal(id, vocabulary.model.pieces.size())) continue;
    joined.Add(vocabulary.model.pieces[static_cast<size_t>(id)]);
  }
  return std::move(joined).Text();
}

}  // namespace linserve
