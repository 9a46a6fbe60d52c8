#include "models/forward/torch_model.h"

#include <algorithm>
#include <cstddef>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "attention/rows/aten.h"
#include "models/forward/fastest_padding.h"
#include "models/forward/recorded_passes.h"
#include "models/forward/torch_forward.h"
#include "models/forward/torch_sessions.h"
#include "models/placement/guarded.h"
#include "models/placement/tensor_bridge.h"

namespace linserve {
namespace {

class TorchModel : public Model {
 public:
  TorchModel(std::shared_ptr<const Network> network, ModelInfo info, const Placement& placement)
      : placement_(placement),
        network_(std::move(network)),
        info_(std::move(info)),
        sessions_(std::make_shared<TorchSessions>(network_->Sessions(), info_)),
        recorded_(*network_, info_, placement_) {
    if (info_.no_sessions.empty()) info_.sessions = sessions_;
    info_.padding = FastestPadding(*network_, info_, placement_);
  }

  ~TorchModel() override {
    if (placement_.lost()) {
      Leak(std::move(recorded_));
      Leak(std::move(network_));
    }
  }

  const ModelInfo& info() const override { return info_; }
  bool asynchronous() const override { return !placement_.on_host(); }
  bool lost() const override { return placement_.lost(); }

  TensorAllocator allocator() const override {
    if (placement_.on_host()) return {};
    return [this](DType dtype, const Shape& shape) {
      try {
        const Placement::Entered entered(placement_);
        // Numbers are gathered in the type that is computed in: fewer bytes to copy.
        if (dtype == DType::kI64) dtype = DType::kI32;
        return placement_.Allocate(dtype == DType::kF32 ? info_.dtype : dtype, shape);
      } catch (const c10::AcceleratorError& error) {
        if (error.get_error_code() == kOutOfMemory) throw std::bad_alloc();
        placement_.CheckDevice();
        throw;
      }
    };
  }

  absl::Status Prepare() override {
    return Guarded(placement_,
                   [&] {
                     recorded_.Record();
                     return true;
                   })
        .status();
  }

  absl::StatusOr<std::string> Save(const SessionState& session) override {
    if (!info_.no_sessions.empty()) return Model::Save(session);
    auto saved = Guarded(placement_, [&] { return sessions_->Save(session); });
    return saved.ok() ? *std::move(saved) : saved.status();
  }

  absl::StatusOr<std::unique_ptr<Forward>> Start(Batch batch) override {
    const auto sessions = sessions_->Of(batch);
    if (!sessions.ok()) return sessions.status();
    return Guarded(placement_, [&]() -> std::unique_ptr<Forward> {
      TensorBatch tensors = OnDevice(batch);
      std::vector<Wanted> wanted = WantedOf(info_.signature, batch);
      if (sessions->empty()) {
        if (auto replayed = recorded_.Replay(tensors)) {
          return std::make_unique<TorchForward>(info_.signature, placement_, *std::move(replayed),
                                                std::move(wanted));
        }
      }
      for (auto& [letter, layout] : tensors.axes) placement_.AddTable(layout);
      return std::make_unique<TorchForward>(*network_, info_.signature, placement_, tensors, wanted,
                                            *sessions, batch.rows);
    });
  }

 private:
  // Says whether the input is a mask that is true in all rows of all sequences.
  bool HidesNothing(const std::string& name, const Batch& batch) const {
    const InputSpec& spec = *info_.signature.FindInput(name);
    if (spec.kind != InputKind::kMask) return false;
    const std::byte* rows = batch.inputs.at(name).bytes();
    const AxisLayout& layout = batch.axes.at(spec.axes[0].letter);
    for (size_t i = 0; i < layout.starts.size(); ++i) {
      const std::byte* row = rows + layout.starts[i];
      if (std::find(row, row + layout.lengths[i], std::byte{0}) != row + layout.lengths[i]) {
        return false;
      }
    }
    return true;
  }

  // Says whether the input is a mask that says which rows are given, and changes none.
  bool ChoosesRows(const std::string& name) const {
    const auto& outputs = info_.signature.outputs;
    return std::any_of(outputs.begin(), outputs.end(), [&](const OutputSpec& output) {
      return output.leaves_out && output.mask == name;
    });
  }

  TensorBatch OnDevice(const Batch& batch) const {
    TensorBatch tensors;
    tensors.padding = batch.padding;
    tensors.size = static_cast<int64_t>(batch.size());
    for (const auto& [letter, layout] : batch.axes) tensors.axes[letter] = {layout};
    for (const auto& [name, tensor] : batch.inputs) {
      // With the packages' padding it hides that.
      const bool may_go = batch.padding != Padding::kZeros && network_->LeavesOutFullMask(name);
      if (ChoosesRows(name) || (may_go && HidesNothing(name, batch))) continue;
      at::Tensor input = placement_.ToDevice(ToAten(tensor));
      if (input.is_floating_point()) {
        input = input.to(TensorType(info_.dtype, placement_.device()));
      }
      tensors.inputs[name] = std::move(input);
    }
    return tensors;
  }

  const Placement placement_;
  std::shared_ptr<const Network> network_;
  ModelInfo info_;
  std::shared_ptr<const TorchSessions> sessions_;
  RecordedPasses recorded_;
};

}  // namespace

std::unique_ptr<Model> MakeTorchModel(std::shared_ptr<const Network> network, ModelInfo info,
                                      const Placement& placement) {
  return std::make_unique<TorchModel>(std::move(network), std::move(info), placement);
}

}  // namespace linserve
