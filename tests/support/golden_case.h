#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/tensor.h"

namespace linserve {

// A golden case: a model directory with what its Python package makes of some inputs.
class GoldenCase {
 public:
  explicit GoldenCase(const std::filesystem::path& directory);

  const std::string& directory() const { return directory_; }
  std::string name() const { return std::filesystem::path(directory_).filename(); }
  double tolerance() const { return config_.at("tolerance"); }
  // Layers, of the deeper half where there are two.
  int64_t depth() const;
  bool compares_valid_rows_only() const { return config_.value("compare", "all") == "valid"; }
  // Its numbers are those of the package's own Padder, which computes zeros as data.
  bool needs_zeros() const;

  // The tensors of the file, in the package's layout, by names like "input.x" and "output.y".
  const TensorMap& tensors() const { return tensors_; }
  std::vector<std::string> outputs() const;

  size_t sequences() const;
  // The inputs of one sequence, without a batch axis, of its true length.
  TensorMap Inputs(size_t sequence) const;
  // What is expected of it, likewise.
  Tensor Output(const std::string& name, size_t sequence) const;

  // The largest distance that counts between what is expected and what was computed: infinite if
  // the shapes differ or a number is none. `sequence`: of one sequence.
  double Distance(const std::string& output, const Tensor& computed) const;
  double Distance(const std::string& output, const Tensor& computed, size_t sequence) const;

 private:
  // Axis of the sequences in a tensor of the file; -1: none, it is for all of them.
  int BatchAxis(const std::string& name) const;
  Tensor Part(const std::string& name, size_t sequence) const;
  int64_t Length(size_t sequence) const;
  const Tensor& first_input() const;

  std::string directory_;
  nlohmann::json config_;
  TensorMap tensors_;
};

// All cases below the directory, by name.
std::vector<GoldenCase> GoldenCases(const std::filesystem::path& root);

}  // namespace linserve
