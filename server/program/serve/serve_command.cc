#include <memory>
#include <string>
#include <utility>

#include "program/commands.h"
#include "program/option_flags.h"
#include "program/serve/config.h"
#include "program/serve/server.h"

namespace linserve {
namespace {

struct Arguments {
  Config config;
  OptionTable table;
  std::string file;
  bool print = false;
  bool comments = false;
  OptionFlags flags;
};

int Serve(Arguments& arguments) {
  absl::Status status = ReadConfig(arguments.file, arguments.flags, arguments.table);
  if (!status.ok()) return Fail(std::string(status.message()));
  for (const std::string& warning : MisspeltVariables(arguments.table)) {
    std::fprintf(stderr, "linserve: warning: %s\n", warning.c_str());
  }
  if (arguments.print) {
    std::printf("%s", ToFile(arguments.table, arguments.comments).c_str());
    return 0;
  }
  status = RunServer(arguments.config);
  return status.ok() ? 0 : Fail(std::string(status.message()));
}

}  // namespace

void AddServeCommand(CLI::App& app, ChosenCommand& chosen) {
  auto arguments = std::make_shared<Arguments>();
  arguments->config.Bind(arguments->table);
  CLI::App* command =
      app.add_subcommand("serve", "Serve the models of a repository over gRPC until SIGTERM");
  command->footer(
      "Every option may also stand in the configuration file (with _ for -), or in a variable:\n"
      "--max-batch-tokens is \"max_batch_tokens\" and LINSERVE_MAX_BATCH_TOKENS. Flags win over\n"
      "variables, variables over the file, and that over the one that LINSERVE_DEFAULTS names, as\n"
      "images do. A model's config.json may override the options from --padding on for itself, in\n"
      "its \"serving\" object.\n\n"
      "Example:\n"
      "  linserve serve --config deploy/linserve.json --model-repository models\n");
  command->add_option("--config", arguments->file, "Configuration file: JSON, comments allowed");
  command->add_flag("--print-config", arguments->print,
                    "Print the configuration that results, and exit");
  command->add_flag("--comments", arguments->comments,
                    "With --print-config: explain each option, as deploy/linserve.json does");
  AddOptionFlags(*command, arguments->table, arguments->flags);
  command->callback([arguments, &chosen] { chosen = [arguments] { return Serve(*arguments); }; });
}

}  // namespace linserve
