#include "models/checkpoint.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "attention/aten.h"
#include "models/config_error.h"
#include "models/tensor_bridge.h"

namespace linserve {
namespace {

constexpr std::array<const char*, 4> kWrapperPrefixes = {"module.", "_orig_mod.", "model.", "net."};

// The tensors with `prefix` removed from every name; empty if one name lacks it.
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

CheckpointDifference Compare(const ParameterList& parameters, const TensorMap& tensors) {
  CheckpointDifference difference;
  std::map<std::string, const Parameter*> declared;
  for (const Parameter& parameter : parameters) {
    declared[parameter.name] = &parameter;
    const auto found = tensors.find(parameter.name);
    if (found == tensors.end()) {
      difference.missing.push_back(parameter.name + " " + ToString(parameter.shape));
    } else if (found->second.shape() != parameter.shape) {
      difference.misshapen.push_back(parameter.name + " is " + ToString(found->second.shape()) +
                                     ", expected " + ToString(parameter.shape));
    } else if (!IsFloat(found->second.dtype())) {
      difference.misshapen.push_back(parameter.name + " is of type " +
                                     std::string(Name(found->second.dtype())) +
                                     ", expected a float type");
    }
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

}  // namespace

std::string CheckpointDifference::ToString() const {
  std::string text;
  AppendList(text, "missing from the file", missing);
  AppendList(text, "in the file but not in the model", unexpected);
  AppendList(text, "of the wrong shape or type", misshapen);
  return text;
}

AlignedCheckpoint AlignCheckpoint(const ParameterList& parameters, const TensorMap& file,
                                  const std::map<std::string, std::string>& aliases) {
  AlignedCheckpoint best;
  best.tensors = file;
  ResolveAliases(best.tensors, aliases);
  best.difference = Compare(parameters, best.tensors);
  // Wrappers nest ("module._orig_mod."), so each round may remove one more.
  TensorMap current = file;
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

void LoadParameters(const ParameterList& parameters, const AlignedCheckpoint& checkpoint,
                    at::ScalarType dtype) {
  if (!checkpoint.difference.empty()) {
    throw ConfigError("the tensors do not fit the configuration:" +
                      checkpoint.difference.ToString());
  }
  for (const Parameter& parameter : parameters) {
    *parameter.slot = ToAten(checkpoint.tensors.at(parameter.name)).to(dtype);
  }
}

void InitParameters(const ParameterList& parameters, uint64_t seed) {
  at::Generator generator = at::globalContext().defaultGenerator(at::kCPU).clone();
  generator.set_current_seed(seed);
  for (const Parameter& parameter : parameters) {
    at::Tensor& tensor = *parameter.slot;
    tensor = at::empty(parameter.shape, at::kFloat);
    const double bound = 1.0 / std::sqrt(static_cast<double>(parameter.shape.back()));
    switch (parameter.init) {
      case Init::kUniform:
        tensor.uniform_(-bound, bound, generator);
        break;
      case Init::kNormal:
        tensor.normal_(0.0, bound, generator);
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
