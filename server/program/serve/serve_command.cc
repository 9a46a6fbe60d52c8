#include <stdio_ext.h>

#include <memory>
#include <string>
#include <vector>

#include "program/commands.h"
#include "program/option_flags.h"
#include "program/serve/check_config.h"
#include "program/serve/server.h"
#include "program/serve/settings.h"

namespace linserve {
namespace {

struct Arguments {
  Settings settings;
  bool print = false;
  bool comments = false;
  bool check = false;
};

// What an operator sets first, and --help shows first.
const std::vector<std::string> kFirst = {
    "model_repository", "grpc_address", "http_address", "tls_certificate", "tls_private_key",
    "tokens_file",      "device",       "dtype",        "replicas",        "threads"};

int Serve(Arguments& arguments) {
  absl::Status status = arguments.settings.Read();
  if (!status.ok()) return Fail(std::string(status.message()));
  if (arguments.print) {
    std::printf("%s", ToFile(arguments.settings.table, arguments.comments).c_str());
    return 0;
  }
  if (arguments.check) {
    status = CheckConfig(arguments.settings);
  } else {
    status = RunServer(arguments.settings);
    // Where its log could not be written, the server has served all the same.
    __fpurge(stdout);
    std::clearerr(stdout);
  }
  return status.ok() ? 0 : Fail(std::string(status.message()));
}

}  // namespace

void AddServeCommand(CLI::App& app, ChosenCommand& chosen) {
  auto arguments = std::make_shared<Arguments>();
  Settings& settings = arguments->settings;
  CLI::App* command =
      app.add_subcommand("serve", "Serve the models of a repository over gRPC until SIGTERM");
  command->footer(
      "Every option may also stand in the configuration file (with _ for -), or in a variable:\n"
      "--max-batch-tokens is \"max_batch_tokens\" and LINSERVE_MAX_BATCH_TOKENS. Flags win over\n"
      "variables, variables over the file, and that over the one that LINSERVE_DEFAULTS names, as\n"
      "images do. Sizes may have a unit (4GiB, 512MB), and so may times (30s, 5m). A model's\n"
      "config.json, ours or a Hugging Face folder's, may override --dtype, --replicas, --threads\n"
      "and all from --padding on for itself, in its \"serving\" object. What the other files of "
      "such\n"
      "a folder say of pooling, texts and prompts wins over these options, too.\n\n"
      "Examples:\n"
      "  linserve serve --config deploy/linserve.json --model-repository models\n"
      "  linserve serve --config deploy/linserve.json --check-config\n");
  command->add_option("--config", settings.sources.file,
                      "Configuration file: JSON, comments allowed; read again on SIGHUP");
  command->add_flag("--check-config", arguments->check,
                    "Do all that a start does short of loading weights, say where each value "
                    "comes from and what it became, and exit");
  command->add_flag("--print-config", arguments->print,
                    "Print the configuration that results, and exit");
  command->add_flag("--comments", arguments->comments,
                    "With --print-config: explain each option, as deploy/linserve.json does");
  AddOptionGroups(*command, settings.table, settings.sources.flags, kFirst);
  command->callback([arguments, &chosen] { chosen = [arguments] { return Serve(*arguments); }; });
}

}  // namespace linserve
