#pragma once

#include <CLI/CLI.hpp>
#include <map>
#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "core/options.h"
#include "engine/serving_options.h"
#include "models/model_loader.h"

namespace linserve {

// What was given as flags: texts by the name of the option.
using OptionFlags = std::map<std::string, std::string>;

// Adds a flag to the command for each option of the table (or for `only` these), with the option's
// help and default. What is given is written to `flags`, which must outlive the command.
void AddOptionFlags(CLI::App& command, const OptionTable& table, OptionFlags& flags,
                    const std::set<std::string>& only = {});

// How one model is served: the defaults, overridden by "serving" of DIRECTORY/config.json, and that
// by flags.
absl::StatusOr<ServingOptions> ServingOptionsFor(const std::string& directory,
                                                 const ServingOptions& defaults,
                                                 const OptionFlags& flags = {});

// What the loader needs to know of it.
LoadOptions LoadOptionsFor(const ServingOptions& serving, const ReplicaPlan& plan);

}  // namespace linserve
