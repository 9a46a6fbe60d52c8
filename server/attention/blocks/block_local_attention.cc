#include "attention/blocks/block_local_attention.h"

#include <algorithm>

#include "attention/products/block_product.h"

namespace linserve {
namespace {

int64_t BlocksOf(int64_t rows) { return (rows + kBlockRows - 1) / kBlockRows; }

}  // namespace

BlockLocalAttention::BlockLocalAttention(const Sizes& sizes)
    : sizes_(sizes),
      attention_({.heads = sizes.heads,
                  .dim_head = sizes.dim_head,
                  .products = sizes.products,
                  .after = sizes.causal ? 0 : -1}) {}

void BlockLocalAttention::Attend(const Rows& rows) const {
  const int64_t window = std::min(sizes_.window, rows.count);
  const int64_t windows = (rows.count + window - 1) / window;
  const int64_t blocks = BlocksOf(window);
  const int64_t scratch_elements = BlocksOf(3 * window) * attention_.KeyElements(kBlockRows) +
                                   BlockAttention::kReadableRows * sizes_.heads * sizes_.dim_head +
                                   attention_.ScratchElements();
  ForSideBySide(0, windows * blocks, scratch_elements, [&](int64_t i, float* scratch) {
    const int64_t begin = i / blocks * window;
    const int64_t row = begin + i % blocks * kBlockRows;
    const int64_t end = std::min({row + kBlockRows, begin + window, rows.count});
    if (row < end) AttendBlock(rows, window, row, end - row, scratch);
  });
}

void BlockLocalAttention::AttendBlock(const Rows& rows, int64_t window, int64_t row, int64_t count,
                                      float* scratch) const {
  const int64_t inner = sizes_.heads * sizes_.dim_head;
  const int64_t own = row / window * window;  // where the window begins
  const int64_t first = std::max<int64_t>(0, own - window);
  const int64_t end = sizes_.causal ? row + count : std::min(rows.count, own + 2 * window);
  const RowBlock queries{scratch, inner};
  float* memory = queries.Rows(BlockAttention::kReadableRows).data;
  float* rest = memory + BlocksOf(3 * window) * attention_.KeyElements(kBlockRows);
  for (int64_t key = first; key < end; key += kBlockRows) {
    attention_.LayOut(rows.keys.Rows(key), rows.values.Rows(key), std::min(kBlockRows, end - key),
                      memory + (key - first) / kBlockRows * attention_.KeyElements(kBlockRows),
                      rest);
  }
  // Others write the rows behind these, up to which the kernels read.
  for (int64_t i = 0; i < count; ++i) {
    std::copy_n(rows.queries.Rows(row + i).data, inner, queries.Rows(i).data);
  }
  BlockAttention::Scores scores;
  if (rows.key_scores != nullptr) scores.of_keys = rows.key_scores + first;
  attention_.Attend(queries, row - first, count, {memory, end - first, kBlockRows}, scores,
                    rows.queries.Rows(row), rest);
}

}  // namespace linserve
