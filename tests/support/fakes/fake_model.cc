#include "support/fakes/fake_model.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <new>
#include <stdexcept>
#include <utility>

namespace linserve {

void FakeModelControl::Hold() {
  MutexLock lock(mutex_);
  hold_ = true;
  allowed_ = 0;
}

void FakeModelControl::Allow(int64_t more) {
  MutexLock lock(mutex_);
  allowed_ += more;
  changed_.NotifyAll();
}

void FakeModelControl::LetGo() {
  MutexLock lock(mutex_);
  hold_ = false;
  endless_ = false;
  changed_.NotifyAll();
}

void FakeModelControl::AwaitHeld(int count) {
  MutexLock lock(mutex_);
  while (held_ < count) changed_.Wait(lock);
}

bool FakeModelControl::WaitForStarted(size_t passes) {
  const auto limit = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  MutexLock lock(mutex_);
  while (batch_sizes_.size() < passes) {
    if (!changed_.WaitUntil(lock, limit)) return batch_sizes_.size() >= passes;
  }
  return true;
}

void FakeModelControl::ComputeWithoutEnd() {
  MutexLock lock(mutex_);
  endless_ = true;
}

void FakeModelControl::FailNext(absl::Status status, int passes) {
  MutexLock lock(mutex_);
  failure_ = std::move(status);
  failing_ = passes;
}

std::vector<int64_t> FakeModelControl::batch_sizes() const {
  MutexLock lock(mutex_);
  return batch_sizes_;
}

std::set<std::thread::id> FakeModelControl::threads() const {
  MutexLock lock(mutex_);
  return threads_;
}

std::vector<std::string> FakeModelControl::events() const {
  MutexLock lock(mutex_);
  return events_;
}

void FakeModelControl::Started(const Batch& batch) {
  MutexLock lock(mutex_);
  batch_sizes_.push_back(static_cast<int64_t>(batch.size()));
  events_.emplace_back("start");
  changed_.NotifyAll();
}

void FakeModelControl::Taken() {
  MutexLock lock(mutex_);
  events_.emplace_back("take");
}

void FakeModelControl::Step() {
  MutexLock lock(mutex_);
  ++held_;
  changed_.NotifyAll();
  while (hold_ && allowed_ == 0) changed_.Wait(lock);
  if (hold_) --allowed_;
  --held_;
  ++steps_done_;
  on_step();
}

absl::StatusOr<bool> FakeModelControl::Finish(int64_t sequences) {
  MutexLock lock(mutex_);
  if (endless_) return false;
  if (failing_ > 0) {
    --failing_;
    return failure_;
  }
  computed_ += sequences;
  return true;
}

void FakeModelControl::OnThisThread() {
  MutexLock lock(mutex_);
  threads_.insert(std::this_thread::get_id());
}

namespace {

class FakeSession : public SessionState {
 public:
  explicit FakeSession(int64_t position) : position_(position) {}

  int64_t position() const override { return position_; }
  int64_t bytes() const override { return kFakeSessionBytes; }
  bool lost() const override { return home_ != nullptr && *home_; }
  // `home` becomes true where the model that has read them is lost.
  void Read(int64_t rows, std::shared_ptr<const std::atomic<bool>> home) {
    position_ += rows;
    home_ = std::move(home);
  }

