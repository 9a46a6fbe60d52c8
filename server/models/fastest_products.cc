#include "models/fastest_products.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "attention/products/block_product.h"
#include "attention/rows/aten.h"
#include "core/system/seconds.h"
#include "core/threads/mutex.h"
#include "models/network/packed_weight.h"
#include "telemetry/log.h"

namespace linserve {
namespace {

using Clock = std::chrono::steady_clock;
using Shape2 = std::pair<int64_t, int64_t>;  // outputs, inputs

// A larger matrix is measured by a part of it: its panels are as large.
constexpr int64_t kMostMeasured = 1024;
// Less is not worth the digits.
constexpr double kWorthwhile = 1.1;

// Returns the shapes of the matrices that most is multiplied by.
std::vector<Shape2> LargestShapes(const ParameterList& parameters) {
  constexpr size_t kMost = 3;
  std::map<Shape2, int64_t> elements;
  for (const Parameter& parameter : parameters) {
    if (parameter.kept != Kept::kPacked) continue;
    const Shape2 shape = {std::min(parameter.shape[0], kMostMeasured),
                          std::min(parameter.shape[1], kMostMeasured)};
    elements[shape] += parameter.shape[0] * parameter.shape[1];
  }
  std::vector<Shape2> shapes;
  for (const auto& [shape, count] : elements) shapes.push_back(shape);
  std::ranges::stable_sort(
      shapes, [&](const Shape2& a, const Shape2& b) { return elements[a] > elements[b]; });
  shapes.resize(std::min(shapes.size(), kMost));
  return shapes;
}

// Returns the operations a second of products with a matrix.
double Speed(const Shape2& shape, DType products) {
  constexpr int kTimes = 4;
  const auto [outputs, inputs] = shape;
  const PackedWeight weight(at::ones({outputs, inputs}, at::kFloat), products);
  const at::Tensor rows = at::ones({kBlockRows, inputs}, at::kFloat);
  const at::Tensor result = at::empty({kBlockRows, outputs}, at::kFloat);
  double least = std::numeric_limits<double>::infinity();
  for (int time = 0; time < kTimes; ++time) {  // of which the first makes the kernels
    const auto start = Clock::now();
    weight.Multiply(BlockOf(rows), kBlockRows, BlockOf(result), /*add=*/false);
    least = std::min(least, Seconds(Clock::now() - start));
  }
  return 2.0 * static_cast<double>(kBlockRows * outputs * inputs) / least;
}

// Returns the speed of each type over all shapes.
std::map<DType, double> Measure(const std::vector<Shape2>& shapes) {
  std::map<DType, double> speeds;
  for (const DType type : ProductTypes()) {
    double operations = 0;
    double seconds = 0;
    for (const Shape2& shape : shapes) {
      const auto size = static_cast<double>(shape.first * shape.second);
      operations += size;
      seconds += size / Speed(shape, type);
    }
    speeds[type] = operations / seconds;
  }
  return speeds;
}

}  // namespace

DType FastestProducts(const ParameterList& parameters, bool int8_allowed) {
  static Mutex mutex;
  static auto* known = new std::map<std::vector<Shape2>, std::map<DType, double>>;
  const std::vector<Shape2> shapes = LargestShapes(parameters);
  if (shapes.empty()) return DType::kF32;
  MutexLock lock(mutex);
  const auto [place, is_new] = known->try_emplace(shapes);
  std::map<DType, double>& speeds = place->second;
  if (is_new) speeds = Measure(shapes);
  DType fastest = DType::kF32;
  for (const auto& [type, speed] : speeds) {
    if (type == DType::kI8 && !int8_allowed) continue;
    if (speed > kWorthwhile * speeds[fastest]) fastest = type;
  }
  if (is_new) {
    const auto giga = [&](DType type) { return static_cast<int64_t>(speeds[type] / 1e9); };
    Log(LogLevel::kInfo, "products measured",
        {{"chosen", std::string(Name(fastest))},
         {"f32_gop_s", giga(DType::kF32)},
         {"bf16_gop_s", giga(DType::kBF16)},
         {"int8_gop_s", giga(DType::kI8)}});
  }
  return fastest;
}

}  // namespace linserve
