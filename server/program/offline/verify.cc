#include "program/offline/verify.h"

#include <cmath>
#include <random>
#include <utility>

#include "core/workload/lengths.h"
#include "core/workload/random_item.h"
#include "models/model_loader.h"

namespace linserve {
namespace {

constexpr int64_t kSequences = 64;

absl::StatusOr<std::vector<Item>> ItemsOf(const std::string& input, int64_t longest,
                                          const Signature& signature) {
  if (!input.empty()) return ReadItems(input, signature);
  const auto lengths = LengthDistribution::Parse("uniform:1," + std::to_string(longest));
  if (!lengths.ok()) return lengths.status();
  std::mt19937_64 random(1);
  std::vector<Item> items;
  for (int64_t i = 0; i < kSequences; ++i) {
    items.push_back(RandomItem(signature, *lengths, random));
  }
  return items;
}

// Returns the first output of each sequence.
absl::StatusOr<std::vector<Tensor>> Results(Engine& engine, std::vector<Item> items) {
  const auto all = RunAll(engine, std::move(items), [](size_t, size_t) {});
  if (!all.ok()) return all.status();
  std::vector<Tensor> results;
  for (const TensorMap& outputs : *all) results.push_back(outputs.begin()->second);
  return results;
}

// Returns the mean of a tensor's rows, of length one.
std::vector<double> DirectionOf(const Tensor& tensor) {
  const auto width = static_cast<size_t>(tensor.shape().empty() ? 1 : tensor.shape().back());
  std::vector<float> elements(static_cast<size_t>(tensor.elements()));
  ConvertToFloat(tensor, elements.data());
  std::vector<double> sum(width);
  for (size_t i = 0; i < elements.size(); ++i) sum[i % width] += elements[i];
  double square = 0;
  for (const double element : sum) square += element * element;
  for (double& element : sum) element /= square > 0 ? std::sqrt(square) : 1;
  return sum;
}

// Returns for each sequence which other one is nearest to it.
std::vector<size_t> Neighbours(const std::vector<Tensor>& results) {
  std::vector<std::vector<double>> directions;
  for (const Tensor& result : results) directions.push_back(DirectionOf(result));
  std::vector<size_t> nearest(results.size());
  for (size_t i = 0; i < results.size(); ++i) {
    double most = -2;
    for (size_t j = 0; j < results.size(); ++j) {
      double cosine = 0;
      const size_t width = std::min(directions[i].size(), directions[j].size());
      for (size_t k = 0; k < width; ++k) cosine += directions[i][k] * directions[j][k];
      if (i == j || cosine <= most) continue;
      most = cosine;
      nearest[i] = j;
    }
  }
  return nearest;
}

absl::StatusOr<Verification> CompareResults(const std::string& dtype,
                                            const std::vector<Tensor>& exact,
                                            const std::vector<size_t>& neighbours,
                                            const std::vector<Tensor>& other) {
  Verification verification;
  verification.dtype = dtype;
  for (size_t i = 0; i < exact.size(); ++i) {
    const auto comparison = Compare(exact[i], other[i]);
    if (!comparison.ok()) return comparison.status();
    verification.rows.Add(*comparison);
  }
  const std::vector<size_t> after = Neighbours(other);
  verification.sequences = std::ssize(exact);
  for (size_t i = 0; i < after.size(); ++i) {
    verification.changed_neighbours += neighbours[i] != after[i];
  }
  return verification;
}

}  // namespace

absl::StatusOr<std::vector<Verification>> VerifyTypes(OfflineModel model, const std::string& input,
                                                      int64_t longest) {
  model.serving.replicas = 1;
  model.serving.dtype = "f32";
  Metrics metrics({});
  auto engine = StartOffline(model, metrics.ForModel("verify", 1));
  if (!engine.ok()) return engine.status();
  const auto items = ItemsOf(input, longest, (*engine)->info().signature);
  if (!items.ok()) return items.status();
  const auto exact = Results(**engine, *items);
  if (!exact.ok()) return exact.status();
  const std::vector<size_t> neighbours = Neighbours(*exact);
  std::vector<Verification> verifications;
  for (const std::string& dtype : TypesOfCpu()) {
    if (dtype == "f32") continue;
    engine->reset();  // one model at a time
    model.serving.dtype = dtype;
    engine = StartOffline(model, metrics.ForModel("verify", 1));
    if (!engine.ok()) return engine.status();
    const auto other = Results(**engine, *items);
    if (!other.ok()) return other.status();
    auto verification = CompareResults(dtype, *exact, neighbours, *other);
    if (!verification.ok()) return verification.status();
    verifications.push_back(*std::move(verification));
  }
  return verifications;
}

std::string ToString(const Verification& verification) {
  return verification.dtype + " to f32    " + ToString(verification.rows) +
         "; nearest neighbour changed for " + std::to_string(verification.changed_neighbours) +
         " of " + std::to_string(verification.sequences);
}

}  // namespace linserve
