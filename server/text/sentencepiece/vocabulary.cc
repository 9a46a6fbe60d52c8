#include "text/sentencepiece/vocabulary.h"

#include <algorithm>
#include <cfloat>
#include <charconv>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "core/strings/utf8.h"

namespace linserve {
namespace {

bool IsFound(const Piece& piece) {
  return piece.kind == PieceKind::kNormal || piece.kind == PieceKind::kUserDefined ||
         piece.kind == PieceKind::kUnused;
}

// Returns the bytes of the character that `text` begins with as one number.
uint64_t FirstCharacter(std::string_view text) {
  uint64_t character = 0;
  for (const char byte : text.substr(0, CharacterBytes(text))) {
    character = character << 8 | static_cast<unsigned char>(byte);
  }
  return character;
}

uint64_t PairAt(std::string_view text, size_t before, size_t at) {
  return FirstCharacter(text.substr(before)) << 32 | FirstCharacter(text.substr(at));
}

// Returns the byte that a piece such as <0x41> names.
std::optional<uint8_t> ByteOf(const std::string& piece) {
  if (piece.size() != 6 || !piece.starts_with("<0x") || !piece.ends_with('>')) return std::nullopt;
  uint8_t byte = 0;
  const char* const end = piece.data() + 5;
  const auto read = std::from_chars(piece.data() + 3, end, byte, 16);
  return read.ptr == end ? std::optional(byte) : std::nullopt;
}

// The package makes none of more than 512 characters. Each byte of a text may begin so long a
// match.
constexpr size_t kLongestPiece = 2048;

std::string TooLong(const std::string& text) {
  return " has " + std::to_string(text.size()) + " bytes, expected at most " +
         std::to_string(kLongestPiece);
}

}  // namespace

absl::StatusOr<std::shared_ptr<const Vocabulary>> Vocabulary::Make(PieceModel model) {
  std::shared_ptr<Vocabulary> made(new Vocabulary(std::move(model)));
  absl::Status status = made->CheckPieces();
  if (status.ok() && made->model.byte_fallback) status = made->FindBytes();
  if (!status.ok()) return status;
  made->Index();
  if (made->found.empty())
    return absl::InvalidArgumentError("it has no pieces that texts could be made of");
  return made;
}

absl::Status Vocabulary::CheckPieces() {
  for (const std::string* text : {&model.unknown_surface, &model.bos, &model.eos}) {
    if (text->size() > kLongestPiece) return absl::InvalidArgumentError("a mark" + TooLong(*text));
  }
  std::set<std::pair<bool, std::string_view>> texts;
  for (size_t i = 0; i < model.pieces.size(); ++i) {
    const Piece& piece = model.pieces[i];
    const std::string name = "piece " + std::to_string(i);
    if (piece.text.empty()) return absl::InvalidArgumentError(name + " is empty");
    if (piece.text.size() > kLongestPiece)
      return absl::InvalidArgumentError(name + TooLong(piece.text));
    if (!IsUtf8(piece.text)) return absl::InvalidArgumentError(name + " is not UTF-8");
    if (!texts.emplace(IsFound(piece), piece.text).second) {
      return absl::InvalidArgumentError(name + " is equal to one before it");
    }
    if (piece.kind == PieceKind::kByte && !model.byte_fallback) {
      return absl::InvalidArgumentError(name + " is a byte, but byte_fallback is off");
    }
    if (piece.kind != PieceKind::kUnknown) continue;
    if (unknown >= 0)
      return absl::InvalidArgumentError(name + " is a second unknown piece, expected one");
    unknown = static_cast<int32_t>(i);
  }
  return unknown >= 0 ? absl::OkStatus() : absl::InvalidArgumentError("it has no unknown piece");
}

absl::Status Vocabulary::FindBytes() {
  bytes.fill(-1);
  for (size_t i = 0; i < model.pieces.size(); ++i) {
    const Piece& piece = model.pieces[i];
    if (piece.kind != PieceKind::kByte) continue;
    const auto byte = ByteOf(piece.text);
    if (!byte)
      return absl::InvalidArgumentError("piece " + std::to_string(i) +
                                        " is no byte such as <0x41>");
    bytes[*byte] = static_cast<int32_t>(i);
  }
  if (std::count(bytes.begin(), bytes.end(), -1) == 0) return absl::OkStatus();
  return absl::InvalidArgumentError("byte_fallback is on, but there is not a piece for each byte");
}

void Vocabulary::Index() {
  std::vector<PieceTrie::Entry> all;
  std::vector<PieceTrie::Entry> own;
  least_score = FLT_MAX;
  most_score = FLT_MIN;
  for (size_t i = 0; i < model.pieces.size(); ++i) {
    const Piece& piece = model.pieces[i];
    if (piece.kind == PieceKind::kNormal) {
      least_score = std::min(least_score, piece.score);
      most_score = std::max(most_score, piece.score);
    }
    if (!IsFound(piece)) continue;
    all.emplace_back(piece.text, static_cast<int32_t>(i));
    if (piece.kind == PieceKind::kUserDefined) own.push_back(all.back());
    longest = std::max(longest, piece.text.size());
    size_t before = 0;
    for (size_t at = CharacterBytes(piece.text); at < piece.text.size();) {
      neighbours_.push_back(PairAt(piece.text, before, at));
      before = at;
      at += CharacterBytes(std::string_view(piece.text).substr(at));
    }
  }
  std::sort(neighbours_.begin(), neighbours_.end());
  neighbours_.erase(std::unique(neighbours_.begin(), neighbours_.end()), neighbours_.end());
  neighbours_.shrink_to_fit();
  found = PieceTrie(std::move(all));
  user_defined = PieceTrie(std::move(own));
}

int Vocabulary::ControlId(std::string_view text) const {
  for (size_t i = 0; i < model.pieces.size(); ++i) {
    const Piece& piece = model.pieces[i];
    if (piece.kind == PieceKind::kControl && piece.text == text) return static_cast<int>(i);
  }
  return -1;
}

bool Vocabulary::CanCut(std::string_view text, size_t at) const {
  if (model.method == PieceMethod::kWord) return text.substr(at).starts_with(kSpaceSymbol);
  const size_t before = CharacterBegin(text, at - 1);
  return !std::binary_search(neighbours_.begin(), neighbours_.end(), PairAt(text, before, at));
}

}  // namespace linserve
