#include "engine/fake_model.h"

#include <new>
#include <stdexcept>
#include <utility>

namespace linserve {

void FakeModelControl::Hold() {
  MutexLock lock(mutex_);
  hold_ = true;
}

void FakeModelControl::LetGo() {
  MutexLock lock(mutex_);
  hold_ = false;
  changed_.NotifyAll();
}

void FakeModelControl::AwaitHeld(int count) {
  MutexLock lock(mutex_);
  while (held_ < count) changed_.Wait(lock);
}

std::vector<int64_t> FakeModelControl::batch_sizes() const {
  MutexLock lock(mutex_);
  return batch_sizes_;
}

std::set<std::thread::id> FakeModelControl::threads() const {
  MutexLock lock(mutex_);
  return threads_;
}

void FakeModelControl::Started(const Batch& batch) {
  MutexLock lock(mutex_);
  batch_sizes_.push_back(static_cast<int64_t>(batch.size()));
  events_.emplace_back("start");
}

void FakeModelControl::Taken() {
  MutexLock lock(mutex_);
  events_.emplace_back("take");
}

std::vector<std::string> FakeModelControl::events() const {
  MutexLock lock(mutex_);
  return events_;
}

void FakeModelControl::Step() {
  MutexLock lock(mutex_);
  ++held_;
  changed_.NotifyAll();
  while (hold_) changed_.Wait(lock);
  --held_;
  ++steps_done_;
  on_step();
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
  void Read(int64_t rows) { position_ += rows; }

 private:
  int64_t position_;
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

}  // namespace

class FakeForward : public Forward {
 public:
  FakeForward(std::shared_ptr<FakeModelControl> control, Batch batch, Fault fault)
      : control_(std::move(control)), batch_(std::move(batch)), fault_(fault) {
    ++control_->forwards_;
  }
  ~FakeForward() override { --control_->forwards_; }

  absl::StatusOr<bool> Advance(int64_t, const Between& between) override {
    for (int slice = 1; slice < control_->slices; ++slice) {
      control_->Step();
      if (!between(batch_.rows / control_->slices)) return absl::CancelledError("given up");
    }
    control_->Step();
    if (fault_ == Fault::kStepFails) return absl::InternalError("the step failed");
    if (fault_ == Fault::kBadAlloc) throw std::bad_alloc();
    if (fault_ == Fault::kThrows) throw std::runtime_error("the model threw");
    return ++steps_ >= control_->steps;
  }

  bool Forget(size_t sequence) override {
    if (control_->forgets) forgotten_.insert(sequence);
    return control_->forgets;
  }

  absl::StatusOr<std::vector<TensorMap>> TakeResults() override {
    control_->Taken();
    const AxisLayout& layout = batch_.axes.at('n');
    const Tensor& x = batch_.inputs.at("x");
    auto [y, bytes] = Tensor::Allocate(DType::kF32, x.shape());
    auto* out = reinterpret_cast<float*>(bytes);
    std::vector<TensorMap> results(batch_.size());
    for (size_t i = 0; i < results.size(); ++i) {
      if (forgotten_.contains(i)) continue;
      const int64_t before = batch_.sessions.empty() ? 0 : batch_.sessions[i]->position();
      for (int64_t row = 0; row < layout.lengths[i]; ++row) {
        for (int64_t column = 0; column < 2; ++column) {
          const int64_t at = 2 * (layout.starts[i] + row) + column;
          out[at] = 2 * x.data<float>()[at] + static_cast<float>(before + row);
        }
      }
      results[i]["y"] = Crop(layout, y, i);
    }
    if (fault_ == Fault::kTooFewResults) results.pop_back();
    for (size_t i = 0; results.size() == batch_.size() && i < batch_.sessions.size(); ++i) {
      if (forgotten_.contains(i)) continue;
      static_cast<FakeSession&>(*batch_.sessions[i]).Read(layout.lengths[i]);
    }
    return results;
  }

 private:
  std::shared_ptr<FakeModelControl> control_;
  Batch batch_;
  Fault fault_;
  int steps_ = 0;
  std::set<size_t> forgotten_;
};

class FakeModel : public Model {
 public:
  explicit FakeModel(std::shared_ptr<FakeModelControl> control) : control_(std::move(control)) {
    info_.architecture = "fake.Model";
    info_.device = "cpu";
    info_.bytes = 1234;
    const std::vector<Axis> rows = {Axis::Ragged('n'), Axis::Fixed(2)};
    info_.signature.inputs = {{"x", InputKind::kFloat, rows}};
    info_.signature.outputs = {{"y", rows}};
    info_.signature.limits = {{'n', control_->longest, ""}};
    info_.signature.request_is_unit = control_->request_is_unit;
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
  bool lost() const override { return lost_; }

  absl::StatusOr<std::string> Save(const SessionState& session) override {
    control_->OnThisThread();
    return "fake " + std::to_string(session.position());
  }

  absl::StatusOr<std::unique_ptr<Forward>> Start(Batch batch) override {
    control_->OnThisThread();
    control_->Started(batch);
    const Fault fault = control_->fault(batch);
    if (fault == Fault::kDeviceLost) {
      lost_ = true;
      return absl::UnavailableError("the device failed");
    }
    if (fault == Fault::kStartFails) return absl::InternalError("the start failed");
    return std::make_unique<FakeForward>(control_, std::move(batch), fault);
  }

 private:
  std::shared_ptr<FakeModelControl> control_;
  ModelInfo info_;
  bool lost_ = false;
};

ModelFactory FakeModelFactory(std::shared_ptr<FakeModelControl> control) {
  return [control =
              std::move(control)](int64_t /*replica*/) -> absl::StatusOr<std::unique_ptr<Model>> {
    if (absl::Status status = control->load(); !status.ok()) return status;
    return std::make_unique<FakeModel>(control);
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
