#pragma once

#include <CLI/CLI.hpp>
#include <map>
#include <set>
#include <string>
#include <vector>

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

// Does so for all options, in groups of which `first` is the first: the options that matter most,
// in this order. The others follow by the table's sections.
void AddOptionGroups(CLI::App& command, const OptionTable& table, OptionFlags& flags,
                     const std::vector<std::string>& first);

// Adds the flag --model, which takes a model directory or, as `serve` does, that of its versions:
// `model` is the latest of them then.
void AddModelFlag(CLI::App& command, std::string& model);

// Returns how one model is served: the defaults, overridden by "serving" of DIRECTORY/config.json,
// which flags override. A padding that is still "auto" then is what the model's wrapper implies.
absl::StatusOr<ServingOptions> ServingOptionsFor(const std::string& directory,
                                                 const ServingOptions& defaults,
                                                 const OptionFlags& flags = {});

// Logs the padding of a model if its wrapper implies it.
void LogImpliedPadding(const std::string& directory, const ServingOptions& serving);

// Returns what the loader needs to know of how a model is served.
ModelLoadOptions LoadOptionsFor(const ServingOptions& serving, const ReplicaPlan& plan);

}  // namespace linserve
