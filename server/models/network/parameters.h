#pragma once

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/tensor/dtype.h"
#include "models/config/config_error.h"

namespace linserve {

// Says how `linserve init` fills a parameter.
enum class Init : uint8_t {
  kUniform,   // in ±1/sqrt(fan-in), the last axis: torch.nn.Linear's own
  kNormal,    // standard deviation 1/sqrt(last axis): embeddings and projections
  kNarrow,    // standard deviation 1/last axis: projections without parameters
  kStandard,  // standard deviation 1: directions of random features
  kOnes,
  kZeros,
};

// Says what PyTorch takes a tensor for. Only parameters are counted.
enum class ParameterKind : uint8_t {
  kParameter,
  kBuffer,  // a table by formula: as in the file, or the formula's where the file lacks it; in F32
  kDrawn,   // a table that was drawn once, and must be in the file; in F32
  kPlain,   // the package keeps it out of its state_dict, but the model needs it
};

// Says whether such a tensor stays in F32 whatever the model computes in.
constexpr bool StaysInF32(ParameterKind kind) {
  return kind == ParameterKind::kBuffer || kind == ParameterKind::kDrawn;
}

// Says in what type a tensor is kept on the CPU where the model multiplies in another than F32.
enum class Kept : uint8_t {
  kF32,
  kPacked,   // in that type (PackedWeight)
  kRounded,  // in BF16, whichever it is
};

// Is one tensor of a network: its names in the Python package's state_dict, and where it goes.
struct Parameter {
  std::vector<std::string> names;  // all that share the tensor; any of them in a file will do
  std::vector<int64_t> shape;
  at::Tensor* slot;
  Init init;
  ParameterKind kind = ParameterKind::kParameter;
  std::function<at::Tensor()> formula{};  // of a buffer
  Kept kept = Kept::kF32;

  const std::string& name() const { return names.front(); }
};

// Lists the parameters of a network in the order of their declaration. Loading, random
// initialisation and inspection are loops over it.
class ParameterList {
 public:
  // Brings weights into the form that the computation wants, for products in F32, BF16 or I8.
  using Preparation = std::function<void(DType products)>;

  // Adds a parameter; if its slot has one already, that one gets its names, too. Throws ConfigError
  // past a bound on names: a few numbers in a configuration can ask for more than memory holds.
  void Add(Parameter parameter) {
    if (++names_ > kMostNames) {
      throw ConfigError("the network would have more than " + std::to_string(kMostNames) +
                        " tensors; its layers, or its heads a layer, are too many");
    }
    const auto [place, added] = places_.try_emplace(parameter.slot, parameters_.size());
    if (added) return parameters_.push_back(std::move(parameter));
    std::vector<std::string>& names = parameters_[place->second].names;
    names.insert(names.end(), parameter.names.begin(), parameter.names.end());
  }

  // Returns the slot that was added by this name, one of its tensor's. REQUIRES: there is one.
  at::Tensor& Slot(const std::string& name) const {
    const auto is_named = [&name](const Parameter& parameter) {
      return std::find(parameter.names.begin(), parameter.names.end(), name) !=
             parameter.names.end();
    };
    return *std::find_if(parameters_.begin(), parameters_.end(), is_named)->slot;
  }

  // Says that a file may hold a tensor of this name, of which nothing is computed.
  void Ignore(std::string name) { ignored_.insert(std::move(name)); }
  bool Ignores(const std::string& name) const { return ignored_.contains(name); }

  // Says how the tensor of a slot, which was added, will be kept.
  void Keeps(at::Tensor& slot, Kept kept) { parameters_[places_.at(&slot)].kept = kept; }

