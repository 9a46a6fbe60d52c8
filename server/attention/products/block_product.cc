#include "attention/products/block_product.h"

#include <ATen/native/CPUBlas.h>

#include <algorithm>
#include <array>

#include "attention/products/avx512_product.h"
#include "attention/rows/aten.h"
#include "attention/rows/slices.h"
#include "attention/rows/threads.h"

namespace linserve {
namespace {

// LibTorch makes a kernel for each shape, which costs 50 µs and some memory. So odd numbers of rows
// and columns are computed as a multiple of this many and a rest.
constexpr int64_t kGranule = 16;

void Kernel(int64_t m, int64_t n, int64_t k, const RowBlock& a, const RowBlock& b,
            const RowBlock& c, bool add) {
  at::native::cpublas::brgemm(m, n, k, a.stride, b.stride, c.stride, add, a.data, b.data, c.data,
                              /*is_vnni=*/false);
}

bool TryF32Kernel() {
  std::array<float, 2> a = {2, 3};
  std::array<float, 2> b = {5, 7};
  float c = 0;
  try {
    Kernel(1, 1, 2, {a.data(), 2}, {b.data(), 1}, {&c, 1}, /*add=*/false);
  } catch (const c10::Error&) {
    return false;  // no AVX2, or another kind of CPU
  }
  return c == 31;
}

void ByGranules(int64_t m, int64_t n, int64_t k, const RowBlock& a, const RowBlock& b,
                const RowBlock& c, bool add) {
  const int64_t rest = m % kGranule;
  const int64_t most = m - rest;
  if (most > 0) Kernel(most, n, k, a, b, c, add);
  if (rest > 0) Kernel(rest, n, k, a.Rows(most), b, c.Rows(most), add);
}

at::Tensor Matrix(const RowBlock& block, int64_t rows, int64_t columns) {
  return at::from_blob(block.data, {rows, columns}, {block.stride, 1});
}

// Returns the number of equal blocks of at most kBlockRows rows, such that no thread is without
// one.
int64_t Blocks(int64_t rows, int64_t threads) {
  constexpr int64_t kFewestRows = 16;
  const int64_t needed = (rows + kBlockRows - 1) / kBlockRows;
  const int64_t wanted = (needed + threads - 1) / threads * threads;
  return std::clamp(rows / kFewestRows, needed, wanted);
}

}  // namespace

int64_t BlockThreads() { return at::get_num_threads(); }

bool HasBlockKernels() {
  static const bool has = HasAvx512() || TryF32Kernel();
  return has;
}

void BlockProduct(int64_t m, int64_t n, int64_t k, const RowBlock& a, const RowBlock& b,
                  const RowBlock& c, bool add) {
  if (HasAvx512()) return BlockProductWithAvx512(m, n, k, a, b, c, add);
  if (!HasBlockKernels()) {
    at::Tensor result = Matrix(c, m, n);
    const at::Tensor left = Matrix(a, m, k);
    const at::Tensor right = Matrix(b, k, n);
    add ? at::addmm_out(result, result, left, right) : at::mm_out(result, left, right);
    return;
  }
  const int64_t rest = k > kGranule ? k % kGranule : 0;
  const int64_t most = k - rest;
  ByGranules(m, n, most, a, b, c, add);
  if (rest > 0) ByGranules(m, n, rest, a.Columns(most), b.Rows(most), c, /*add=*/true);
}

RowBlock BlockOf(const at::Tensor& rows, int64_t row) {
  // Inputs are read only, and what reads them takes them for that.
  return {const_cast<float*>(rows.const_data_ptr<float>()) + row * rows.stride(0), rows.stride(0)};
}

void HideRows(const at::Tensor& hidden, int64_t first, int64_t count, int64_t width,
              const RowBlock& rows) {
  if (!hidden.defined()) return;
  const bool* mask = hidden.const_data_ptr<bool>() + first;
  for (int64_t i = 0; i < count; ++i) {
    if (mask[i]) std::fill_n(rows.Rows(i).data, width, 0.0F);
  }
}

void ForSideBySide(int64_t first, int64_t end, int64_t scratch_elements,
                   const std::function<void(int64_t i, float* scratch)>& function) {
  OnThreads(end - first, [&](LoopTurns& turns) {
    const at::Tensor scratch = at::empty({scratch_elements}, at::kFloat);
    for (int64_t i = 0; turns.Next(i);) function(first + i, scratch.mutable_data_ptr<float>());
  });
}

void ForBlocks(int64_t rows, int64_t scratch_elements,
               const std::function<void(int64_t begin, int64_t count, float* scratch)>& function) {
  if (rows == 0) return;
  const int64_t blocks = Blocks(rows, BlockThreads());
  ForSideBySide(0, blocks, scratch_elements, [&](int64_t block, float* scratch) {
    const int64_t begin = rows * block / blocks;
    function(begin, rows * (block + 1) / blocks - begin, scratch);
  });
}

void ForSlicedBlocks(
    int64_t rows, int64_t scratch_elements,
    const std::function<void(int64_t begin, int64_t count, float* scratch)>& function) {
  ForSlices(rows, [&](int64_t first, int64_t some) {
    ForBlocks(some, scratch_elements, [&](int64_t begin, int64_t count, float* scratch) {
      function(first + begin, count, scratch);
    });
  });
}

void RowSlices::ForEach(int64_t rows, int64_t width, int64_t scratch_elements, const Fill& fill,
                        const Use& use) {
  constexpr int64_t kBlocksOfThread = 2;  // where several meet
  const int64_t threads = BlockThreads();
  const int64_t most = threads == 1 ? kBlockRows : threads * kBlocksOfThread * kBlockRows;
  const int64_t at_once = std::min(rows, most);
  if (!rows_.defined() || rows_.numel() < at_once * width) {
    rows_ = at::empty({at_once * width}, at::kFloat);
  }
  const RowBlock slice{rows_.mutable_data_ptr<float>(), width};
  for (int64_t first = 0; first < rows; first += at_once) {
    const int64_t some = std::min(at_once, rows - first);
    ForBlocks(some, scratch_elements, [&](int64_t begin, int64_t count, float* scratch) {
      fill(first + begin, count, slice.Rows(begin), scratch);
    });
    use(first, some, slice);
    RowsRead(some);
  }
}

}  // namespace linserve
