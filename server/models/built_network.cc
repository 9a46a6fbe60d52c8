#include "models/built_network.h"

#include <utility>

#include "models/config/config_error.h"
#include "models/registry.h"

namespace linserve {

BuiltNetwork BuiltNetwork::From(const NetworkConfig& config) {
  BuiltNetwork built{MakeNetwork(config), {}};
  built.network->Declare(Scope(built.parameters));
  int64_t total = 0;
  for (const Parameter& parameter : built.parameters) {
    const auto bytes = CheckedByteSize(DType::kF64, parameter.shape);
    if (!bytes || __builtin_add_overflow(total, *bytes, &total)) {
      throw ConfigError(config.architecture + ": the tensor " + parameter.name() + " would be " +
                        ToString(parameter.shape) + ", more than any memory holds");
    }
  }
  return built;
}

ModelInfo BuiltNetwork::Describe(const std::string& architecture) const {
  ModelInfo info;
  info.architecture = architecture;
  info.signature = network->signature();
  for (const Parameter& parameter : parameters) {
    const int64_t elements = ElementCount(parameter.shape);
    if (parameter.kind == ParameterKind::kParameter) info.parameters += elements;
    info.bytes += elements * static_cast<int64_t>(ByteSize(DType::kF32));
  }
  info.bytes += network->Copies() * static_cast<int64_t>(ByteSize(DType::kF32));
  info.layers = network->Layers();
  ClassLabels labels = network->Labels();
  if (!labels.names.empty()) {
    info.labels = std::make_shared<const std::vector<std::string>>(std::move(labels.names));
  }
  info.problem_type = labels.problem;
  const SessionPlan sessions = network->Sessions();
  info.no_sessions = sessions.refusal;
  info.session_bytes = sessions.elements() * static_cast<int64_t>(ByteSize(DType::kF32));
  return info;
}

}  // namespace linserve
