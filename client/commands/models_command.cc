#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "client/commands/commands.h"
#include "client/commands/model_listing.h"

namespace linserve {
namespace {

int RunModels(const GlobalOptions& globals, bool json) {
  EmbeddingClient client(globals.ToClientOptions());
  const auto models = client.ListModels();
  if (absl::IsUnimplemented(models.status())) {
    return FailWith(absl::UnimplementedError(
        "this server has no ListModels, which is linserve's own; embed, compare and load work with "
        "it by --protocol oip and --model NAME"));
  }
  if (!models.ok()) return FailWith(models.status());
  std::fputs((json ? ModelsJson(*models) + "\n" : ModelsTable(*models)).c_str(), stdout);
  return EXIT_SUCCESS;
}

int RunHealth(const GlobalOptions& globals, const std::string& service) {
  EmbeddingClient client(globals.ToClientOptions());
  const auto state = client.Health(service);
  if (!state.ok()) return FailWith(state.status());
  std::printf("%s\n", Name(*state));
  return *state == HealthState::kServing ? EXIT_SUCCESS : EXIT_FAILURE;
}

}  // namespace

void AddModelsCommand(CLI::App& app, const GlobalOptions& globals, ChosenCommand& chosen) {
  CLI::App* models = app.add_subcommand("models", "List the server's models and what they take");
  models->footer(
      "Examples:\n"
      "  linserve-client models\n"
      "  linserve-client models --json | jq '.[].name'");
  auto json = std::make_shared<bool>(false);
  models->add_flag("--json", *json, "Print everything that the server tells, as a JSON array");
  models->callback([&globals, &chosen, json] {
    chosen = [&globals, json] { return RunModels(globals, *json); };
  });
}

void AddHealthCommand(CLI::App& app, const GlobalOptions& globals, ChosenCommand& chosen) {
  CLI::App* health =
      app.add_subcommand("health", "Ask for the server's health; exit code 0 if it is SERVING");
  health->footer(
      "Examples:\n"
      "  linserve-client health\n"
      "  until linserve-client health --timeout 1 2> /dev/null; do sleep 1; done");
  auto service = std::make_shared<std::string>();
  health->add_option(
      "--service", *service,
      "Ask for one service, such as linserve.v1.EmbeddingService (default: the server)");
  health->callback([&globals, &chosen, service] {
    chosen = [&globals, service] { return RunHealth(globals, *service); };
  });
}

}  // namespace linserve
