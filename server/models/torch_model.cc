#include "models/torch_model.h"

#include <algorithm>
#include <atomic>
#include <deque>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "attention/aten.h"
#include "models/batch_parts.h"
#include "models/pass_results.h"
#include "models/recorded_passes.h"
#include "models/tensor_bridge.h"

namespace linserve {
namespace {

// What LibTorch says after it is advice on its environment variables.
std::string FirstLine(const c10::Error& error) {
  const std::string what = error.what_without_backtrace();
  return what.substr(0, what.find('\n'));
}

// To free memory of a lost device would end the process.
template <typename T>
void Leak(T value) {
  static std::mutex mutex;
  static auto* kept = new std::deque<T>;
  const std::scoped_lock lock(mutex);
  kept->push_back(std::move(value));
}

absl::Status FailureOf(const Placement& placement, const c10::AcceleratorError& error) {
  constexpr int32_t kOutOfMemory = 2;  // cudaErrorMemoryAllocation: not from the pool
  const std::string what = placement.device().str() + " failed: " + FirstLine(error);
  if (error.get_error_code() == kOutOfMemory) return absl::ResourceExhaustedError(what);
  placement.CheckDevice();
  return placement.lost() ? absl::UnavailableError(what) : absl::InternalError(what);
}

// The one place where LibTorch's exceptions become a status. UNAVAILABLE: the device is lost.
template <typename Function>
auto Guarded(const Placement& placement, const Function& function)
    -> absl::StatusOr<decltype(function())> {
  try {
    const c10::InferenceMode no_autograd;
    const Placement::Entered entered(placement);
    return function();
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError("not enough memory for the forward pass");
  } catch (const c10::OutOfMemoryError& error) {
    return absl::ResourceExhaustedError("not enough memory on " + placement.device().str() +
                                        " for the forward pass: " + FirstLine(error));
  } catch (const c10::AcceleratorError& error) {
    return FailureOf(placement, error);
  } catch (const c10::Error& error) {
    const std::string what = error.what_without_backtrace();
    if (what.find("allocate memory") != std::string::npos) {
      return absl::ResourceExhaustedError("not enough memory for the forward pass");
    }
    return absl::InternalError("the forward pass failed: " + what);
  } catch (const std::exception& error) {
    return absl::InternalError(std::string("the forward pass failed: ") + error.what());
  }
}

// Calls `function` with 0 to `count` - 1, side by side on all threads of the replica; a product
// within has one thread then. With `count` 1 the thread is the caller's, and a product has all.
void SideBySide(size_t count, const std::function<void(size_t)>& function) {
  if (count == 1) return function(0);
  std::atomic<size_t> next = 0;
  at::parallel_for(0, at::get_num_threads(), 1, [&](int64_t begin, int64_t end) {
    const c10::InferenceMode no_autograd;
    for (; begin < end; ++begin) {
      for (size_t i = next++; i < count; i = next++) function(i);
    }
  });
}

class TorchForward : public Forward {
 public:
  TorchForward(const Network& network, const Signature& signature, const Placement& placement,
               const TensorBatch& batch, const std::vector<OutputOptions>& options, int64_t rows)
      : signature_(signature), placement_(placement), rows_(rows) {
    std::vector<SequenceRange> ranges = {{0, batch.size}};
    if (!signature.request_is_unit && placement.on_host())
      ranges = ShareOut(Costs(batch), at::get_num_threads());
    parts_.resize(ranges.size());
    SideBySide(ranges.size(), [&](size_t i) {
      const auto first = options.begin() + ranges[i].first;
      Part& part = parts_[i];
      part.options.assign(first, first + ranges[i].count);
      // A batch that stays whole keeps what the device knows of its layout.
      TensorBatch own = ranges.size() == 1 ? batch : PartOf(batch, signature, ranges[i]);
      part.axes = own.axes;
      part.pass = network.Begin(std::move(own));
    });
  }

  // Of a pass that was recorded, and has been asked for already.
  TorchForward(const Signature& signature, const Placement& placement,
               RecordedPasses::Replayed replayed, std::vector<OutputOptions> options)
      : signature_(signature), placement_(placement), rows_(1) {
    parts_.push_back({std::move(replayed.axes), std::move(options), std::move(replayed.pass),
                      /*done=*/true});
  }

  ~TorchForward() override {
    if (placement_.lost()) Leak(std::move(parts_));
  }

