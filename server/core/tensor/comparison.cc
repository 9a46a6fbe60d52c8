#include "core/tensor/comparison.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <limits>
#include <vector>

namespace linserve {
namespace {

// Compares one row: adds to the sums, and to the cosines if the row has a direction.
void CompareRow(const std::vector<float>& a, const std::vector<float>& b, Comparison& sums) {
  double dot = 0;
  double a_square = 0;
  double b_square = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double difference = std::abs(double{a[i]} - double{b[i]});
    const bool number = !std::isnan(difference);
    sums.largest =
        number ? std::max(sums.largest, difference) : std::numeric_limits<double>::infinity();
    sums.mean += difference;
    dot += double{a[i]} * double{b[i]};
    a_square += double{a[i]} * double{a[i]};
    b_square += double{b[i]} * double{b[i]};
  }
  if (a_square == 0 && b_square == 0) return;
  const double norms = std::sqrt(a_square) * std::sqrt(b_square);
  const double cosine = std::isnan(norms) ? -1 : norms > 0 ? dot / norms : 0;
  sums.mean_cosine += cosine;
  sums.smallest_cosine = std::min(sums.smallest_cosine, cosine);
  ++sums.rows;
}

}  // namespace

void Comparison::Add(const Comparison& other) {
  const auto weighted = [](double a, int64_t n, double b, int64_t m, double none) {
    return n + m == 0 ? none
                      : (a * static_cast<double>(n) + b * static_cast<double>(m)) /
                            static_cast<double>(n + m);
  };
  largest = std::max(largest, other.largest);
  mean = weighted(mean, elements, other.mean, other.elements, 0);
  mean_cosine = weighted(mean_cosine, rows, other.mean_cosine, other.rows, 1);
  smallest_cosine = std::min(smallest_cosine, other.smallest_cosine);
  rows += other.rows;
  elements += other.elements;
}

absl::StatusOr<Comparison> Compare(const Tensor& a, const Tensor& b) {
  if (a.shape() != b.shape()) {
    return absl::InvalidArgumentError("shapes differ: " + ToString(a.shape()) + " and " +
                                      ToString(b.shape()));
  }
  if (!IsFloat(a.dtype()) || !IsFloat(b.dtype())) {
    return absl::InvalidArgumentError("types are " + std::string(Name(a.dtype())) + " and " +
                                      std::string(Name(b.dtype())) + ", expected float types");
  }
  Comparison result;
  result.elements = a.elements();
  if (result.elements == 0) return result;
  const auto width = static_cast<size_t>(a.shape().empty() ? 1 : a.shape().back());
  std::vector<float> left(width);
  std::vector<float> right(width);
  result.mean_cosine = 0;
  for (size_t at = 0; at < static_cast<size_t>(result.elements); at += width) {
    ConvertToFloat(a.dtype(), a.bytes() + at * ByteSize(a.dtype()), static_cast<int64_t>(width),
                   left.data());
    ConvertToFloat(b.dtype(), b.bytes() + at * ByteSize(b.dtype()), static_cast<int64_t>(width),
                   right.data());
    CompareRow(left, right, result);
  }
  result.mean /= static_cast<double>(result.elements);
  result.mean_cosine = result.rows > 0 ? result.mean_cosine / static_cast<double>(result.rows) : 1;
  return result;
}

std::string ToString(const Comparison& comparison) {
  std::array<char, 200> text;
  std::snprintf(
      text.data(), text.size(),
      "largest difference %.3g, mean %.3g; cosine mean %.6f, smallest %.6f over %lld rows",
      comparison.largest, comparison.mean, comparison.mean_cosine, comparison.smallest_cosine,
      static_cast<long long>(comparison.rows));
  return text.data();
}

}  // namespace linserve
