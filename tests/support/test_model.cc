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
    const auto length = static_cast<float>(ids.shape()[0]);
    FakeOutputs outputs;
    for (int64_t i = 0; i < ids.shape()[0]; ++i) {
      const auto id = static_cast<float>(ids.data<int64_t>()[i]);
      const auto place = static_cast<float>(i);
      outputs["y"].push_back({id, place, length, 1});
      outputs["z"].push_back({place, id});
    }
    return outputs;
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
      for (const auto& added : RowsOf(batch, "context", 'm', index)) {
        for (auto& row : rows) {
          for (size_t i = 0; i < row.size(); ++i) row[i] += added[i];
        }
      }
    }
    return FakeOutputs{{"y", rows}};
  };
  return FakeModelFactory("test.Floats", signature, compute, control);
}

}  // namespace linserve
