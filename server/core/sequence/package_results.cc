#include "core/sequence/package_results.h"

#include <cstring>
#include <string>
#include <utility>

#include "core/tensor/row_scale.h"
#include "core/tensor/stacking.h"

namespace linserve {
namespace {

// Turns [batch, length, ...] into [length, batch, ...].
Tensor LengthFirst(const Tensor& tensor) {
  Shape shape = tensor.shape();
  std::swap(shape[0], shape[1]);
  auto [swapped, bytes] = Tensor::Allocate(tensor.dtype(), shape);
  if (swapped.elements() == 0) return swapped;  // however many empty rows it has
  const auto length = static_cast<size_t>(shape[0]);
  const auto batch = static_cast<size_t>(shape[1]);
  const size_t row_bytes = tensor.byte_size() / (length * batch);
  for (size_t i = 0; i < batch; ++i) {
    for (size_t row = 0; row < length; ++row) {
      std::memcpy(bytes + (row * batch + i) * row_bytes,
                  tensor.bytes() + (i * length + row) * row_bytes, row_bytes);
    }
  }
  return swapped;
}

// Finds the output that the tensor is, or the scale of; null if it is none of the signature's.
const OutputSpec* SpecOf(const Signature& signature, const std::string& name) {
  for (const OutputSpec& output : signature.outputs) {
    if (name == output.name || name == ScaleOf(output.name)) return &output;
  }
  return nullptr;
}

// Returns how many rows each sequence of an output has at least, by its padding.
int64_t PaddedRows(const OutputSpec* spec, const std::map<char, int64_t>& padded) {
  if (spec == nullptr || spec->axes.empty()) return 0;
  const auto longest = padded.find(spec->axes[0].letter);
  return longest == padded.end() ? 0 : longest->second;
}

std::vector<const Tensor*> PartsOf(const std::vector<TensorMap>& results, const std::string& name) {
  std::vector<const Tensor*> parts;
  for (const TensorMap& result : results) parts.push_back(&result.at(name));
  return parts;
}

}  // namespace

std::optional<int64_t> JoinedBytes(const Signature& signature,
                                   const std::vector<TensorMap>& results,
                                   const std::map<char, int64_t>& padded) {
  int64_t sum = 0;
  if (results.empty()) return sum;
  for (const auto& [name, first] : results[0]) {
    const int64_t longest = PaddedRows(SpecOf(signature, name), padded);
    const auto bytes =
        CheckedByteSize(first.dtype(), StackedShape(PartsOf(results, name), longest));
    if (!bytes || __builtin_add_overflow(sum, *bytes, &sum)) return std::nullopt;
  }
  return sum;
}

TensorMap JoinBatch(const Signature& signature, const std::vector<TensorMap>& results,
                    const std::map<char, int64_t>& padded) {
  TensorMap joined;
  if (results.empty()) return joined;
  for (const auto& [name, first] : results[0]) {
    const OutputSpec* spec = SpecOf(signature, name);
    joined[name] = Stack(PartsOf(results, name), PaddedRows(spec, padded));
    if (spec != nullptr && spec->batch_axis == BatchAxis::kSecond) {
      joined[name] = LengthFirst(joined[name]);
    }
  }
  return joined;
}

}  // namespace linserve
