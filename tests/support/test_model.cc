#include "support/test_model.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

namespace linserve {

void ModelControl::Block() {
  MutexLock lock(mutex_);
  blocked_ = true;
  allowed_ = 0;
}

void ModelControl::Allow(int64_t passes) {
  MutexLock lock(mutex_);
  allowed_ += passes;
  changed_.NotifyAll();
}

void ModelControl::Release() {
  MutexLock lock(mutex_);
  blocked_ = false;
  endless_ = false;
  changed_.NotifyAll();
}

void ModelControl::ComputeWithoutEnd() {
  MutexLock lock(mutex_);
  endless_ = true;
}

void ModelControl::FailNext(absl::Status status, int passes) {
  MutexLock lock(mutex_);
  failure_ = std::move(status);
  failing_ = passes;
}

bool ModelControl::WaitForStarted(int64_t passes) {
  const auto limit = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  MutexLock lock(mutex_);
  while (started_ < passes) {
    if (!changed_.WaitUntil(lock, limit)) return started_ >= passes;
  }
  return true;
}

int64_t ModelControl::computed() const {
  MutexLock lock(mutex_);
  return computed_;
}

void ModelControl::Started() {
  MutexLock lock(mutex_);
  ++started_;
  changed_.NotifyAll();
}

absl::StatusOr<bool> ModelControl::Step(int64_t sequences) {
  MutexLock lock(mutex_);
  while (blocked_ && allowed_ == 0) changed_.Wait(lock);
  if (endless_) return false;
  if (blocked_) --allowed_;
  if (failing_ > 0) {
    --failing_;
    return failure_;
  }
  computed_ += sequences;
  return true;
}

namespace {

using Rows = std::vector<std::vector<float>>;
// All outputs of sequence `index` of a batch.
using Compute = std::function<std::map<std::string, Rows>(const Batch& batch, size_t index)>;

Rows Pooled(const Rows& rows, Pooling pooling) {
  std::vector<float> vector = pooling == Pooling::kLast ? rows.back() : rows.front();
  for (size_t row = 1; row < rows.size(); ++row) {
    for (size_t i = 0; i < vector.size(); ++i) {
      if (pooling == Pooling::kMean) vector[i] += rows[row][i];
      if (pooling == Pooling::kMax) vector[i] = std::max(vector[i], rows[row][i]);
    }
  }
  if (pooling == Pooling::kMean) {
    for (float& value : vector) value /= static_cast<float>(rows.size());
  }
  return {vector};
}

void Normalize(std::vector<float>& row) {
  float squares = 0;
  for (float value : row) squares += value * value;
  for (float& value : row) value /= std::sqrt(squares);
}

absl::StatusOr<Tensor> Finish(Rows rows, const OutputOptions& options) {
  const bool pooled = options.pooling != Pooling::kNone;
  if (pooled) rows = Pooled(rows, options.pooling);
  std::vector<float> values;
  for (std::vector<float>& row : rows) {
    if (options.normalize) Normalize(row);
    values.insert(values.end(), row.begin(), row.end());
  }
  const auto width = static_cast<int64_t>(rows[0].size());
  const auto count = static_cast<int64_t>(rows.size());
  const Shape shape = pooled ? Shape{width} : Shape{count, width};
  return Convert(Tensor::FromFloats(shape, values), options.dtype);
}

class TestForward : public Forward {
 public:
  TestForward(Batch batch, Compute compute, std::shared_ptr<ModelControl> control)
      : batch_(std::move(batch)), compute_(std::move(compute)), control_(std::move(control)) {
    control_->Started();
  }

  absl::StatusOr<bool> Advance(int64_t /*budget*/, const Between& /*between*/) override {
    return control_->Step(static_cast<int64_t>(batch_.size()));
  }

  absl::StatusOr<std::vector<TensorMap>> TakeResults() override {
    std::vector<TensorMap> results(batch_.size());
    for (size_t i = 0; i < batch_.size(); ++i) {
      const OutputOptions& options = batch_.options[i];
      for (auto& [name, rows] : compute_(batch_, i)) {
        const auto asked = std::find(options.outputs.begin(), options.outputs.end(), name);
        if (options.outputs.empty() ? name != "y" : asked == options.outputs.end()) continue;
        auto output = Finish(std::move(rows), options);
        if (!output.ok()) return output.status();
        results[i][name] = *std::move(output);
      }
    }
    return results;
  }

