#include "models/linear_attention_transformer/images/image_blocks.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "attention/blocks/block_linear_attention.h"
#include "attention/products/block_product.h"
#include "attention/rows/aten.h"

namespace linserve::linear_attention_transformer {
namespace {

// Returns the elements of scratch that Pixels() takes for a block.
int64_t PixelElements(int64_t channels) { return kBlockRows * OddLines(channels); }

// Lays a block of an image's pixels out as rows of channels.
RowBlock Pixels(const at::Tensor& image, int64_t first, int64_t count, float* scratch) {
  const int64_t channels = image.size(0);
  const RowBlock pixels{scratch, OddLines(channels)};
  const RowBlock from = BlockOf(image);
  Transpose({from.data + first, from.stride}, channels, count, pixels);
  return pixels;
}

}  // namespace

void ImageByBlocks::Compute(const at::Tensor& x, const at::Tensor& context,
                            const at::Tensor& result) const {
  const int64_t key_width = to_k.outputs;
  const int64_t value_width = to_v.outputs;
  const int64_t dim_head = key_width / heads;
  BlockLinearAttention attention({.heads = heads,
                                  .dim_head = dim_head,
                                  .value_width = value_width / heads,
                                  .softmax_queries = softmax_queries},
                                 std::sqrt(static_cast<double>(dim_head)));
  RowSlices slices;
  const auto add_keys = [&](const at::Tensor& image, float factor) {
    const std::vector<float> factors(kBlockRows, factor);
    slices.ForEach(
        image.size(1), key_width + value_width, PixelElements(image.size(0)),
        [&](int64_t first, int64_t count, const RowBlock& out, float* scratch) {
          const RowBlock pixels = Pixels(image, first, count, scratch);
          to_k.Set(out, pixels, count);
          if (factor != 1) ScaleRows(out, count, key_width, factors.data());
          to_v.Set(out.Columns(key_width), pixels, count);
        },
        [&](int64_t, int64_t count, const RowBlock& keys) {
          attention.Add(keys, keys.Columns(key_width), count);
        });
  };
  attention.Begin();
  add_keys(x, 1);
  if (context.defined()) add_keys(context, static_cast<float>(1 / scale));
  attention.Finish();

  const int64_t elements = std::max(PixelElements(to_q.inputs), kBlockRows * to_out.outputs) +
                           kBlockRows * (key_width + value_width) + attention.ScratchElements();
  ForSlicedBlocks(x.size(1), elements, [&](int64_t first, int64_t count, float* scratch) {
    const RowBlock queries{scratch, key_width};
    const RowBlock attended{queries.Rows(kBlockRows).data, value_width};
    float* rest = attended.Rows(kBlockRows).data;
    float* own = rest + attention.ScratchElements();
    to_q.Set(queries, Pixels(x, first, count, own), count);
    attention.Attend(queries, count, attended, rest);
    const RowBlock made{own, to_out.outputs};
    to_out.Set(made, attended, count);
    const RowBlock to = BlockOf(result);
    Transpose(made, count, to_out.outputs, {to.data + first, to.stride});
  });
}

}  // namespace linserve::linear_attention_transformer
