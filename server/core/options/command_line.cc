#include "core/options/command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "core/strings/nearest.h"

namespace linserve {
namespace {

constexpr int kUsageError = 2;

// Suggests the nearest name, or else one that begins so.
std::string Suggestion(const std::string& name, const std::vector<std::string>& names) {
  std::string nearest = NearestName(name, names, name.size() / 3);
  if (nearest.empty()) {
    const auto longer = std::find_if(names.begin(), names.end(), [&](const std::string& known) {
      return known.starts_with(name + "-");
    });
    if (longer != names.end()) nearest = *longer;
  }
  return nearest.empty() ? "" : "; did you mean " + nearest + "?";
}

std::vector<std::string> OptionsOf(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

// Says how the value is written of a flag that was given without one and takes one, as
// --truncate=left: what follows it is no value, be it meant so. Empty if there is no such flag.
std::string HintOfValue(const CLI::App& command) {
  for (const CLI::Option* option : command.get_options()) {
    if (option->count() == 0 || option->get_items_expected_max() > 0) continue;
    for (const std::string& name : option->get_lnames()) {
      if (option->get_flag_value(name, "") == "true") continue;
      return "; the value of --" + name + " stands behind =, as in --" + name + "=" +
             option->get_flag_value(name, "");
    }
  }
  return "";
}

// Says what is wrong with the arguments that no option takes; empty if there are none.
std::string Unexpected(const CLI::App& app) {
  const std::vector<std::string> extras = app.remaining(/*recurse=*/true);
  if (extras.empty()) return "";
  const std::vector<CLI::App*> chosen = app.get_subcommands();
  for (const std::string& extra : extras) {
    if (!extra.starts_with("--")) continue;
    const std::string name = extra.substr(0, extra.find('='));
    std::vector<std::string> names = OptionsOf(app);
    if (chosen.empty()) return "unknown option " + name + Suggestion(name, names);
    for (std::string& known : OptionsOf(*chosen[0])) names.push_back(std::move(known));
    return "unknown option " + name + " of " + chosen[0]->get_name() + Suggestion(name, names);
  }
  if (!chosen.empty()) return "unexpected argument '" + extras[0] + "'" + HintOfValue(*chosen[0]);
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands(/*filter=*/nullptr)) {
    names.push_back(command->get_name());
  }
  return "unknown subcommand '" + extras[0] + "'" + Suggestion(extras[0], names);
}

// Refuses what is not a number at all, which every range takes.
void RefuseNan(const CLI::App& app) {
  for (const CLI::Option* option : app.get_options()) {
    if (!option->get_type_name().starts_with("FLOAT")) continue;
    for (const std::string& text : option->results()) {
      if (!std::isnan(std::strtod(text.c_str(), nullptr))) continue;
      throw CLI::ValidationError(option->get_name(), "expected a number, got " + text);
    }
  }
  for (const CLI::App* command : app.get_subcommands()) RefuseNan(*command);
}

}  // namespace

std::optional<int> ParseCommandLine(CLI::App& app, int argc, const char* const* argv) {
  app.failure_message([](const CLI::App* of, const CLI::Error& error) {
    const std::string unexpected = Unexpected(*of);
    return (unexpected.empty() ? error.what() : unexpected) +
           "\nRun with --help for more information.\n";
  });
  try {
    app.parse(argc, argv);
    RefuseNan(app);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kUsageError;
  }
  return std::nullopt;
}

}  // namespace linserve