 private:
  Batch batch_;
  Compute compute_;
  std::shared_ptr<ModelControl> control_;
};

class TestModel : public Model {
 public:
  TestModel(ModelInfo info, Compute compute, std::shared_ptr<ModelControl> control)
      : info_(std::move(info)), compute_(std::move(compute)), control_(std::move(control)) {}

  const ModelInfo& info() const override { return info_; }

  absl::StatusOr<std::unique_ptr<Forward>> Start(Batch batch) override {
    return std::make_unique<TestForward>(std::move(batch), compute_, control_);
  }

 private:
  ModelInfo info_;
  Compute compute_;
  std::shared_ptr<ModelControl> control_;
};

ModelFactory Factory(const std::string& architecture, Signature signature, Compute compute,
                     std::shared_ptr<ModelControl> control) {
  ModelInfo info;
  info.architecture = architecture;
  info.signature = std::move(signature);
  info.device = "cpu";
  info.parameters = 7;
  info.bytes = 28;
  return [info, compute, control](int64_t /*replica*/) -> absl::StatusOr<std::unique_ptr<Model>> {
    return std::make_unique<TestModel>(info, compute, control);
  };
}

Rows RowsOf(const Batch& batch, const std::string& input, char letter, size_t index) {
  const Tensor cropped = Crop(batch.axes.at(letter), batch.inputs.at(input), index);
  const auto width = static_cast<size_t>(cropped.shape()[1]);
  const auto* values = cropped.data<float>();
  Rows rows;
  for (int64_t row = 0; row < cropped.shape()[0]; ++row, values += width) {
    rows.emplace_back(values, values + width);
  }
  return rows;
}

}  // namespace

ModelFactory TokenModel(std::shared_ptr<ModelControl> control) {
  const Axis n = Axis::Ragged('n');
  Signature signature;
  signature.inputs = {{"x", InputKind::kToken, {n}, false, kTestVocabulary}};
  signature.outputs = {{"y", {n, Axis::Fixed(4)}}, {"z", {n, Axis::Fixed(2)}}};
  signature.limits = {{'n', kTestLongest, ""}};
  const Compute compute = [](const Batch& batch, size_t index) {
    const Tensor ids = Crop(batch.axes.at('n'), batch.inputs.at("x"), index);
    const auto length = static_cast<float>(ids.shape()[0]);
    std::map<std::string, Rows> outputs;
    for (int64_t i = 0; i < ids.shape()[0]; ++i) {
      const auto id = static_cast<float>(ids.data<int64_t>()[i]);
      const auto place = static_cast<float>(i);
      outputs["y"].push_back({id, place, length, 1});
      outputs["z"].push_back({place, id});
    }
    return outputs;
  };
  return Factory("test.Tokens", std::move(signature), compute, std::move(control));
}

ModelFactory FloatModel(std::shared_ptr<ModelControl> control) {
  const Axis n = Axis::Ragged('n');
  Signature signature;
  signature.inputs = {{"x", InputKind::kFloat, {n, Axis::Fixed(3)}, false, 0},
                      {"context", InputKind::kFloat, {Axis::Ragged('m'), Axis::Fixed(3)}, true, 0}};
  signature.outputs = {{"y", {n, Axis::Fixed(3)}}};
  const Compute compute = [](const Batch& batch, size_t index) {
    Rows rows = RowsOf(batch, "x", 'n', index);
    if (batch.inputs.contains("context")) {
      for (const auto& added : RowsOf(batch, "context", 'm', index)) {
        for (auto& row : rows) {
          for (size_t i = 0; i < row.size(); ++i) row[i] += added[i];
        }
      }
    }
    return std::map<std::string, Rows>{{"y", rows}};
  };
  return Factory("test.Floats", std::move(signature), compute, std::move(control));
}

}  // namespace linserve
