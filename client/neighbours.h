#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "core/tensor.h"

namespace linserve {

struct Neighbour {
  size_t index = 0;
  double cosine = 0;
};

// The elements of a tensor of any type.
std::vector<float> ToFloats(const Tensor& tensor);

// The vector over its length; one of zeros stays as it is.
std::vector<float> Unit(std::vector<float> vector);

// The `count` vectors, or all if they are fewer, of the largest cosine with `query`, the largest
// first. All are Unit()'s, and of one dimension.
std::vector<Neighbour> Nearest(const std::vector<float>& query,
                               const std::vector<std::vector<float>>& vectors, size_t count);

// For each vector the other one of the largest cosine; nullopt for one that has no other of its
// length. A vector of zeros, and an empty one, is nobody's neighbour.
std::vector<std::optional<Neighbour>> NearestByCosine(
    const std::vector<std::vector<float>>& vectors);

// A line of text and its embedding.
struct EmbeddedLine {
  std::string text;
  absl::Status status;
  int64_t tokens = 0;
  std::chrono::nanoseconds latency{0};
  std::vector<float> vector;
};

// A table of one row a line: its length, its latency, its first values and its nearest neighbour.
std::string NeighbourTable(const std::vector<EmbeddedLine>& lines);

// At most `columns` characters of UTF-8 text, the last one an ellipsis if more follow; without
// control characters. What is not UTF-8 becomes '?'.
std::string Excerpt(const std::string& text, size_t columns);

}  // namespace linserve
