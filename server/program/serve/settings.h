#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/options/options.h"
#include "program/serve/config.h"

namespace linserve {

// Says where a configuration stands, besides LINSERVE_* variables.
struct ConfigSources {
  std::string file{};                          // JSON with comments; empty: there is none
  std::map<std::string, std::string> flags{};  // texts by the name of the option
};

// Applies the configuration file that the variable LINSERVE_DEFAULTS names, if there is one (an
// image brings it), then that of `sources`, then LINSERVE_<OPTION> variables, then the flags. A
// variable LINSERVE_* that is of no option is an error, but for those that Kubernetes sets beside a
// Service, and those of our own scripts.
absl::Status ReadConfig(const ConfigSources& sources, OptionTable& table);

// Holds a configuration as it was read, and where each of its values stands.
struct Settings {
  Settings() { config.Bind(table); }
  Settings(const Settings&) = delete;
  Settings& operator=(const Settings&) = delete;

  absl::Status Read() { return ReadConfig(sources, table); }

  ConfigSources sources;
  Config config;
  OptionTable table;  // of `config`
};

}  // namespace linserve
