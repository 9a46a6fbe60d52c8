#include "models/checkpoint.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <set>
#include <utility>

#include "attention/rows/aten.h"
#include "core/system/memory.h"
#include "models/network/config_error.h"
#include "models/network/tensor_bridge.h"

namespace linserve {
namespace {

constexpr std::array<const char*, 4> kWrapperPrefixes = {"module.", "_orig_mod.", "model.", "net."};

// Returns the tensors with `prefix` removed from every name; empty if one name lacks it.
TensorMap Stripped(const TensorMap& tensors, const std::string& prefix) {
  TensorMap stripped;
  for (const auto& [name, tensor] : tensors) {
    if (!name.starts_with(prefix)) return {};
    stripped.emplace(name.substr(prefix.size()), tensor);
  }
  return stripped;
}

void ResolveAliases(TensorMap& tensors, const std::map<std::string, std::string>& aliases) {
  for (const auto& [alias, target] : aliases) {
    const auto found = tensors.find(target);
    if (found != tensors.end()) tensors.emplace(alias, found->second);
  }
}

bool SameBytes(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && a.shape() == b.shape() &&
         (a.bytes() == b.bytes() || std::memcmp(a.bytes(), b.bytes(), a.byte_size()) == 0);
}

// Says why the tensor cannot be the parameter; "" if it can.
std::string Misfit(const Parameter& parameter, const Tensor& tensor) {
  if (tensor.shape() != parameter.shape) {
    return "is " + ToString(tensor.shape()) + ", expected " + ToString(parameter.shape);
  }
  if (IsFloat(tensor.dtype())) return "";
  return "is of type " + std::string(Name(tensor.dtype())) + ", expected a float type";
}

// Looks at all tensors of the file that are the parameter's.
void CompareOne(const Parameter& parameter, const TensorMap& tensors,
                CheckpointDifference& difference) {
  const std::string* first = nullptr;
  for (const std::string& name : parameter.names) {
    const auto found = tensors.find(name);
    if (found == tensors.end()) continue;
    const std::string misfit = Misfit(parameter, found->second);
    if (!misfit.empty()) {
      difference.misshapen.push_back(name + " " + misfit);
    } else if (first != nullptr && !SameBytes(tensors.at(*first), found->second)) {
      difference.misshapen.push_back(name + " differs from " + *first +
                                     ", expected them to be equal: the model shares the tensor");
    }
    if (first == nullptr) first = &name;
  }
  if (first != nullptr || parameter.kind == ParameterKind::kBuffer) return;
  std::string entry = parameter.name() + " " + ToString(parameter.shape);
  if (parameter.kind == ParameterKind::kPlain) {
    entry += " (the package's state_dict lacks it: save the module's attribute under this name)";
  }
  difference.missing.push_back(std::move(entry));
}

CheckpointDifference Compare(const ParameterList& parameters, const TensorMap& tensors) {
  CheckpointDifference difference;
  std::set<std::string> declared;
  for (const Parameter& parameter : parameters) {
    declared.insert(parameter.names.begin(), parameter.names.end());
    CompareOne(parameter, tensors, difference);
  }
  for (const auto& [name, tensor] : tensors) {
    if (!declared.contains(name)) {
      difference.unexpected.push_back(name + " " + ToString(tensor.shape()));
    }
  }
  return difference;
}

size_t Faults(const CheckpointDifference& difference) {
  return difference.missing.size() + difference.unexpected.size();
}

void AppendList(std::string& text, const char* title, const std::vector<std::string>& entries) {
  if (entries.empty()) return;
  text += std::string("\n  ") + title + " (" + std::to_string(entries.size()) + "):";
  for (const std::string& entry : entries) text += "\n    " + entry;
}

const Tensor* Find(const Parameter& parameter, const TensorMap& tensors) {
  for (const std::string& name : parameter.names) {
    const auto found = tensors.find(name);
    if (found != tensors.end()) return &found->second;
  }
  return nullptr;
}

// Throws if the tensors of `parameters` that `made` says are to be made here fit into no memory.
template <typename Made>
void RequireMemory(const ParameterList& parameters, const Made& made) {
  double bytes = 0;
  const Parameter* largest = nullptr;
  for (const Parameter& parameter : parameters) {
    if (!made(parameter)) continue;
    bytes += static_cast<double>(ElementCount(parameter.shape) * int64_t{sizeof(float)});
    if (largest == nullptr || ElementCount(parameter.shape) > ElementCount(largest->shape)) {
      largest = &parameter;
    }
  }
  if (bytes <= static_cast<double>(MemoryBytes())) return;
  throw ConfigError("the weights would take " + FormatBytes(bytes) + ", but there are " +
                    FormatBytes(static_cast<double>(MemoryBytes())) +
                    " of memory; the largest is " + largest->name() + " " +
                    ToString(largest->shape));
}

}  // namespace

std::string CheckpointDifference::ToString() const {
  std::string text;
  AppendList(text, "missing from the file", missing);
  AppendList(text, "in the file but not in the model", unexpected);
  AppendList(text, "of the wrong shape or type", misshapen);
  return text;
}

AlignedCheckpoint AlignCheckpoint(const ParameterList& parameters, TensorMap file,
                                  const std::map<std::string, std::string>& aliases) {
  AlignedCheckpoint best;
  best.tensors = file;
  ResolveAliases(best.tensors, aliases);
  best.difference = Compare(parameters, best.tensors);
  // Wrappers nest ("module._orig_mod."), so each round may remove one more.
  TensorMap current = std::move(file);
  std::string stripped;
  for (bool found = true; found && Faults(best.difference) > 0;) {
    found = false;
    for (const std::string prefix : kWrapperPrefixes) {
      TensorMap candidate = Stripped(current, prefix);
      if (candidate.empty()) continue;
      current = candidate;
      stripped += prefix;
      found = true;
      ResolveAliases(candidate, aliases);
      CheckpointDifference difference = Compare(parameters, candidate);
      if (Faults(difference) < Faults(best.difference)) {
        best = {std::move(candidate), stripped, std::move(difference)};
      }
      break;
    }
  }
  return best;
}

void LoadParameters(const ParameterList& parameters, AlignedCheckpoint checkpoint,
                    at::ScalarType dtype, at::Device device) {
  if (!checkpoint.difference.empty()) {
    throw ConfigError("the tensors do not fit the configuration:" +
                      checkpoint.difference.ToString());
  }
  RequireMemory(parameters, [&](const Parameter& parameter) {
    return Find(parameter, checkpoint.tensors) == nullptr;
  });
  for (const Parameter& parameter : parameters) {
    const bool buffer = parameter.kind == ParameterKind::kBuffer;
    const Tensor* tensor = Find(parameter, checkpoint.tensors);
    const bool made = tensor == nullptr;
    const at::Tensor loaded = made ? parameter.formula() : ToAten(*tensor);
    for (const std::string& name : parameter.names) checkpoint.tensors.erase(name);
    *parameter.slot = loaded.to(device).to(made || buffer ? at::kFloat : dtype);
  }
}

void InitParameters(const ParameterList& parameters, uint64_t seed) {
  RequireMemory(parameters, [](const Parameter&) { return true; });
  at::Generator generator = at::globalContext().defaultGenerator(at::kCPU).clone();
  generator.set_current_seed(seed);
  for (const Parameter& parameter : parameters) {
    at::Tensor& tensor = *parameter.slot;
    if (parameter.kind == ParameterKind::kBuffer) {
      tensor = parameter.formula();
      continue;
    }
    tensor = at::empty(parameter.shape, at::kFloat);
    const double bound = 1.0 / std::sqrt(static_cast<double>(parameter.shape.back()));
    switch (parameter.init) {
      case Init::kUniform:
        tensor.uniform_(-bound, bound, generator);
        break;
      case Init::kNormal:
        tensor.normal_(0.0, bound, generator);
        break;
      case Init::kNarrow:
        tensor.normal_(0.0, bound * bound, generator);
        break;
      case Init::kOnes:
        tensor.fill_(1);
        break;
      case Init::kZeros:
        tensor.zero_();
        break;
    }
  }
}

}  // namespace linserve
