#include "core/pieces.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

namespace linserve {

Pieces::Pieces(std::vector<Piece> pieces, std::shared_ptr<const void> owner)
    : pieces_(std::move(pieces)), owner_(std::move(owner)) {
  size_t end = 0;
  for (const Piece& piece : pieces_) ends_.push_back(end += piece.size);
}

void Pieces::ForRuns(size_t offset, int64_t count, size_t width, VisitRun visit) const {
  std::array<std::byte, 8> split;  // what there is of an element that goes on in the next piece
  size_t held = 0;
  size_t left = static_cast<size_t>(count) * width;
  const auto first =
      static_cast<size_t>(std::upper_bound(ends_.begin(), ends_.end(), offset) - ends_.begin());
  for (size_t i = first; left > 0; ++i) {
    const size_t skipped = i == first ? pieces_[i].size - (ends_[i] - offset) : 0;
    const std::byte* bytes = pieces_[i].bytes + skipped;
    size_t size = std::min(left, pieces_[i].size - skipped);
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
    joined_.reset(new std::byte[ends_.back()]);
    std::byte* target = joined_.get();
    for (const Piece& piece : pieces_) target = std::copy_n(piece.bytes, piece.size, target);
  });
  return joined_.get();
}

}  // namespace linserve
