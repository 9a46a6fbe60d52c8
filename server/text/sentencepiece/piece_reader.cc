#include "text/sentencepiece/piece_reader.h"

#include <algorithm>

#include "core/strings/utf8.h"

namespace linserve {
namespace {

// Pieces are chosen for so many bytes at once, or for fewer.
constexpr size_t kMostPieceBytes = 16 << 10;
constexpr size_t kFewPieceBytes = 2 << 10;

}  // namespace

PieceReader::PieceReader(const Vocabulary& pieces, const Normalizer& normalizer,
                         std::string_view text, bool places)
    : pieces_(pieces),
      finds_places_(places),
      normalized_(normalizer, text),
      look_at_(kFewPieceBytes) {}

absl::StatusOr<size_t> PieceReader::Step(TextTokens& tokens) {
  const size_t unread = normalized_.left();
  if (!begun_ || !normalized_.done()) {
    begun_ = true;
    absl::Status status =
        normalized_.Append(kFewPieceBytes, waiting_, finds_places_ ? &origins_ : nullptr);
    if (!status.ok()) return status;
  }
  const size_t ready = ReadyBytes();
  if (ready > 0) Encode(ready, tokens);
  return unread - normalized_.left() + ready;
}

// Returns how much of what waits has pieces that do not depend on what follows; 0: not known yet.
size_t PieceReader::ReadyBytes() {
  if (normalized_.done() && waiting_.size() <= kMostPieceBytes) return waiting_.size();
  if (waiting_.size() < look_at_) return 0;
  const size_t end = CharacterBegin(waiting_, std::min(waiting_.size() - 1, kMostPieceBytes));
  for (size_t at = end; at > 0; at = CharacterBegin(waiting_, at - 1)) {
    if (pieces_.CanCut(waiting_, at)) return at;
  }
  if (waiting_.size() > kMostPieceBytes) return end;
  // So looking takes time in proportion to the text.
  look_at_ = std::min(2 * waiting_.size(), kMostPieceBytes + 1);
  return 0;
}

void PieceReader::Encode(size_t bytes, TextTokens& tokens) {
  const std::string_view text = std::string_view(waiting_).substr(0, bytes);
  for (const ChosenPiece& piece : ChoosePieces(pieces_, text, score_)) {
    const size_t before = tokens.ids.size();
    Add(piece, tokens);
    if (!finds_places_) continue;
    AddPlaces(before, static_cast<size_t>(piece.text.data() - text.data()), piece.text.size(),
              tokens);
  }
  waiting_.erase(0, bytes);
  if (finds_places_) {
    origins_.erase(origins_.begin(), origins_.begin() + static_cast<std::ptrdiff_t>(bytes));
  }
  look_at_ = kFewPieceBytes;
}

void PieceReader::Add(const ChosenPiece& piece, TextTokens& tokens) {
  const bool unknown = piece.id == pieces_.unknown;
  has_pieces_ = true;
  if (unknown && pieces_.model.byte_fallback) {
    for (const char byte : piece.text) {
      tokens.ids.push_back(pieces_.bytes[static_cast<unsigned char>(byte)]);
    }
  } else if (!unknown || !after_unknown_) {  // what is unknown is one token together
    tokens.ids.push_back(piece.id);
  }
  after_unknown_ = unknown;
}

// Adds the place of a piece, which is `bytes` of what waits, and became the last ids.
void PieceReader::AddPlaces(size_t ids_before, size_t begin, size_t bytes, TextTokens& tokens) {
  const size_t next = begin + bytes;
  const TokenPlace place{.begin = origins_[begin],
                         .end = next < origins_.size() ? origins_[next] : normalized_.end()};
  if (tokens.ids.size() == ids_before) {  // it went on with what is unknown
    tokens.places.back().end = place.end;
    return;
  }
  // Where it became bytes, the last of them stands for the character.
  while (tokens.places.size() + 1 < tokens.ids.size()) {
    tokens.places.push_back({.begin = place.begin, .end = place.begin});
  }
  tokens.places.push_back(place);
}

}  // namespace linserve
