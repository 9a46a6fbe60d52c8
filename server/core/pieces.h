#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "absl/functional/function_ref.h"

namespace linserve {

struct Piece {
  const std::byte* bytes = nullptr;
  size_t size = 0;
};

// Some elements one after another, at no alignment, and how many they are. False: no more of them.
using VisitRun = absl::FunctionRef<bool(const std::byte* run, int64_t count)>;

// Immutable bytes that follow one another but lie in several places: as a message does that was
// received. Thread-safe.
class Pieces {
 public:
  // `owner` keeps the bytes of all. REQUIRES: there are some.
  Pieces(std::vector<Piece> pieces, std::shared_ptr<const void> owner);

  bool one() const { return pieces_.size() == 1; }

  // Visits `count` elements of `width` bytes, at most 8, from byte `offset` on: in runs as long as
  // they lie together, and an element that lies in two places by itself. REQUIRES: they are there.
  void ForRuns(size_t offset, int64_t count, size_t width, VisitRun visit) const;

  // All of them in one place: a copy that the first call makes, unless they are.
  const std::byte* Joined() const;

 private:
  const std::vector<Piece> pieces_;
  const std::shared_ptr<const void> owner_;
  std::vector<size_t> ends_;  // of each piece, counted from the first byte of all
  mutable std::once_flag once_;
  mutable std::unique_ptr<std::byte[]> joined_;
};

}  // namespace linserve
