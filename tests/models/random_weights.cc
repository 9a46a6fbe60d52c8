#include "models/random_weights.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "core/files/safetensors.h"

namespace linserve {
namespace {

std::string PathOf(const std::string& directory) { return directory + "/model.safetensors"; }

}  // namespace

TensorMap ReadWeights(const std::string& directory) {
  auto file = ReadSafetensors(PathOf(directory));
  EXPECT_TRUE(file.ok()) << file.status();
  return file.ok() ? file->tensors : TensorMap();
}

void WriteWeights(const std::string& directory, const TensorMap& weights) {
  const absl::Status status = WriteSafetensors(PathOf(directory), weights);
  EXPECT_TRUE(status.ok()) << status;
}

void RandomiseWeights(const std::string& directory, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal;
  TensorMap weights;
  for (const auto& [name, tensor] : ReadWeights(directory)) {
    // Values of a matrix or a filter are small, so that products keep their size; those of a vector
    // are larger.
    const Shape& shape = tensor.shape();
    const int64_t fan_in = shape.size() < 2 ? 4 : tensor.elements() / shape[0];
    const float scale = 1.0f / std::sqrt(static_cast<float>(fan_in));
    std::vector<float> values(static_cast<size_t>(tensor.elements()));
    for (float& value : values) value = normal(random) * scale;
    const size_t end = name.rfind('.');
    const std::string module = end == std::string::npos ? "" : name.substr(0, end);
    const bool is_norm = module.substr(module.rfind('.') + 1).find("norm") != std::string::npos;
    if (is_norm && name.ends_with(".weight")) {
      for (float& value : values) value += 1;
    }
    weights[name] = Tensor::FromFloats(shape, values);
  }
  WriteWeights(directory, weights);
}

}  // namespace linserve
