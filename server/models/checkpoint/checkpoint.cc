#include "models/checkpoint/checkpoint.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <set>
#include <utility>

#include "attention/rows/aten.h"
#include "core/sequence/content.h"
#include "core/strings/quote.h"
#include "core/system/memory.h"
#include "models/checkpoint/checkpoint_names.h"
#include "models/config/config_error.h"
#include "models/placement/tensor_bridge.h"

namespace linserve {
namespace {

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

CheckpointDifference Compare(const ParameterList& parameters, const TensorMap& tensors,
                             const std::string& prefix) {
  CheckpointDifference difference;
  difference.prefix = prefix;
  std::set<std::string> declared;
  for (const Parameter& parameter : parameters) {
    declared.insert(parameter.names.begin(), parameter.names.end());
    CompareOne(parameter, tensors, difference);
  }
  for (const auto& [name, tensor] : tensors) {
    if (!declared.contains(name) && !parameters.Ignores(name)) {
      difference.unexpected.push_back(prefix + name + " " + ToString(tensor.shape()));
    }
  }
  return difference;
}

// Returns the beginnings of names that a network's own tensors have: those of the modules that hold
// one, and those of its layers, tables and whatever else stands at the top of its body.
std::set<std::string> OwnModules(const ParameterList& parameters) {
  const std::string& body = parameters.body();
  std::set<std::string> modules;
  const auto add = [&](const std::string& name, size_t dot) {
    if (dot != std::string::npos) modules.insert(name.substr(0, dot + 1));
  };
  for (const Parameter& parameter : parameters) {
    for (const std::string& name : parameter.names) {
      add(name, name.rfind('.'));
      if (name.starts_with(body)) add(name, name.find('.', body.size()));
    }
  }
  return modules;
}

// Says whether a tensor that no network asks for is a table by formula, as older files have them.
bool IsTable(const std::string& entry) {
  return entry.find("inv_freq ") != std::string::npos ||
         entry.find("position_ids ") != std::string::npos ||
         entry.find("token_type_ids ") != std::string::npos;
}

// Leaves out what the file has besides, as the package does.
void LeaveOutOthers(const ParameterList& parameters, AlignedCheckpoint& aligned) {
  const std::set<std::string> modules = OwnModules(parameters);
  for (std::string& entry : aligned.difference.unexpected) {
    const std::string name = entry.substr(aligned.prefix().size());
    const bool own = std::any_of(modules.begin(), modules.end(), [&](const std::string& module) {
      return name.starts_with(module);
    });
    if (own && !IsTable(entry)) aligned.strangers.push_back(entry);
    aligned.left_out.push_back(std::move(entry));
  }
  aligned.difference.unexpected.clear();
}

// Adds what the file left out of the tensors of which it has other names.
void AddLeftOut(const ParameterList& parameters, const NamedTensors& file,
                const std::string& prefix, TensorMap& tensors) {
  for (const Parameter& parameter : parameters) {
    for (const std::string& name : parameter.names) {
      const Tensor* tensor = file.LeftOut(prefix + name);
      if (tensor != nullptr) tensors.emplace(name, *tensor);
    }
  }
}

// Takes out what the network knows and does without.
void TakeLeftOut(const ParameterList& parameters, const std::string& prefix,
                 AlignedCheckpoint& aligned) {
  for (auto tensor = aligned.tensors.begin(); tensor != aligned.tensors.end();) {
    const std::string& name = tensor->first;
    const bool known =
        std::any_of(parameters.left_out().begin(), parameters.left_out().end(),
                    [&](const std::string& glob) { return MatchesGlob(name, glob); });
    if (known) aligned.left_out.push_back(prefix + name);
    tensor = known ? aligned.tensors.erase(tensor) : std::next(tensor);
  }
}

AlignedCheckpoint AlignBelow(const std::string& prefix, const ParameterList& parameters,
                             const NamedTensors& file, const CheckpointNames& names) {
  AlignedCheckpoint aligned;
  aligned.tensors = file.Below(prefix);
  aligned.left_out = file.Beside(prefix);
  TakeLeftOut(parameters, prefix, aligned);
  AddLeftOut(parameters, file, prefix, aligned.tensors);
  ResolveAliases(aligned.tensors, names.aliases);
  aligned.difference = Compare(parameters, aligned.tensors, prefix);
  if (names.others_are_left_out) LeaveOutOthers(parameters, aligned);
  return aligned;
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
  if (faults() > 0 && !prefix.empty()) {
    text += "\n  compared without the prefix " + Quoted(prefix) + ", below which most fit";
  }
  if (!choices.empty()) {
    text +=
        "\n  the file holds the model more than once; choose one by \"prefix\" in config.json, "
        "or let \"ignore\" name the others: ";
    for (const std::string& choice : choices) {
      text += (choice == choices.front() ? "" : ", ") + Quoted(choice);
    }
  }
  AppendList(text, "missing from the file", missing);
  AppendList(text, "in the file but not in the model", unexpected);
  AppendList(text, "of the wrong shape or type", misshapen);
  return text;
}

std::string AlignedCheckpoint::Warning() const {
  if (strangers.empty()) return "";
  constexpr size_t kMostNamed = 8;
  const size_t named = std::min(strangers.size(), kMostNamed);
  std::string text =
      "config.json is probably that of other weights: among the model's own tensors "
      "the file has " +
      std::to_string(strangers.size()) +
      " of which it says nothing, and which are left out as the package does: ";
  for (size_t i = 0; i < named; ++i) text += (i == 0 ? "" : ", ") + strangers[i];
  return text + (named < strangers.size() ? ", ..." : "");
}

AlignedCheckpoint AlignCheckpoint(const ParameterList& parameters, SafetensorsFile file,
                                  const CheckpointNames& names) {
  const NamedTensors named(std::move(file.tensors), file.metadata, names);
  const std::string said = names.prefix.value_or("");
  AlignedCheckpoint best = AlignBelow(said, parameters, named, names);
  if (best.difference.empty() || names.prefix == "") return best;
  std::vector<std::string> fitting;
  // What is more than the model may be the same model once more.
  if (best.difference.faults() == best.difference.unexpected.size()) fitting.push_back(said);
  for (const std::string& prefix : named.Prefixes(parameters)) {
    if (!prefix.starts_with(said) || prefix == said) continue;
    AlignedCheckpoint below = AlignBelow(prefix, parameters, named, names);
    if (below.difference.empty()) fitting.push_back(prefix);
    if (below.difference.faults() < best.difference.faults()) best = std::move(below);
  }
  if (fitting.size() > 1) best.difference.choices = std::move(fitting);
  return best;
}

std::string NonfiniteWeights(const ParameterList& parameters, const AlignedCheckpoint& checkpoint,
                             DType dtype) {
  std::string list;
  for (const Parameter& parameter : parameters) {
    const Tensor* tensor = Find(parameter, checkpoint.tensors);
    if (tensor == nullptr || !IsFloat(tensor->dtype())) continue;
    const DType kept = StaysInF32(parameter.kind) ? DType::kF32 : dtype;
    const auto fault = FindNonfinite(*tensor, kept);
    if (!fault) continue;
    list += "\n    " + parameter.name() + " holds " + fault->value + " at position " +
            ToString(fault->position);
  }
  if (list.empty()) return list;
  return "weights that are not finite in " + std::string(Name(dtype)) +
         ", of which no result can be right (\"serving\": {\"allow_nonfinite\": true} serves them "
         "all the same):" +
         list;
}

void LoadParameters(const ParameterList& parameters, AlignedCheckpoint checkpoint,
                    const TensorTypes& types, at::Device device) {
  if (!checkpoint.difference.empty()) {
    throw ConfigError("the tensors do not fit the configuration:" +
                      checkpoint.difference.ToString());
  }
  RequireMemory(parameters, [&](const Parameter& parameter) {
    return Find(parameter, checkpoint.tensors) == nullptr;
  });
  parameters.Load(types.products, [&](const Parameter& parameter) {
    const Tensor* tensor = Find(parameter, checkpoint.tensors);
    const bool made = tensor == nullptr;
    const at::Tensor loaded = made ? parameter.formula() : ToAten(*tensor);
    for (const std::string& name : parameter.names) checkpoint.tensors.erase(name);
    const bool stays = made || StaysInF32(parameter.kind);
    const at::ScalarType type = parameter.kept == Kept::kRounded ? types.rounded : types.usual;
    *parameter.slot = loaded.to(device).to(stays ? at::kFloat : type);
  });
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
    if (tensor.numel() == 0) continue;
    const int64_t last = parameter.shape.empty() ? 1 : parameter.shape.back();
    const double bound = 1.0 / std::sqrt(static_cast<double>(last));
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
      case Init::kStandard:
        tensor.normal_(0.0, 1.0, generator);
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
