#include "core/pieces.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

namespace linserve {

Pieces::Pieces(std::vector<Piece> pieces, std::shared_ptr<const void> owner)
    : pieces_(std::move(pieces)), owner_(std::move(owner)) {
  for (const Piece& piece : pieces_) size_ += piece.size;
}

void Pieces::ForRuns(size_t offset, int64_t count, size_t width, VisitRun visit) const {
  std::array<std::byte, 8> split;  // what there is of an element that goes on in the next piece
  size_t held = 0;
  size_t left = static_cast<size_t>(count) * width;
  for (const Piece& piece : pieces_) {
    if (offset >= piece.size) {
      offset -= piece.size;
      continue;
    }
    const std::byte* bytes = piece.bytes + std::exchange(offset, 0);
    size_t size = std::min(left, static_cast<size_t>(piece.bytes + piece.size - bytes));
    left -= size;
    if (held > 0) {
      const size_t rest = std::min(width - held, size);
      std::memcpy(split.data() + held, bytes, rest);
      held += rest;
      bytes += rest;
      size -= rest;
      if (held < width) continue;
      if (!visit(split.data(), 1)) return;
    }
    const size_t whole = size / width;
    if (whole > 0 && !visit(bytes, static_cast<int64_t>(whole))) return;
    held = size % width;
    std::memcpy(split.data(), bytes + whole * width, held);
  }
}

const std::byte* Pieces::Joined() const {
  if (one()) return pieces_[0].bytes;
  std::call_once(once_, [this] {
    joined_.reset(new std::byte[size_]);
    std::byte* target = joined_.get();
    for (const Piece& piece : pieces_) target = std::copy_n(piece.bytes, piece.size, target);
  });
  return joined_.get();
}

}  // namespace linserve
