#include "batching/gather.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "core/threads/side_by_side.h"

namespace linserve {
namespace {

// So many elements are copied by a thread at once, and so many by one thread alone: to wake
// another thread takes as long as to copy some ten thousand.
constexpr int64_t kElementsAtOnce = int64_t{1} << 16;
constexpr int64_t kElementsOfThread = int64_t{1} << 19;
constexpr int64_t kMostThreads = 8;  // they copy faster than a GPU is given it

DType BatchDType(InputKind kind) {
  switch (kind) {
    case InputKind::kFloat:
      return DType::kF32;
    case InputKind::kToken:
      return DType::kI64;
    case InputKind::kMask:
      return DType::kBool;
    case InputKind::kAttentionMask:
      return DType::kF32;
  }
  return DType::kF32;
}

// Returns what is added to scores: BOOL hides by -inf, floats are already what is added.
void ScoresOf(const std::byte* hidden, int64_t count, float* target) {
  for (int64_t i = 0; i < count; ++i) {
    target[i] = hidden[i] != std::byte{0} ? -std::numeric_limits<float>::infinity() : 0.0F;
  }
}

// Is a share of what is gathered: neighbouring elements.
struct Share {
  DType from;
  const std::byte* source;
  int64_t count;
  std::byte* target;
};

void CopyFloats(const Share& share, InputKind kind, float* target) {
  if (kind == InputKind::kAttentionMask && share.from == DType::kBool) {
    ScoresOf(share.source, share.count, target);
  } else {
    ConvertToFloat(share.from, share.source, share.count, target);
  }
}

// Copies numbers through wide ones: read(some, numbers) makes these of a part of the share, and
// narrow(number) what is written.
template <typename Wide, typename Read, typename Narrow>
void CopyThrough(Share share, const Read& read, const Narrow& narrow) {
  using Target = std::invoke_result_t<Narrow, Wide>;
  constexpr int64_t kNumbers = 1024;
  std::array<Wide, kNumbers> numbers;
  while (share.count > 0) {
    Share some = share;
    some.count = std::min(kNumbers, share.count);
    read(some, numbers.data());
    auto* target = reinterpret_cast<Target*>(share.target);
    std::transform(numbers.begin(), numbers.begin() + some.count, target, narrow);
    share.source += static_cast<size_t>(some.count) * ByteSize(share.from);
    share.target += static_cast<size_t>(some.count) * sizeof(Target);
    share.count -= some.count;
  }
}

template <typename Round>
void CopyRounded(const Share& share, InputKind kind, const Round& round) {
  CopyThrough<float>(
      share, [kind](const Share& some, float* floats) { CopyFloats(some, kind, floats); }, round);
}

// Token ids are less than a vocabulary, which I32 can count.
void CopyTokens(const Share& share) {
  CopyThrough<int64_t>(
      share,
      [](const Share& some, int64_t* ids) {
        ConvertToInt64(some.from, some.source, some.count, ids);
      },
      [](int64_t id) { return static_cast<int32_t>(id); });
}

// Masks are 0 and 1 in any type.
void CopyMask(const Share& share) {
  if (share.from == DType::kBool) {
    std::memcpy(share.target, share.source, static_cast<size_t>(share.count));
    return;
  }
  CopyThrough<int64_t>(
      share,
      [](const Share& some, int64_t* numbers) {
        ConvertToInt64(some.from, some.source, some.count, numbers);
      },
      [](int64_t number) { return number != 0; });
}

void Copy(const Share& share, InputKind kind, DType dtype) {
  switch (dtype) {
    case DType::kI64:
      return ConvertToInt64(share.from, share.source, share.count,
                            reinterpret_cast<int64_t*>(share.target));
    case DType::kI32:
      return CopyTokens(share);
    case DType::kBF16:
      return CopyRounded(share, kind, [](float number) { return FloatToBFloat16(number); });
    case DType::kF16:
      return CopyRounded(share, kind, [](float number) { return FloatToHalf(number); });
    case DType::kF32:
      return CopyFloats(share, kind, reinterpret_cast<float*>(share.target));
    case DType::kBool:
      return CopyMask(share);
    default:
      std::memcpy(share.target, share.source, static_cast<size_t>(share.count));
  }
}

// Returns the shape of the input in one item; its lengths along all axes but a laid-out one are
// equal in all items of the batch.
Shape FullShape(const InputSpec& spec, const Tensor& tensor) {
  Shape shape = tensor.shape();
  if (shape.size() < spec.axes.size()) shape.insert(shape.begin(), spec.axes[0].size);
  return shape;
}

}  // namespace

Tensor Gather(const InputSpec& spec, const AxisLayout& layout,
              const std::vector<const Item*>& items, const TensorAllocator& allocate) {
  const bool laid_out = !spec.axes.empty() && spec.axes[0].letter != '\0';
  Shape shape = FullShape(spec, items[0]->inputs.at(spec.name));
  if (laid_out) shape.erase(shape.begin());
  const DType wanted = BatchDType(spec.kind);
  const int64_t row_elements = ElementCount(shape);
  shape.insert(shape.begin(), layout.rows);
  const Tensor& first = items[0]->inputs.at(spec.name);
  const bool is_batch = items.size() == 1 && layout.padded_length == 0 && first.dtype() == wanted &&
                        first.elements() == ElementCount(shape);
  if (is_batch && !allocate) return first.Reshaped(std::move(shape));
  auto [tensor, bytes] = allocate ? allocate(wanted, std::move(shape))
                                  : Tensor::AllocateUnfilled(wanted, std::move(shape));
  if (layout.padded_length > 0) std::memset(bytes, 0, tensor.byte_size());
  const size_t size = ByteSize(tensor.dtype());
  std::vector<Share> shares;
  for (size_t i = 0; i < items.size(); ++i) {
    const Tensor& source = items[i]->inputs.at(spec.name);
    std::byte* target = bytes + static_cast<size_t>(layout.starts[i] * row_elements) * size;
    const bool broadcast = source.shape().size() < spec.axes.size();
    const int64_t copies = broadcast ? spec.axes[0].size : 1;
    for (int64_t copy = 0; copy < copies; ++copy) {
      for (int64_t element = 0; element < source.elements(); element += kElementsAtOnce) {
        const int64_t count = std::min(kElementsAtOnce, source.elements() - element);
        shares.push_back({source.dtype(),
                          source.bytes() + static_cast<size_t>(element) * ByteSize(source.dtype()),
                          count, target});
        target += static_cast<size_t>(count) * size;
      }
    }
  }
  const int64_t threads = allocate ? tensor.elements() / kElementsOfThread : 0;
  SideBySide(std::ssize(shares), std::min(threads, kMostThreads),
             [&, to = tensor.dtype()](LoopTurns& turns) {
               for (int64_t i = 0; turns.Next(i);) {
                 Copy(shares[static_cast<size_t>(i)], spec.kind, to);
               }
             });
  return tensor;
}

}  // namespace linserve