  // Adds what is done once all tensors are in their slots that were declared before this call, and
  // those that follow it with names that begin with `prefix`.
  void AfterLoading(std::string prefix, Preparation prepare) {
    prepared_.push_back({std::move(prefix), parameters_.size(), std::move(prepare)});
  }
  // Calls load() for all parameters and each preparation, in the order of their declaration, but no
  // parameter before it is wanted: so few weights are there in two forms at once.
  void Load(DType products, const std::function<void(const Parameter&)>& load) const {
    size_t next = 0;
    for (const Prepared& module : prepared_) {
      while (next < module.declared) load(parameters_[next++]);
      while (next < parameters_.size() && parameters_[next].name().starts_with(module.prefix)) {
        load(parameters_[next++]);
      }
      module.prepare(products);
    }
    while (next < parameters_.size()) load(parameters_[next++]);
  }

  // Says that a file may hold tensors whose names are what `glob` says, which the model does
  // without.
  void LeavesOut(std::string glob) { left_out_.push_back(std::move(glob)); }
  const std::vector<std::string>& left_out() const { return left_out_; }

  // Says what stands before the names of the model beside which there are heads: "bert."; empty
  // where there is nothing beside it.
  void SetBody(std::string prefix) { body_ = std::move(prefix); }
  const std::string& body() const { return body_; }

  auto begin() const { return parameters_.begin(); }
  auto end() const { return parameters_.end(); }

 private:
  // These are more names than 4,096 layers have, which is the deepest that a configuration may ask
  // for.
  static constexpr size_t kMostNames = size_t{1} << 17;

  struct Prepared {
    std::string prefix;
    size_t declared;  // parameters before it
    Preparation prepare;
  };

  std::vector<Parameter> parameters_;
  std::vector<Prepared> prepared_;
  std::vector<std::string> left_out_;
  std::unordered_map<at::Tensor*, size_t> places_;
  std::set<std::string> ignored_;
  std::string body_;
  size_t names_ = 0;
};

// Is a place in the tree of a state_dict's names. Modules declare their tensors in it once they are
// where they stay: the list keeps pointers to their members. A slot that is declared again gets
// another name for its tensor: so parameters are shared.
class Scope {
 public:
  explicit Scope(ParameterList& list) : list_(&list) {}

  Scope operator/(const std::string& name) const { return Scope(*list_, Join(name)); }
  Scope operator/(int64_t index) const { return *this / std::to_string(index); }

  void Declare(const std::string& name, at::Tensor& slot, std::vector<int64_t> shape, Init init,
               ParameterKind kind = ParameterKind::kParameter) const {
    list_->Add({{Join(name)}, std::move(shape), &slot, init, kind});
  }

  // Returns the slot of a tensor that was declared: to declare it again is to share it.
  at::Tensor& Slot(const std::string& name) const { return list_->Slot(Join(name)); }

  // Says that a tensor, which was declared, will be a PackedWeight.
  void Packs(at::Tensor& slot) const { list_->Keeps(slot, Kept::kPacked); }
  // Says that it will be rounded to BF16 where products on the CPU are.
  void Rounds(at::Tensor& slot) const { list_->Keeps(slot, Kept::kRounded); }

  // Says that the package's state_dict has a tensor of this name, of which nothing is computed.
  void Ignore(const std::string& name) const { list_->Ignore(Join(name)); }

  // Adds what a module does once its tensors are loaded, those of this scope, such as to lay out
  // its weights. A module is prepared after those that it declared before this call.
  void AfterLoading(ParameterList::Preparation prepare) const {
    list_->AfterLoading(Join(""), std::move(prepare));
  }

  // Says that a file may hold tensors of this name, a glob, which the model does without.
  void LeavesOut(const std::string& glob) const { list_->LeavesOut(Join(glob)); }

  // Says that the model beside which there are heads is here.
  void IsBody() const { list_->SetBody(Join("")); }

  // `formula` gives the table in F32. It is called only where a file lacks the table and fits in
  // all else.
  void DeclareBuffer(const std::string& name, at::Tensor& slot, std::vector<int64_t> shape,
                     std::function<at::Tensor()> formula) const {
    list_->Add({{Join(name)},
                std::move(shape),
                &slot,
                Init::kZeros,
                ParameterKind::kBuffer,
                std::move(formula)});
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
