#pragma once

#include <CLI/CLI.hpp>
#include <map>
#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "core/options/options.h"
#include "engine/serving_options.h"
#include "models/model_loader.h"

namespace linserve {

// Holds what was given as flags: texts by the name of the option.
using OptionFlags = std::map<std::string, std::string>;

// Adds a flag to the command for each option of the table (or for `only` these), with the option's
// help and default. What is given is written to `flags`, which must outlive the command.
void AddOptionFlags(CLI::App& command, const OptionTable& table, OptionFlags& flags,
                    const std::set<std::string>& only = {});

// Returns how one model is served: the defaults, overridden by "serving" of DIRECTORY/config.json,
// which flags override.
absl::StatusOr<ServingOptions> ServingOptionsFor(const std::string& directory,
                                                 const ServingOptions& defaults,
                                                 const OptionFlags& flags = {});

// Returns what the loader needs to know of how a model is served.
ModelLoadOptions LoadOptionsFor(const ServingOptions& serving, const ReplicaPlan& plan);

}  // namespace linserve
