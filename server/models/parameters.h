#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

namespace linserve {

// How `linserve init` fills a parameter.
enum class Init : uint8_t {
  kUniform,  // in ±1/sqrt(fan-in), the last axis: torch.nn.Linear's own
  kNormal,   // standard deviation 1/sqrt(last axis): embeddings and projections
  kOnes,
  kZeros,
};

// One tensor of a network: its name in the Python package's state_dict, and where it goes.
struct Parameter {
  std::string name;
  std::vector<int64_t> shape;
  at::Tensor* slot;
  Init init;
};

// The parameters of a network in the order of their declaration. Loading, random initialisation
// and inspection are loops over it.
using ParameterList = std::vector<Parameter>;

// A place in the tree of a state_dict's names. Modules declare their tensors in it once they are
// where they stay: the list keeps pointers to their members.
class Scope {
 public:
  explicit Scope(ParameterList& list) : list_(&list) {}

  Scope operator/(const std::string& name) const { return Scope(*list_, Join(name)); }
  Scope operator/(int64_t index) const { return *this / std::to_string(index); }

  void Declare(const std::string& name, at::Tensor& slot, std::vector<int64_t> shape,
               Init init) const {
    list_->push_back({Join(name), std::move(shape), &slot, init});
  }

 private:
  Scope(ParameterList& list, std::string prefix) : list_(&list), prefix_(std::move(prefix)) {}
  std::string Join(const std::string& name) const {
    return prefix_.empty() ? name : prefix_ + "." + name;
  }

  ParameterList* list_;
  std::string prefix_;
};

}  // namespace linserve
