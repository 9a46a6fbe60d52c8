// This program is a server whose model computes nothing: what a request costs then is the serving
// alone.
// Usage: null_model_server tokens|floats. It takes token ids, or rows of 256 floats as it gives
// them. It prints the port, and ends when its standard input does.
#include <iostream>
#include <string>

#include "core/sequence/batch.h"
#include "core/threads/lock_cycles.h"
#include "engine/engine.h"
#include "repository/repository.h"
#include "rpc/grpc_server.h"
#include "telemetry/metrics.h"

namespace linserve {
namespace {

constexpr int64_t kLongest = 16384;
constexpr int64_t kDim = 256;

// Gives rows of zeros that were made once.
class NullForward final : public Forward {
 public:
  NullForward(const Batch& batch, const Tensor& zeros)
      : layout_(batch.axes.at('n')), options_(batch.options), zeros_(zeros) {}

  absl::StatusOr<bool> Advance(const Between&) override { return true; }

  absl::StatusOr<Results> TakeResults(const Between&) override {
    Results results;
    for (size_t i = 0; i < options_.size(); ++i) {
      const bool pooled = options_[i].pooling != Pooling::kNone;
      const Tensor rows = zeros_.Rows(0, pooled ? 1 : layout_.lengths[i]);
      results.push_back(TensorMap{
          {"y",
           pooled ? Tensor(rows.dtype(), {rows.shape()[1]}, rows.bytes(), rows.owner()) : rows}});
    }
    return results;
  }

 private:
  const AxisLayout layout_;
  const std::vector<OutputOptions> options_;
  const Tensor& zeros_;
};

class NullModel final : public Model {
 public:
  explicit NullModel(bool floats) : zeros_(Tensor::Allocate(DType::kF32, {kLongest, kDim}).first) {
    const Axis n = Axis::Ragged('n');
    info_.architecture = "bench.Null";
    info_.device = "cpu";
    info_.signature.inputs = {{"x", InputKind::kToken, {n}, false, 20000}};
    if (floats) info_.signature.inputs = {{"x", InputKind::kFloat, {n, Axis::Fixed(kDim)}}};
    info_.signature.outputs = {{"y", {n, Axis::Fixed(kDim)}}};
    info_.signature.limits = {{'n', kLongest, ""}};
  }

  const ModelInfo& info() const override { return info_; }

  absl::StatusOr<std::unique_ptr<Forward>> Start(Batch batch) override {
    return std::make_unique<NullForward>(batch, zeros_);
  }

 private:
  ModelInfo info_;
  Tensor zeros_;
};

int Serve(bool floats) {
  Metrics metrics({});
  ModelRepository repository(metrics);
  auto engine = Engine::Start(
      {}, [floats](int64_t /*replica*/) { return std::make_unique<NullModel>(floats); },
      metrics.ForModel("null", 1));
  if (!engine.ok()) {
    std::cerr << engine.status() << "\n";
    return 1;
  }
  auto model = std::make_unique<ServedModel>();
  model->name = "null";
  model->version = 1;
  model->engine = *std::move(engine);
  repository.Publish(std::move(model));
  auto server = GrpcServer::Start({.address = {"127.0.0.1", 0}}, repository, metrics);
  if (!server.ok()) {
    std::cerr << server.status() << "\n";
    return 1;
  }
  (*server)->SetServing(true);
  std::cout << (*server)->port() << std::endl;
  std::string line;
  while (std::getline(std::cin, line)) {
  }
  return 0;
}

}  // namespace
}  // namespace linserve

int main(int argc, char** argv) {
  linserve::OverlookLockCycles();
  return linserve::Serve(argc > 1 && std::string(argv[1]) == "floats");
}
