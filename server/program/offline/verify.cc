#include "program/offline/verify.h"

#include <random>
#include <utility>
#include <vector>

#include "core/workload/lengths.h"
#include "core/workload/random_item.h"

namespace linserve {
namespace {

constexpr int64_t kSequences = 16;

absl::StatusOr<std::vector<TensorMap>> Results(const OfflineModel& model,
                                               const LengthDistribution& lengths) {
  Metrics metrics({});
  auto engine = StartOffline(model, metrics.ForModel("verify", 1));
  if (!engine.ok()) return engine.status();
  std::mt19937_64 random(1);
  std::vector<Item> items;
  for (int64_t i = 0; i < kSequences; ++i) {
    items.push_back(RandomItem((*engine)->info().signature, lengths, random));
  }
  return RunAll(**engine, std::move(items), [](size_t, size_t) {});
}

}  // namespace

absl::StatusOr<Comparison> CompareWithF32(OfflineModel model, const std::string& dtype,
                                          int64_t longest) {
  const auto lengths = LengthDistribution::Parse("uniform:1," + std::to_string(longest));
  if (!lengths.ok()) return lengths.status();
  model.serving.replicas = 1;
  model.serving.dtype = "f32";
  const auto exact = Results(model, *lengths);
  if (!exact.ok()) return exact.status();
  model.serving.dtype = dtype;
  const auto other = Results(model, *lengths);
  if (!other.ok()) return other.status();
  Comparison sum;
  for (size_t i = 0; i < exact->size(); ++i) {
    const Tensor& tensor = (*other)[i].begin()->second;
    const auto comparison = Compare((*exact)[i].begin()->second, tensor);
    if (!comparison.ok()) return comparison.status();
    sum.Add(*comparison);
  }
  return sum;
}

}  // namespace linserve
