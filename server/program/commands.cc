#include "program/commands.h"

#include <cstdio>

#include "core/options/command_line.h"
#include "core/system/version.h"

namespace linserve {

int Fail(const std::string& message) {
  std::fprintf(stderr, "linserve: %s\n", message.c_str());
  return 1;
}

int RunProgram(int argc, char** argv) {
  CLI::App app(
      "Serves linear-time attention transformers over gRPC: the weights and numbers of the Python "
      "packages, without Python.");
  app.footer(
      "Examples:\n"
      "  linserve init --architecture linformer.LinformerLM \\\n"
      "      --params '{\"num_tokens\": 256, \"dim\": 64, \"seq_len\": 512, \"depth\": 2}' \\\n"
      "      --output models/tiny\n"
      "  linserve inspect --model models/tiny\n"
      "  linserve serve --model-repository models\n");
  app.set_version_flag("--version", std::string("linserve ") + kVersion + " (" + kCommit + ")");
  app.require_subcommand(1);
  ChosenCommand chosen;
  AddServeCommand(app, chosen);
  AddRunCommand(app, chosen);
  AddInitCommand(app, chosen);
  AddInspectCommand(app, chosen);
  AddBenchCommand(app, chosen);
  if (const auto code = ParseCommandLine(app, argc, argv)) return *code;
  return chosen();
}

}  // namespace linserve
