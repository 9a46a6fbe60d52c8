#include "program/serve/settings.h"

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string_view>

#include "core/files/json_file.h"
#include "core/strings/nearest.h"

namespace linserve {
namespace {

const std::string kPrefix = "LINSERVE_";
constexpr const char* kDefaults = "LINSERVE_DEFAULTS";

std::string UpperCase(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return text;
}

std::string VariableName(const std::string& option) { return kPrefix + UpperCase(option); }

// Takes the options of a file. It may be a pipe: `--config <(...)`.
absl::Status ReadOptions(const std::string& path, OptionTable& table) {
  const auto options = ReadJson(path, FileKind::kAny);
  if (options.ok() && options->is_object() && options->contains("serving")) {
    return absl::InvalidArgumentError(
        path +
        ": \"serving\" is an object of a model's config.json; here its members stand at the "
        "top level, for all models");
  }
  if (options.ok()) return table.SetAll(*options, path);
  return absl::Status(options.status().code(),
                      "the configuration, which is JSON, cannot be read: " +
                          std::string(options.status().message()));
}

using Variables = std::map<std::string, std::string>;

Variables OwnVariables() {
  Variables variables;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string name(*entry, std::strcspn(*entry, "="));
    if (!name.starts_with(kPrefix)) continue;
    const char* value = *entry + name.size();
    variables[name] = *value == '=' ? value + 1 : value;
  }
  return variables;
}

// Returns whether Kubernetes sets the variable, in pods beside a Service whose name begins with
// linserve: LINSERVE_SERVICE_HOST, LINSERVE_CANARY_SERVICE_PORT_GRPC, LINSERVE_PORT_8500_TCP_ADDR,
// LINSERVE_PORT=tcp://10.0.0.1:8500.
bool IsOfKubernetes(const std::string& name, const std::string& value) {
  if (name.ends_with("_SERVICE_HOST") || name.find("_SERVICE_PORT") != std::string::npos) {
    return true;
  }
  if (name.ends_with("_PORT") && value.find("://") != std::string::npos) return true;
  constexpr std::string_view kPort = "_PORT_";
  const size_t port = name.find(kPort);
  return port != std::string::npos && port + kPort.size() < name.size() &&
         std::isdigit(static_cast<unsigned char>(name[port + kPort.size()])) != 0;
}

// Returns whether the variable is read or set by another program of this repository: the clients,
// and the scripts that build and test.
bool IsOfOthers(const std::string& name) {
  const std::string_view rest = std::string_view(name).substr(kPrefix.size());
  return rest == "DEFAULTS" || rest == "TOKEN" || rest.starts_with("ALONE_") ||
         rest.starts_with("TEST_");
}

absl::Status UnknownVariable(const std::string& name, const std::vector<std::string>& known) {
  const std::string nearest =
      NearestName(UpperCase(name), known, (name.size() - kPrefix.size()) / 3);
  return absl::InvalidArgumentError("the variable " + name + " is of no option" +
                                    (nearest.empty()
                                         ? "; `linserve serve --help` lists those that there are"
                                         : "; did you mean " + nearest + "?"));
}

absl::Status ReadVariables(OptionTable& table) {
  Variables variables = OwnVariables();
  std::vector<std::string> known;
  for (const OptionTable::Description& option : table.Describe()) {
    known.push_back(VariableName(option.name));
    const auto variable = variables.extract(known.back());
    if (variable.empty()) continue;
    absl::Status status = table.SetText(option.name, variable.mapped(), "variable " + known.back());
    if (!status.ok()) return status;
  }
  for (const auto& [name, value] : variables) {
    if (!IsOfOthers(name) && !IsOfKubernetes(name, value)) return UnknownVariable(name, known);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ReadConfig(const ConfigSources& sources, OptionTable& table) {
  const char* defaults = std::getenv(kDefaults);  // NOLINT(concurrency-mt-unsafe): nothing sets it
  for (const std::string& file : {std::string(defaults == nullptr ? "" : defaults), sources.file}) {
    if (file.empty()) continue;
    if (absl::Status status = ReadOptions(file, table); !status.ok()) return status;
  }
  if (absl::Status status = ReadVariables(table); !status.ok()) return status;
  for (const auto& [name, value] : sources.flags) {
    if (absl::Status status = table.SetText(name, value, "command line"); !status.ok()) {
      return status;
    }
  }
  return absl::OkStatus();
}

}  // namespace linserve