 private:
  int64_t position_;
  std::shared_ptr<const std::atomic<bool>> home_;
};

class FakeSessions : public SessionSource {
 public:
  absl::StatusOr<std::shared_ptr<SessionState>> New() const override {
    return std::make_shared<FakeSession>(0);
  }
  absl::StatusOr<std::shared_ptr<SessionState>> Restore(std::string_view blob) const override {
    if (!blob.starts_with("fake ")) return absl::InvalidArgumentError("no saved session");
    return std::make_shared<FakeSession>(std::stoll(std::string(blob.substr(5))));
  }
};

FakeRows Pooled(const FakeRows& rows, Pooling pooling) {
  const size_t width = rows.width;
  const float* row = &rows.values[pooling == Pooling::kLast ? rows.values.size() - width : 0];
  FakeRows pooled{width, {row, row + width}};
  for (size_t i = width; i < rows.values.size(); ++i) {
    float& value = pooled.values[i % width];
    if (pooling == Pooling::kMean) value += rows.values[i];
    if (pooling == Pooling::kMax) value = std::max(value, rows.values[i]);
  }
  if (pooling == Pooling::kMean) {
    for (float& value : pooled.values) value /= static_cast<float>(rows.count());
  }
  return pooled;
}

void Normalize(float* row, size_t width) {
  float squares = 0;
  for (size_t i = 0; i < width; ++i) squares += row[i] * row[i];
  for (size_t i = 0; i < width; ++i) row[i] /= std::sqrt(squares);
}

absl::StatusOr<Tensor> Finish(FakeRows rows, const OutputOptions& options) {
  const bool pooled = options.pooling != Pooling::kNone;
  if (pooled) rows = Pooled(rows, options.pooling);
  for (size_t row = 0; options.normalize && row < rows.count(); ++row) {
    Normalize(&rows.values[row * rows.width], rows.width);
  }
  const auto width = static_cast<int64_t>(rows.width);
  const Shape shape = pooled ? Shape{width} : Shape{static_cast<int64_t>(rows.count()), width};
  return Convert(Tensor::FromFloats(shape, rows.values), options.dtype);
}

}  // namespace

class FakeForward : public Forward {
 public:
  FakeForward(std::shared_ptr<FakeModelControl> control, const FakeCompute& compute, Batch batch,
              Fault fault, std::shared_ptr<const std::atomic<bool>> lost)
      : control_(std::move(control)),
        compute_(compute),
        batch_(std::move(batch)),
        fault_(fault),
        lost_(std::move(lost)) {
    ++control_->forwards_;
  }
  ~FakeForward() override {
    --control_->forwards_;
    if (!taken_) control_->on_failure();
  }

  absl::StatusOr<bool> Advance(const Between& between) override {
    for (int slice = 1; slice < control_->slices; ++slice) {
      control_->before_slice(batch_);
      control_->Step();
      if (!between(batch_.rows / control_->slices)) return absl::CancelledError("given up");
    }
    control_->before_slice(batch_);
    control_->Step();
    if (fault_ == Fault::kStepFails) return absl::InternalError("the step failed");
    if (fault_ == Fault::kBadAlloc) throw std::bad_alloc();
    if (fault_ == Fault::kThrows) throw std::runtime_error("the model threw");
    if (++steps_ < control_->steps) return false;
    return control_->Finish(static_cast<int64_t>(batch_.size()));
  }

  bool Forget(size_t sequence) override {
    if (control_->forgets) forgotten_.insert(sequence);
    return control_->forgets;
  }

  absl::StatusOr<Results> TakeResults(const Between& between) override {
    control_->Taken();
    taken_ = true;
    for (int share = 0; share < control_->shares; ++share) {
      control_->on_share();
      if (!between(0)) return absl::CancelledError("given up");
    }
    Results results(batch_.size());
    for (size_t i = 0; i < results.size(); ++i) {
      TensorMap& outputs = results[i].emplace();
      if (forgotten_.contains(i)) continue;
      const OutputOptions& options = batch_.options[i];
      for (auto& [name, rows] : compute_(batch_, i)) {
        const auto asked = std::find(options.outputs.begin(), options.outputs.end(), name);
        if (options.outputs.empty() ? name != "y" : asked == options.outputs.end()) continue;
        auto output = Finish(std::move(rows), options);
        if (!output.ok()) return output.status();
        outputs[name] = *std::move(output);
      }
    }
    if (fault_ == Fault::kTooFewResults) results.pop_back();
    for (size_t i = 0; results.size() == batch_.size() && i < batch_.sessions.size(); ++i) {
      if (forgotten_.contains(i)) continue;
      static_cast<FakeSession&>(*batch_.sessions[i]).Read(batch_.axes.at('n').lengths[i], lost_);
    }
    return results;
  }

