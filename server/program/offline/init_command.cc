#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>

#include "models/init_model.h"
#include "program/commands.h"

namespace linserve {
namespace {

struct InitArguments {
  std::string architecture;
  std::string params = "{}";
  std::string wrapper = "null";
  std::string output;
  uint64_t seed = 0;
};

int Init(const InitArguments& arguments) {
  absl::Status status = InitModel(arguments.architecture, arguments.params, arguments.seed,
                                  arguments.output, arguments.wrapper);
  if (!status.ok()) return Fail(std::string(status.message()));
  std::printf("wrote %s/config.json and %s/model.safetensors\n", arguments.output.c_str(),
              arguments.output.c_str());
  return 0;
}

}  // namespace

void AddInitCommand(CLI::App& app, ChosenCommand& chosen) {
  auto arguments = std::make_shared<InitArguments>();
  CLI::App* command = app.add_subcommand(
      "init", "Write a model directory with seeded random weights, to measure before training");
  std::string known = "Architectures:\n";
  for (const std::string& name : Architectures()) known += "  " + name + "\n";
  command->footer(
      known +
      "Example:\n"
      "  linserve init --architecture linformer.Linformer --seed 1 --output my-model \\\n"
      "      --params '{\"dim\": 64, \"seq_len\": 512, \"depth\": 2, \"k\": 64}'\n");
  command->add_option("--architecture", arguments->architecture, "Python package and class")
      ->required();
  command
      ->add_option("--params", arguments->params,
                   "Constructor arguments, a JSON object; others have the package's defaults")
      ->capture_default_str();
  command->add_option("--wrapper", arguments->wrapper,
                      "The Python class around the module, a JSON object such as\n"
                      "{\"type\": \"linformer_pytorch.Padder\"}");
  command->add_option("--output", arguments->output, "Directory to write")->required();
  command->add_option("--seed", arguments->seed, "Equal seeds give equal weights")
      ->capture_default_str();
  command->callback([arguments, &chosen] { chosen = [arguments] { return Init(*arguments); }; });
}

}  // namespace linserve