  // On a device a pass that is complete has been asked for, and so have its results.
  absl::StatusOr<bool> Advance(int64_t budget) override {
    return Guarded(placement_, [&] {
      std::atomic<bool> going_on;
      do {
        going_on = false;
        SideBySide(parts_.size(), [&](size_t i) {
          if (parts_[i].Step()) going_on = true;
        });
        budget -= rows_;
      } while (going_on && budget > 0);
      if (!going_on && !placement_.on_host()) {
        results_ = Collect();
        finished_.emplace(placement_);
      }
      return !going_on;
    });
  }

  // Sequences that are computed together are left out together.
  bool Forget(size_t sequence) override {
    for (Part& part : parts_) {
      if (sequence < part.options.size()) return part.Forget();
      sequence -= part.options.size();
    }
    return false;
  }

  absl::StatusOr<std::vector<TensorMap>> TakeResults() override {
    return Guarded(placement_, [&] {
      if (!finished_) return Collect();
      finished_->Wait();
      return std::move(results_);
    });
  }

 private:
  std::vector<TensorMap> Collect() {
    std::vector<std::vector<TensorMap>> of_parts(parts_.size());
    SideBySide(parts_.size(), [&](size_t i) {
      Part& part = parts_[i];
      of_parts[i] = part.pass == nullptr
                        ? std::vector<TensorMap>(part.options.size())
                        : ResultsOf(*part.pass, signature_, placement_, part.axes, part.options);
    });
    std::vector<TensorMap> results;
    for (std::vector<TensorMap>& part : of_parts) {
      results.insert(results.end(), std::make_move_iterator(part.begin()),
                     std::make_move_iterator(part.end()));
    }
    return results;
  }

  // Sequences that are computed together.
  struct Part {
    std::map<char, AxisLayout> axes;
    std::vector<OutputOptions> options;
    std::shared_ptr<Pass> pass;  // null once all of its sequences are forgotten
    bool done = false;
    size_t forgotten = 0;

    // Computes the next layer; false once there is none left.
    bool Step() { return !done && !(done = !pass->Step()); }

    bool Forget() {
      if (++forgotten < options.size() || done) return false;
      pass.reset();
      return done = true;
    }
  };

  const Signature& signature_;
  const Placement& placement_;
  std::vector<Part> parts_;
  std::vector<TensorMap> results_;  // on a device, once the pass is complete
  std::optional<Placement::Finished> finished_;
  int64_t rows_;
};

class TorchModel : public Model {
 public:
  TorchModel(std::unique_ptr<Network> network, ModelInfo info, const Placement& placement)
      : placement_(placement),
        network_(std::move(network)),
        info_(std::move(info)),
        recorded_(*network_, info_, placement_) {}

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
    return [this](DType dtype, const Shape& shape) {
      try {
        return placement_.Allocate(dtype, shape);
      } catch (const c10::AcceleratorError&) {
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

  absl::StatusOr<std::unique_ptr<Forward>> Start(Batch batch) override {
    return Guarded(placement_, [&]() -> std::unique_ptr<Forward> {
      TensorBatch tensors;
      tensors.padding = batch.padding;
      tensors.size = static_cast<int64_t>(batch.size());
      tensors.axes = std::move(batch.axes);
      for (const auto& [name, tensor] : batch.inputs) {
        at::Tensor input = placement_.ToDevice(ToAten(tensor));
        if (input.is_floating_point()) input = input.to(ToScalarType(info_.dtype));
        tensors.inputs[name] = std::move(input);
      }
      if (auto replayed = recorded_.Replay(tensors)) {
        return std::make_unique<TorchForward>(info_.signature, placement_, *std::move(replayed),
                                              std::move(batch.options));
      }
      for (auto& [letter, layout] : tensors.axes) placement_.AddTable(layout);
      return std::make_unique<TorchForward>(*network_, info_.signature, placement_, tensors,
                                            batch.options, batch.rows);
    });
  }

 private:
  const Placement placement_;
  std::unique_ptr<Network> network_;
  ModelInfo info_;
  RecordedPasses recorded_;
};

}  // namespace

std::unique_ptr<Model> MakeTorchModel(std::unique_ptr<Network> network, ModelInfo info,
                                      const Placement& placement) {
  return std::make_unique<TorchModel>(std::move(network), std::move(info), placement);
}

}  // namespace linserve
