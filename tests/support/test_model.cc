#include "support/test_model.h"

#include <utility>

namespace linserve {

ModelFactory TokenModel(const std::shared_ptr<FakeModelControl>& control) {
  const Axis n = Axis::Ragged('n');
  Signature signature;
  signature.inputs = {{"x", InputKind::kToken, {n}, false, kTestVocabulary}};
  signature.outputs = {{"y", {n, Axis::Fixed(4)}}, {"z", {n, Axis::Fixed(2)}}};
  signature.limits = {{'n', kTestLongest, ""}};
  const auto compute = [](const Batch& batch, size_t index) {
    const Tensor ids = Crop(batch.axes.at('n'), batch.inputs.at("x"), index);
    const auto count = static_cast<size_t>(ids.shape()[0]);
    FakeRows y{4, std::vector<float>(4 * count, 1)};
    FakeRows z{2, std::vector<float>(2 * count)};
    for (size_t i = 0; i < count; ++i) {
      const auto id = static_cast<float>(ids.data<int64_t>()[i]);
      const auto place = static_cast<float>(i);
      y.values[4 * i] = id;
      y.values[4 * i + 1] = place;
      y.values[4 * i + 2] = static_cast<float>(count);
      z.values[2 * i] = place;
      z.values[2 * i + 1] = id;
    }
    return FakeOutputs{{"y", std::move(y)}, {"z", std::move(z)}};
  };
  return FakeModelFactory("test.Tokens", signature, compute, control);
}

ModelFactory FloatModel(const std::shared_ptr<FakeModelControl>& control) {
  const Axis n = Axis::Ragged('n');
  Signature signature;
  signature.inputs = {{"x", InputKind::kFloat, {n, Axis::Fixed(3)}, false, 0},
                      {"context", InputKind::kFloat, {Axis::Ragged('m'), Axis::Fixed(3)}, true, 0}};
  signature.outputs = {{"y", {n, Axis::Fixed(3)}}};
  const auto compute = [](const Batch& batch, size_t index) {
    FakeRows rows = RowsOf(batch, "x", 'n', index);
    if (batch.inputs.contains("context")) {
      const FakeRows added = RowsOf(batch, "context", 'm', index);
      for (size_t i = 0; i < rows.values.size(); ++i) {
        for (size_t j = i % rows.width; j < added.values.size(); j += rows.width) {
          rows.values[i] += added.values[j];
        }
      }
    }
    return FakeOutputs{{"y", rows}};
  };
  return FakeModelFactory("test.Floats", signature, compute, control);
}

ModelFactory ClassifierModel(const std::vector<std::string>& labels, ProblemType problem_type) {
  const Axis n = Axis::Ragged('n');
  Signature signature;
  signature.inputs = {{"x", InputKind::kToken, {n}, false, kTestVocabulary},
                      {"token_type_ids", InputKind::kToken, {n}, true, 2}};
  signature.outputs = {{kLogits, {Axis::Fixed(std::ssize(labels))}}};
  signature.limits = {{'n', kTestLongest, ""}};
  const auto compute = [count = labels.size()](const Batch& batch, size_t index) {
    const AxisLayout& axis = batch.axes.at('n');
    const Tensor ids = Crop(axis, batch.inputs.at("x"), index);
    const auto types = batch.inputs.find("token_type_ids");
    float sum = 0;
    for (int64_t i = 0; i < ids.elements(); ++i) {
      const bool second =
          types != batch.inputs.end() && Crop(axis, types->second, index).data<int64_t>()[i] == 1;
      sum += static_cast<float>(ids.data<int64_t>()[i]) / (second ? 10.0F : 100.0F);
    }
    FakeRows logits{count, {}};
    for (size_t i = 0; i < count; ++i) logits.values.push_back(static_cast<float>(i + 1) + sum);
    return FakeOutputs{{kLogits, std::move(logits)}};
  };
  const auto control = std::make_shared<FakeModelControl>();
  control->labels = std::make_shared<const std::vector<std::string>>(labels);
  control->problem_type = problem_type;
  return FakeModelFactory("test.Classifier", signature, compute, control);
}

ModelFactory SparseModel() {
  const Axis n = Axis::Ragged('n');
  Signature signature;
  signature.inputs = {{"x", InputKind::kToken, {n}, false, kTestVocabulary}};
  signature.outputs = {{kSparseEmbedding, {Axis::Fixed(kTestVocabulary)}}};
  signature.limits = {{'n', kTestLongest, ""}};
  const auto compute = [](const Batch& batch, size_t index) {
    const Tensor ids = Crop(batch.axes.at('n'), batch.inputs.at("x"), index);
    FakeRows weights{kTestVocabulary, std::vector<float>(kTestVocabulary)};
    for (int64_t i = 0; i < ids.elements(); ++i) {
      weights.values[static_cast<size_t>(ids.data<int64_t>()[i])] += 0.5F;
    }
    return FakeOutputs{{kSparseEmbedding, std::move(weights)}};
  };
  return FakeModelFactory("test.Sparse", signature, compute, std::make_shared<FakeModelControl>());
}

}  // namespace linserve
