#include "models/torch_model.h"

#include <map>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "attention/aten.h"
#include "models/tensor_bridge.h"

namespace linserve {
namespace {

// The one place where LibTorch's exceptions become a status.
template <typename Function>
auto Guarded(const Function& function) -> absl::StatusOr<decltype(function())> {
  try {
    const c10::InferenceMode no_autograd;
    return function();
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError("not enough memory for the forward pass");
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

// rows [n, ...] of one sequence -> [...]
at::Tensor Pool(const at::Tensor& rows, Pooling pooling) {
  switch (pooling) {
    case Pooling::kNone:
      return rows;
    case Pooling::kMean:
      return rows.mean(0);
    case Pooling::kCls:
      return rows.select(0, 0);
    case Pooling::kLast:
      return rows.select(0, -1);
    case Pooling::kMax:
      return rows.amax(0);
  }
  return rows;
}

// Normalised and converted in the order that loses least: the norm is taken in f32.
at::Tensor Finish(const at::Tensor& rows, const OutputOptions& options) {
  at::Tensor result = rows;
  if (options.normalize) {
    result = rows.to(at::kFloat);
    result = result / result.norm(2, {-1}, /*keepdim=*/true).clamp_min(1e-12);
  }
  return result.to(ToScalarType(options.dtype));
}

// Sequences of a batch that want the same done to their rows.
struct Group {
  OutputOptions options;
  std::vector<size_t> members;
};

std::vector<Group> GroupByOptions(const std::vector<OutputOptions>& options) {
  std::vector<Group> groups;
  for (size_t i = 0; i < options.size(); ++i) {
    if (groups.empty() || groups.back().options != options[i]) {
      groups.push_back({options[i], {}});
    }
    groups.back().members.push_back(i);
  }
  return groups;
}

class TorchForward : public Forward {
 public:
  TorchForward(const Signature& signature, std::unique_ptr<Pass> pass,
               std::map<char, AxisLayout> axes, std::vector<OutputOptions> options, int64_t rows)
      : signature_(signature),
        pass_(std::move(pass)),
        axes_(std::move(axes)),
        options_(std::move(options)),
        rows_(rows) {}

  absl::StatusOr<bool> Advance(int64_t budget) override {
    return Guarded([&] {
      do {
        if (!pass_->Step()) return true;
        budget -= rows_;
      } while (budget > 0);
      return false;
    });
  }

  absl::StatusOr<std::vector<TensorMap>> TakeResults() override {
    return Guarded([&] {
      std::vector<TensorMap> results(options_.size());
      for (const Group& group : GroupByOptions(options_)) {
        std::vector<std::string> names = group.options.outputs;
        if (names.empty()) names = {signature_.outputs[0].name};
        for (const std::string& name : names) Collect(group, name, results);
      }
      return results;
    });
  }

 private:
  const at::Tensor& Rows(const std::string& name) {
    at::Tensor& rows = computed_[name];
    if (!rows.defined()) rows = pass_->Output(name);
    return rows;
  }

  void Collect(const Group& group, const std::string& name, std::vector<TensorMap>& results) {
    const char letter = signature_.FindOutput(name)->axes[0].letter;
    const AxisLayout& layout = axes_.at(letter);
    if (group.options.pooling == Pooling::kNone) {
      const Tensor rows = FromAten(Finish(Rows(name), group.options));
      for (size_t i : group.members) results[i][name] = Crop(layout, rows, i);
      return;
    }
    std::vector<at::Tensor> pooled;
    for (size_t i : group.members) {
      const at::Tensor rows = Rows(name).narrow(0, layout.starts[i], layout.lengths[i]);
      pooled.push_back(Pool(rows, group.options.pooling));
    }
    const Tensor vectors = FromAten(Finish(at::stack(pooled), group.options));
    for (size_t at = 0; at < group.members.size(); ++at) {
      const auto row = static_cast<int64_t>(at);
      Shape shape(vectors.shape().begin() + 1, vectors.shape().end());
      results[group.members[at]][name] = vectors.Rows(row, row + 1).Reshaped(std::move(shape));
    }
  }

  const Signature& signature_;
  std::unique_ptr<Pass> pass_;
  std::map<char, AxisLayout> axes_;
  std::vector<OutputOptions> options_;
  int64_t rows_;
  std::map<std::string, at::Tensor> computed_;
};

class TorchModel : public Model {
 public:
  TorchModel(std::unique_ptr<Network> network, ModelInfo info)
      : network_(std::move(network)), info_(std::move(info)) {}

  const ModelInfo& info() const override { return info_; }

  absl::StatusOr<std::unique_ptr<Forward>> Start(Batch batch) override {
    return Guarded([&]() -> std::unique_ptr<Forward> {
      TensorBatch tensors;
      tensors.padding = batch.padding;
      tensors.axes = batch.axes;
      for (const auto& [name, tensor] : batch.inputs) {
        at::Tensor input = ToAten(tensor);
        if (input.is_floating_point()) input = input.to(ToScalarType(info_.dtype));
        tensors.inputs[name] = std::move(input);
      }
      const int64_t rows = batch.rows();
      return std::make_unique<TorchForward>(info_.signature, network_->Begin(std::move(tensors)),
                                            std::move(batch.axes), std::move(batch.options), rows);
    });
  }

 private:
  std::unique_ptr<Network> network_;
  ModelInfo info_;
};

}  // namespace

std::unique_ptr<Model> MakeTorchModel(std::unique_ptr<Network> network, ModelInfo info) {
  return std::make_unique<TorchModel>(std::move(network), std::move(info));
}

}  // namespace linserve
