#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>

#include "attention/products/block_math.h"

namespace linserve {

// These are matrix products of blocks of rows: small ones, of operands that the core's own cache
// holds, so that a chain of steps runs over a block without going to memory in between. They do not
// pack their operands at each call as a product of whole matrices does.

// Computes c [m, n] = a [m, k] · b [k, n], or with `add` c += a · b, on the calling thread.
void BlockProduct(int64_t m, int64_t n, int64_t k, const RowBlock& a, const RowBlock& b,
                  const RowBlock& c, bool add);

// Says whether BlockProduct() has kernels of its own for this CPU. Where it has none, it calls
// LibTorch's product.
bool HasBlockKernels();

// Views the rows from `row` on. REQUIRES: F32 on the CPU, the last axis contiguous.
RowBlock BlockOf(const at::Tensor& rows, int64_t row = 0);

// Sets those of `count` rows to zeros whose hidden[first + i], BOOL, is true. An undefined `hidden`
// hides none.
void HideRows(const at::Tensor& hidden, int64_t first, int64_t count, int64_t width,
              const RowBlock& rows);

// A block has at most so many rows: their inputs, products and outputs fit a core's own cache.
constexpr int64_t kBlockRows = 128;
// Rows of its transpose are so far apart, as Transpose() is fast with.
constexpr int64_t kTransposedStride = OddLines(kBlockRows);

// Returns the number of threads that compute blocks side by side: those of the replica, or one
// where the caller computes a part already.
int64_t BlockThreads();

// Calls function(i, scratch) for i from `first` up to `end`, side by side. Each thread has
// `scratch_elements` of scratch, uninitialised.
void ForSideBySide(int64_t first, int64_t end, int64_t scratch_elements,
                   const std::function<void(int64_t i, float* scratch)>& function);

// Calls function(begin, count, scratch) for blocks of `rows` rows, side by side.
void ForBlocks(int64_t rows, int64_t scratch_elements,
               const std::function<void(int64_t begin, int64_t count, float* scratch)>& function);

// Calls ForBlocks() for the rows of a layer slice by slice (slices.h).
void ForSlicedBlocks(
    int64_t rows, int64_t scratch_elements,
    const std::function<void(int64_t begin, int64_t count, float* scratch)>& function);

// Computes rows slice by slice, since they never need to exist as a whole. A thread alone takes one
// block at a time and finds it in its cache again; several threads meet after each slice.
class RowSlices {
 public:
  // Writes `count` rows from `row` on to `out`.
  using Fill = std::function<void(int64_t row, int64_t count, const RowBlock& out, float* scratch)>;
  // Reads the `count` rows of a slice, the first one of which is `row`.
  using Use = std::function<void(int64_t row, int64_t count, const RowBlock& rows)>;

  // Calls `fill` for blocks of `rows` rows of `width`, side by side and with scratch of so many
  // elements, and then `use` for the slice that they make, in order.
  void ForEach(int64_t rows, int64_t width, int64_t scratch_elements, const Fill& fill,
               const Use& use);

 private:
  at::Tensor rows_;
};

}  // namespace linserve
