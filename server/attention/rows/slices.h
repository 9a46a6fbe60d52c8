#pragma once

#include <cstdint>
#include <functional>

namespace linserve {

// Cuts the computations that its thread makes while it lives into slices: between two of them the
// thread can look up: who still waits, and what is short and could be computed meanwhile. Scopes
// nest; what several threads compute side by side is not cut.
class SliceScope {
 public:
  // Is told how many rows are through the layer since the last call. It may compute something else,
  // and may throw to give the computation up.
  using Between = std::function<void(int64_t rows)>;

  // A slice is `rows` rows long.
  SliceScope(int64_t rows, Between between);
  ~SliceScope();
  SliceScope(const SliceScope&) = delete;
  SliceScope& operator=(const SliceScope&) = delete;

 private:
  friend void ForSlices(int64_t rows, const std::function<void(int64_t, int64_t)>& function);
  friend void RowsRead(int64_t rows);
  friend void RowsDone(int64_t rows);

  void Pass(int64_t rows, bool done);

  const int64_t rows_;
  const Between between_;
  SliceScope* const outer_;
  int64_t passed_ = 0;  // since the last slice
  int64_t done_ = 0;
};

// A layer calls these at places where it can wait: so many rows more were read, for what comes of
// all of them, or are through the layer. The slice may end there.
void RowsRead(int64_t rows);
void RowsDone(int64_t rows);

// Calls function(begin, count) for [0, rows) slice by slice, and tells that those rows are done.
void ForSlices(int64_t rows, const std::function<void(int64_t begin, int64_t count)>& function);

}  // namespace linserve
