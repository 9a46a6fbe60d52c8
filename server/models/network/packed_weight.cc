#include "models/network/packed_weight.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "attention/products/amx_product.h"
#include "attention/products/avx512_product.h"
#include "attention/products/bf16_product.h"
#include "attention/products/block_product.h"
#include "attention/products/int8_product.h"
#include "attention/products/kernel_rows.h"
#include "attention/rows/aten.h"
#include "attention/rows/threads.h"

namespace linserve {
namespace {

// A panel has so many columns, and so many of its rows are multiplied at once, so that these stay
// in the core's caches (64 · 384 numbers of F32 are 96 KiB) beside the block. LibTorch's kernels in
// F32 want half of it in the first cache. AMX multiplies half as many at once, which so lie one
// after the other. Without kernels for blocks, one product of everything is fastest.
constexpr int64_t kColumns = 64;
constexpr int64_t kAmxColumns = 32;
constexpr int64_t kLibTorchF32Columns = 32;
constexpr int64_t kPanelRows = 384;
constexpr int64_t kPair = 2;

struct alignas(64) CacheLine {
  std::byte bytes[64];
};

// Returns memory of the thread, which is large enough after the first blocks.
template <typename T>
T* ThreadMemory(int64_t elements) {
  static thread_local std::vector<CacheLine> memory;
  const size_t lines = static_cast<size_t>(elements) * sizeof(T) / sizeof(CacheLine) + 1;
  if (memory.size() < lines) memory.resize(lines);
  return reinterpret_cast<T*>(memory.data());
}

// Lays weight [outputs, inputs] out in panels of `width` columns, in which `group` inputs of a
// column are neighbours.
at::Tensor InPanels(const at::Tensor& weight, int64_t width, int64_t group) {
  const int64_t outputs = weight.size(0);
  const int64_t inputs = weight.size(1);
  at::Tensor panels = at::empty({outputs * inputs}, weight.options());
  for (int64_t column = 0; column < outputs; column += width) {
    const int64_t columns = std::min(width, outputs - column);
    panels.narrow(0, column * inputs, columns * inputs)
        .view({inputs / group, columns, group})
        .copy_(weight.narrow(0, column, columns)
                   .view({columns, inputs / group, group})
                   .transpose(0, 1));
  }
  return panels;
}

at::Tensor WithInputs(const at::Tensor& weight, int64_t inputs) {
  return at::constant_pad_nd(weight, {0, inputs - weight.size(1)}).contiguous();
}

}  // namespace

std::vector<DType> ProductTypes() {
  std::vector<DType> types = {DType::kF32};
  if (HasBf16Kernels()) types.push_back(DType::kBF16);
  if (HasInt8Kernels()) types.push_back(DType::kI8);
  return types;
}

PackedWeight::PackedWeight(const at::Tensor& weight, DType products)
    : inputs_(weight.size(1)), depth_(inputs_), outputs_(weight.size(0)), products_(products) {
  const bool rounded = weight.scalar_type() == at::kBFloat16 && products == DType::kBF16;
  if (!weight.is_cpu() || (weight.scalar_type() != at::kFloat && !rounded)) return;
  if (products == DType::kI8 && inputs_ > kMostInt8Depth) products_ = DType::kF32;
  if (products_ == DType::kF32) {
    panels_ = InPanels(weight, Width(), 1);
  } else if (products_ == DType::kBF16) {
    depth_ = RoundUp(inputs_, kPair);
    panels_ = InPanels(WithInputs(weight.to(at::kBFloat16), depth_), Width(), kPair);
  } else {
    depth_ = RoundUp(inputs_, kInt8Group);
    constexpr double kSteps = 127;
    const at::Tensor most = weight.abs().amax(1);
    const at::Tensor steps = at::where(most > 0, kSteps / most, 0);
    const at::Tensor bytes = (weight * steps.unsqueeze(1)).round_().to(at::kChar);
    panels_ = InPanels(WithInputs(bytes, depth_), Width(), kInt8Group);
    scales_ = most.div_(kSteps).contiguous();
    totals_ = bytes.sum(1, /*keepdim=*/false, at::kInt).mul(scales_);
  }
}

int64_t PackedWeight::Width() const {
  if (products_ != DType::kF32) return HasAmx() ? kAmxColumns : kColumns;
  if (HasAvx512()) return kColumns;
  return HasBlockKernels() ? kLibTorchF32Columns : outputs_;
}

void PackedWeight::Multiply(const RowBlock& rows, int64_t count, const RowBlock& out, bool add,
                            const float* bias, const MakeRows& make) const {
  if (products_ == DType::kI8) return MultiplyInt8(rows, count, out, add, bias, make);
  if (products_ == DType::kBF16) {
    MultiplyBf16(rows, count, out, add, make);
  } else {
    if (make) make(0, count);
    MultiplyF32(rows, count, out, add);
  }
  if (bias != nullptr) AddBias(out, count, outputs_, bias);
}

void PackedWeight::ForFewRows(int64_t count, const MakeRows& make, const MakeRows& round) const {
  constexpr int64_t kElements = 4096;  // of F32, half of a small first cache
  const int64_t most = std::max<int64_t>(1, kElements / std::max<int64_t>(inputs_, 1));
  for (int64_t row = 0; row < count; row += most) {
    const int64_t some = std::min(most, count - row);
    if (make) make(row, some);
    round(row, some);
  }
}

// The few rows of a short sequence are one block, and take as long as the weights take to come from
// memory: each thread reads a share of those.
void PackedWeight::ForColumns(
    const std::function<void(int64_t first, int64_t end)>& multiply) const {
  constexpr int64_t kBytesOfShare = 32 << 10;
  const int64_t width = Width();
  const int64_t panels = (outputs_ + width - 1) / width;
  const int64_t shares = std::min<int64_t>(
      {panels, BlockThreads(), static_cast<int64_t>(panels_.nbytes()) / kBytesOfShare});
  if (shares <= 1) return multiply(0, outputs_);
  OnThreads(shares, [&](LoopTurns& turns) {
    for (int64_t i = 0; turns.Next(i);) {
      multiply(panels * i / shares * width, std::min(panels * (i + 1) / shares * width, outputs_));
    }
  });
}

void PackedWeight::MultiplyF32(const RowBlock& rows, int64_t count, const RowBlock& out,
                               bool add) const {
  auto* panels = const_cast<float*>(panels_.const_data_ptr<float>());
  const int64_t width = Width();
  const int64_t most = HasBlockKernels() ? kPanelRows : inputs_;
  ForColumns([&](int64_t first, int64_t end) {
    for (int64_t row = 0; row < inputs_; row += most) {
      const int64_t depth = std::min(most, inputs_ - row);
      for (int64_t column = first; column < end; column += width) {
        const int64_t columns = std::min(width, end - column);
        const RowBlock panel{panels + column * inputs_ + row * columns, columns};
        BlockProduct(count, columns, depth, rows.Columns(row), panel, out.Columns(column),
                     add || row > 0);
      }
    }
  });
}

void PackedWeight::MultiplyBf16(const RowBlock& rows, int64_t count, const RowBlock& out, bool add,
                                const MakeRows& make) const {
  const int64_t stride = kPair * OddLines(depth_ / kPair);
  const Bf16Block rounded{ThreadMemory<c10::BFloat16>(WholeKernelRows(count) * stride), stride};
  ForFewRows(count, make, [&](int64_t row, int64_t some) {
    ToBf16(rows.Rows(row), some, inputs_, rounded.Rows(row));
  });
  for (int64_t i = 0; i < count && depth_ > inputs_; ++i) rounded.Rows(i).data[inputs_] = 0;
  auto* panels = const_cast<c10::BFloat16*>(panels_.const_data_ptr<c10::BFloat16>());
  const int64_t width = Width();
  ForColumns([&](int64_t first, int64_t end) {
    const AmxScope tiles;
    for (int64_t row = 0; row < depth_; row += kPanelRows) {
      const int64_t depth = std::min(kPanelRows, depth_ - row);
      for (int64_t column = first; column < end; column += width) {
        const int64_t columns = std::min(width, end - column);
        const Bf16Block panel{panels + column * depth_ + row * columns, kPair * columns};
        Bf16Product(count, columns, depth, rounded.Columns(row), panel, out.Columns(column),
                    add || row > 0);
      }
    }
  });
}

void PackedWeight::MultiplyInt8(const RowBlock& rows, int64_t count, const RowBlock& out, bool add,
                                const float* bias, const MakeRows& make) const {
  static constexpr float kNone[kColumns] = {};
  const int64_t padded = WholeKernelRows(count);
  const int64_t stride = OddLines(depth_ / kInt8Group);
  auto* steps = ThreadMemory<float>(padded * (2 + stride));
  const RowScales scales{.steps = steps, .lowest = steps + padded};
  const ByteBlock bytes{reinterpret_cast<uint8_t*>(scales.lowest + padded), kInt8Group * stride};
  ForFewRows(count, make, [&](int64_t row, int64_t some) {
    ToInt8(rows.Rows(row), some, inputs_, bytes.Rows(row),
           {scales.steps + row, scales.lowest + row});
  });
  const auto* panels = panels_.const_data_ptr<int8_t>();
  const int64_t width = Width();
  ForColumns([&](int64_t first, int64_t end) {
    const AmxScope tiles;
    for (int64_t column = first; column < end; column += width) {
      const int64_t columns = std::min(width, end - column);
      const ColumnScales of_columns{scales_.const_data_ptr<float>() + column,
                                    totals_.const_data_ptr<float>() + column,
                                    bias != nullptr ? bias + column : kNone};
      Int8Product({count, columns, depth_, bytes, scales, panels + column * depth_, of_columns},
                  out.Columns(column), add);
    }
  });
}

}  // namespace linserve
