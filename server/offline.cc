#include "offline.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/mutex.h"

namespace linserve {
namespace {

// Waits for the results of one request.
class Collector : public ResultSink {
 public:
  explicit Collector(size_t count) : results_(count, absl::InternalError("no result")) {}

  void Deliver(size_t index, absl::StatusOr<ItemResult> result) override {
    MutexLock lock(mutex_);
    results_[index] = std::move(result);
    ++delivered_;
    changed_.NotifyAll();
  }

  bool Abandoned() const override { return false; }

  std::vector<absl::StatusOr<ItemResult>> Wait(
      const std::function<void(size_t, size_t)>& progress) {
    MutexLock lock(mutex_);
    while (delivered_ < results_.size()) {
      changed_.Wait(lock);
      progress(delivered_, results_.size());
    }
    return std::move(results_);
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  std::vector<absl::StatusOr<ItemResult>> results_ LINSERVE_GUARDED_BY(mutex_);
  size_t delivered_ LINSERVE_GUARDED_BY(mutex_) = 0;
};

absl::StatusOr<std::vector<int64_t>> ReadLengths(const Tensor& lengths, int64_t batch,
                                                 int64_t longest) {
  if (!IsInteger(lengths.dtype()) || lengths.shape() != Shape{batch}) {
    return absl::InvalidArgumentError("input.lengths must hold " + std::to_string(batch) +
                                      " integers, one a sequence");
  }
  std::vector<int64_t> values(static_cast<size_t>(batch));
  ConvertToInt64(lengths.dtype(), lengths.bytes(), batch, values.data());
  for (int64_t length : values) {
    if (length < 1 || length > longest) {
      return absl::InvalidArgumentError("input.lengths holds " + std::to_string(length) +
                                        ", expected 1 to " + std::to_string(longest));
    }
  }
  return values;
}

// The row of `tensor` that belongs to sequence `index`.
Tensor RowOf(const Tensor& tensor, int64_t index) {
  const Tensor row = tensor.Rows(index, index + 1);
  return row.Reshaped(Shape(row.shape().begin() + 1, row.shape().end()));
}

}  // namespace

absl::StatusOr<std::vector<Item>> SplitBatch(const Signature& signature, const TensorMap& inputs,
                                             const Tensor* lengths) {
  if (inputs.empty()) {
    return absl::InvalidArgumentError(
        "no tensor is named input.<argument>; this model takes input." + signature.inputs[0].name);
  }
  const Tensor& first = inputs.begin()->second;
  if (first.shape().empty()) {
    return absl::InvalidArgumentError("input." + inputs.begin()->first + " is a scalar");
  }
  const int64_t batch = first.shape()[0];
  const char letter = signature.inputs[0].axes[0].letter;
  std::vector<int64_t> true_lengths;
  if (lengths != nullptr) {
    const auto x = inputs.find(signature.inputs[0].name);
    const bool has_length = x != inputs.end() && x->second.shape().size() > 1;
    auto read = ReadLengths(*lengths, batch, has_length ? x->second.shape()[1] : 0);
    if (!read.ok()) return read.status();
    true_lengths = *std::move(read);
  }
  std::vector<Item> items(static_cast<size_t>(batch));
  for (const auto& [name, tensor] : inputs) {
    if (tensor.shape().empty() || tensor.shape()[0] != batch) {
      return absl::InvalidArgumentError("input." + name + " is " + ToString(tensor.shape()) +
                                        ", expected a leading batch axis of " +
                                        std::to_string(batch));
    }
    const InputSpec* spec = signature.FindInput(name);
    const bool cropped = !true_lengths.empty() && spec != nullptr && !spec->axes.empty() &&
                         spec->axes[0].letter == letter;
    for (int64_t i = 0; i < batch; ++i) {
      const auto at = static_cast<size_t>(i);
      Tensor row = RowOf(tensor, i);
      if (cropped && !row.shape().empty() && row.shape()[0] >= true_lengths[at]) {
        row = row.Rows(0, true_lengths[at]);
      }
      items[at].inputs[name] = std::move(row);
    }
  }
  return items;
}

absl::StatusOr<std::vector<TensorMap>> RunAll(
    Engine& engine, std::vector<Item> items,
    const std::function<void(size_t done, size_t all)>& progress) {
  auto collector = std::make_shared<Collector>(items.size());
  Request request;
  request.id = "offline";
  request.sink = collector;
  for (Item& item : items) request.items.emplace_back(std::move(item));
  if (absl::Status status = engine.Submit(request); !status.ok()) return status;
  std::vector<TensorMap> outputs;
  for (absl::StatusOr<ItemResult>& result : collector->Wait(progress)) {
    if (!result.ok()) {
      return absl::Status(result.status().code(), "sequence " + std::to_string(outputs.size()) +
                                                      ": " +
                                                      std::string(result.status().message()));
    }
    outputs.push_back(std::move(result->outputs));
  }
  return outputs;
}

TensorMap JoinBatch(const std::vector<TensorMap>& results, int64_t longest) {
  TensorMap joined;
  if (results.empty()) return joined;
  for (const auto& [name, first] : results[0]) {
    Shape shape = first.shape();
    for (const TensorMap& result : results) {
      shape[0] = std::max({shape[0], longest, result.at(name).shape()[0]});
    }
    shape.insert(shape.begin(), static_cast<int64_t>(results.size()));
    auto [tensor, bytes] = Tensor::Allocate(first.dtype(), shape);
    const size_t stride = tensor.byte_size() / results.size();
    for (size_t i = 0; i < results.size(); ++i) {
      const Tensor& rows = results[i].at(name);
      std::memcpy(bytes + i * stride, rows.bytes(), rows.byte_size());
    }
    joined[name] = tensor;
  }
  return joined;
}

}  // namespace linserve
