#include "program/option_flags.h"

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>

#include "models/config/model_config.h"
#include "models/config/wrappers.h"
#include "repository/repository_scan.h"
#include "telemetry/log.h"

namespace linserve {
namespace {

std::string FlagName(std::string option) {
  for (char& c : option) {
    if (c == '_') c = '-';
  }
  return "--" + option;
}

std::string HelpOf(const OptionTable::Description& option) {
  const std::string allowed = option.allowed.empty() ? "" : " (" + option.allowed + ")";
  const std::string size = option.size.empty() ? "" : " = " + option.size;
  return option.help + allowed + " [" + option.current + size + "]" +
         (option.live ? "; SIGHUP applies a change" : "");
}

void AddFlag(CLI::App& command, const OptionTable::Description& option, const std::string& group,
             OptionFlags& flags) {
  const bool is_flag = option.is_flag;
  const auto set = [&flags, is_flag, name = option.name](const std::string& value) {
    flags[name] = is_flag && value.empty() ? "true" : value;
  };
  CLI::Option* flag =
      command.add_option_function<std::string>(FlagName(option.name), set, HelpOf(option))
          ->type_name("");
  if (is_flag) flag->expected(0, 1);
  if (!group.empty()) flag->group(group);
}

// Adds flags for those options that `chosen` returns true for, in groups by their sections.
void AddBySection(CLI::App& command, const OptionTable& table, OptionFlags& flags,
                  const std::function<bool(const std::string&)>& chosen) {
  std::string section;
  for (const OptionTable::Description& option : table.Describe()) {
    if (!option.section.empty()) section = option.section;
    if (chosen(option.name)) AddFlag(command, option, section, flags);
  }
}

}  // namespace

void AddOptionFlags(CLI::App& command, const OptionTable& table, OptionFlags& flags,
                    const std::set<std::string>& only) {
  AddBySection(command, table, flags,
               [&](const std::string& name) { return only.empty() || only.contains(name); });
}

void AddOptionGroups(CLI::App& command, const OptionTable& table, OptionFlags& flags,
                     const std::vector<std::string>& first) {
  const auto options = table.Describe();
  const auto is_first = [&](const std::string& name) {
    return std::find(first.begin(), first.end(), name) != first.end();
  };
  for (const std::string& name : first) {
    for (const OptionTable::Description& option : options) {
      if (option.name == name) AddFlag(command, option, "What to set first", flags);
    }
  }
  AddBySection(command, table, flags, [&](const std::string& name) { return !is_first(name); });
}

void AddModelFlag(CLI::App& command, std::string& model) {
  command
      .add_option("--model", model,
                  "A model directory, or one of versions, of which it is the latest")
      ->required()
      ->transform([](const std::string& path) { return LatestVersion(path); });
}

absl::StatusOr<ServingOptions> ServingOptionsFor(const std::string& directory,
                                                 const ServingOptions& defaults,
                                                 const OptionFlags& flags) {
  auto config = ReadModelConfig(directory);
  if (!config.ok()) return config.status();
  ServingOptions serving = defaults;
  OptionTable table;
  serving.Bind(table);
  absl::Status status = table.SetAll(config->serving, directory + "/config.json, \"serving\"");
  for (const auto& [name, value] : flags) {
    if (status.ok()) status = table.SetText(name, value, "command line");
  }
  if (!status.ok()) return status;
  if (!config->text_limit_origin.empty() && !flags.contains("max_text_tokens")) {
    serving.text_limit_origin = config->text_limit_origin;
  }
  serving.late_interaction = config->late_interaction;
  serving.static_settings = config->static_settings;
  serving.tokenizer_truncates = config->tokenizer_truncates && !flags.contains("truncation");
  const nlohmann::json& wrapper = config->network.wrapper;
  if (const auto padding = PaddingOfWrapper(wrapper); padding && serving.padding == "auto") {
    serving.padding = Name(*padding);
    serving.padding_because = "the model's wrapper is " + wrapper["type"].get<std::string>();
  }
  return serving;
}

void LogImpliedPadding(const std::string& directory, const ServingOptions& serving) {
  if (serving.padding_because.empty()) return;
  Log(LogLevel::kInfo, "padding",
      {{"model", directory},
       {"padding", serving.padding},
       {"because", serving.padding_because},
       {"advice",
        "\"serving\": {\"padding\": \"packed\"} in config.json computes less, and "
        "other numbers than Python did"}});
}

ModelLoadOptions LoadOptionsFor(const ServingOptions& serving, const ReplicaPlan& plan) {
  return {.device = "cpu",
          .dtype = serving.dtype,
          .threads = plan.threads,
          .allow_nonfinite = serving.allow_nonfinite};
}

}  // namespace linserve
