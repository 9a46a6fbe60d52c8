#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "client/library/calls.h"
#include "core/tensor/tensor.h"

namespace linserve {

struct Neighbour {
  size_t index = 0;
  double cosine = 0;
};

// Returns OK if the model gives vectors, which `what` compares, and no scores of classes.
absl::Status CheckGivesVectors(const ModelDescription& model, const std::string& what);

// Converts the elements of a tensor of any type.
std::vector<float> ToFloats(const Tensor& tensor);

// Divides the vector by its length; one of zeros stays as it is.
std::vector<float> Unit(std::vector<float> vector);

// Finds the `count` vectors, or all if they are fewer, of the largest cosine with `query`, the
// largest first. All vectors come from Unit() and are of one dimension.
std::vector<Neighbour> Nearest(const std::vector<float>& query,
                               const std::vector<std::vector<float>>& vectors, size_t count);

// Finds for each vector the other one of the largest cosine; nullopt for one that has no other of
// its length. A vector of zeros, and an empty one, is nobody's neighbour.
std::vector<std::optional<Neighbour>> NearestByCosine(
    const std::vector<std::vector<float>>& vectors);

// Holds a line of text and its embedding.
struct EmbeddedLine {
  std::string id;  // its number in the file
  std::string text;
  absl::Status status;
  int64_t tokens = 0;
  std::chrono::nanoseconds latency{0};
  std::vector<float> vector;
};

// Makes a table of one row a line: its length, its latency, its first values and its nearest
// neighbour.
std::string NeighbourTable(const std::vector<EmbeddedLine>& lines);

// Returns at most `columns` characters of UTF-8 text, the last one an ellipsis if more follow;
// without control characters. What is not UTF-8 becomes '?'.
std::string Excerpt(const std::string& text, size_t columns);

}  // namespace linserve