 private:
  std::shared_ptr<FakeModelControl> control_;
  const FakeCompute compute_;
  Batch batch_;
  Fault fault_;
  std::shared_ptr<const std::atomic<bool>> lost_;  // the model is
  int steps_ = 0;
  bool taken_ = false;  // its results were asked for
  std::set<size_t> forgotten_;
};

class FakeModel : public Model {
 public:
  FakeModel(const std::string& architecture, const Signature& signature, FakeCompute compute,
            std::shared_ptr<FakeModelControl> control)
      : control_(std::move(control)), compute_(std::move(compute)) {
    info_.architecture = architecture;
    info_.fingerprint = "\xFF raw bytes";
    info_.signature = signature;
    info_.device = "cpu";
    info_.parameters = 7;
    info_.bytes = kFakeModelBytes;
    info_.labels = control_->labels;
    info_.problem_type = control_->problem_type;
    info_.no_sessions = "it is told to have none";
    if (control_->sessions) {
      info_.no_sessions = "";
      info_.session_bytes = kFakeSessionBytes;
      info_.sessions = std::make_shared<FakeSessions>();
    }
    ++control_->alive_;
    control_->OnThisThread();
  }
  ~FakeModel() override {
    --control_->alive_;
    control_->OnThisThread();
  }

  const ModelInfo& info() const override { return info_; }
  bool asynchronous() const override { return control_->asynchronous; }
  bool lost() const override { return *lost_; }

  absl::StatusOr<std::string> Save(const SessionState& session) override {
    control_->OnThisThread();
    if (!control_->saves) return absl::ResourceExhaustedError("no memory to save it");
    return "fake " + std::to_string(session.position());
  }

  absl::StatusOr<std::unique_ptr<Forward>> Start(Batch batch) override {
    control_->OnThisThread();
    control_->Started(batch);
    const Fault fault = control_->fault(batch);
    if (fault == Fault::kDeviceLost) {
      *lost_ = true;
      return absl::UnavailableError("the device failed");
    }
    if (fault == Fault::kStartFails) return absl::InternalError("the start failed");
    return std::make_unique<FakeForward>(control_, compute_, std::move(batch), fault, lost_);
  }

 private:
  std::shared_ptr<FakeModelControl> control_;
  const FakeCompute compute_;
  ModelInfo info_;
  std::shared_ptr<std::atomic<bool>> lost_ = std::make_shared<std::atomic<bool>>(false);
};

FakeRows RowsOf(const Batch& batch, const std::string& input, char letter, size_t index) {
  const Tensor cropped = Crop(batch.axes.at(letter), batch.inputs.at(input), index);
  const auto* values = cropped.data<float>();
  return {static_cast<size_t>(cropped.shape()[1]), {values, values + cropped.elements()}};
}

ModelFactory FakeModelFactory(const std::string& architecture, const Signature& signature,
                              const FakeCompute& compute,
                              const std::shared_ptr<FakeModelControl>& control) {
  return [=](int64_t /*replica*/) -> absl::StatusOr<std::unique_ptr<Model>> {
    if (absl::Status status = control->load(); !status.ok()) return status;
    return std::make_unique<FakeModel>(architecture, signature, compute, control);
  };
}

ModelFactory FakeModelFactory(const std::shared_ptr<FakeModelControl>& control) {
  const auto compute = [](const Batch& batch, size_t index) {
    const int64_t before = batch.sessions.empty() ? 0 : batch.sessions[index]->position();
    FakeRows rows = RowsOf(batch, "x", 'n', index);
    for (size_t i = 0; i < rows.values.size(); ++i) {
      const auto place = before + static_cast<int64_t>(i / rows.width);
      rows.values[i] = 2 * rows.values[i] + static_cast<float>(place);
    }
    return FakeOutputs{{"y", std::move(rows)}};
  };
  // Made with each replica, since a test may set what the control says until then.
  return [control, compute](int64_t replica) -> absl::StatusOr<std::unique_ptr<Model>> {
    const std::vector<Axis> rows = {Axis::Ragged('n'), Axis::Fixed(2)};
    Signature signature;
    signature.inputs = {{"x", InputKind::kFloat, rows}};
    signature.outputs = {{"y", rows}};
    signature.limits = {{'n', control->longest, ""}};
    signature.request_is_unit = control->request_is_unit;
    return FakeModelFactory("fake.Model", signature, compute, control)(replica);
  };
}

Item FakeItem(int64_t length, float value) {
  Item item;
  const std::vector<float> values(static_cast<size_t>(2 * length), value);
  item.inputs["x"] = Tensor::FromFloats({length, 2}, values);
  return item;
}

std::vector<float> FakeResult(int64_t length, float value) {
  std::vector<float> result;
  for (int64_t row = 0; row < length; ++row) {
    result.insert(result.end(), 2, 2 * value + static_cast<float>(row));
  }
  return result;
}

}  // namespace linserve
