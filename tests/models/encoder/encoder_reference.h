#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/sequence/item.h"

namespace linserve {

// Computes linserve.Encoder by its formulas in float64, element by element, from a model directory.
class EncoderReference {
 public:
  using Rows = std::vector<std::vector<double>>;

  explicit EncoderReference(const std::string& directory);

  // Computes the rows y of one item.
  Rows Compute(const Item& item) const;

 private:
  Rows Matrix(const std::string& name) const;
  std::vector<double> Vector(const std::string& name) const;
  Rows Linear(const Rows& x, const std::string& name) const;
  Rows Norm(const Rows& x, const std::string& name) const;
  Rows Embed(const Item& item) const;
  Rows Attend(const Rows& x, const std::string& name, const std::vector<bool>& mask) const;

  nlohmann::json params_;
  TensorMap tensors_;
};

// Returns the largest difference to a tensor [n, dim]; infinite if one of them is not a number.
double LargestDifference(const Tensor& tensor, const EncoderReference::Rows& rows);

}  // namespace linserve
