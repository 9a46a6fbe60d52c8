#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/tensor/tensor.h"

namespace linserve {

// Holds a golden case: a model directory with what its Python package makes of some inputs.
class GoldenCase {
 public:
  explicit GoldenCase(const std::filesystem::path& directory);

  const std::string& directory() const { return directory_; }
  std::string name() const { return std::filesystem::path(directory_).filename(); }
  double tolerance() const { return config_.at("tolerance"); }
  // Counts the layers, those of the deeper half where there are two.
  int64_t depth() const;
  bool compares_valid_rows_only() const { return config_.value("compare", "all") == "valid"; }
  // Says whether rows in BF16 and F16 are nearly its own.
  bool compares_in_16_bits() const;
  // Returns whether its numbers are those of the package's own Padder, which computes zeros as
  // data.
  bool needs_zeros() const;

  // Returns the tensors of the file, in the package's layout, by names like "input.x" and
  // "output.y".
  const TensorMap& tensors() const { return tensors_; }
  std::vector<std::string> outputs() const;

  size_t sequences() const;
  // Returns the inputs of one sequence, without a batch axis, of its true length.
  TensorMap Inputs(size_t sequence) const;
  // Returns what is expected of one sequence, without a batch axis, of its true length.
  Tensor Output(const std::string& name, size_t sequence) const;

  // Returns the largest distance that counts between what is expected and what was computed:
  // infinite if the shapes differ or a number is none. With `sequence`, `computed` is of that
  // sequence alone.
  double Distance(const std::string& output, const Tensor& computed) const;
  double Distance(const std::string& output, const Tensor& computed, size_t sequence) const;

 private:
  // Returns the axis of the sequences in a tensor of the file; -1 if there is none because the
  // tensor is for all of them.
  int BatchAxis(const std::string& name) const;
  Tensor Part(const std::string& name, size_t sequence) const;
  int64_t Length(size_t sequence) const;
  const Tensor& first_input() const;

  std::string directory_;
  nlohmann::json config_;
  TensorMap tensors_;
};

// Returns all cases below the directory, by name.
std::vector<GoldenCase> GoldenCases(const std::filesystem::path& root);

}  // namespace linserve
