#include <unistd.h>

#include <cstdio>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "commands.h"
#include "core/safetensors.h"
#include "engine/serving_options.h"
#include "models/model_loader.h"
#include "offline.h"
#include "package_layout.h"
#include "telemetry/metrics.h"

namespace linserve {
namespace {

struct Arguments {
  std::string model;
  std::string input;
  std::string output;
  std::vector<std::string> outputs;
  LoadOptions load;
  std::string padding = "packed";
};

// Tensors named input.<argument>, without the prefix; input.lengths apart.
struct Inputs {
  TensorMap tensors;
  const Tensor* lengths = nullptr;
};

Inputs TakeInputs(const TensorMap& file) {
  constexpr std::string_view kPrefix = "input.";
  Inputs inputs;
  for (const auto& [name, tensor] : file) {
    if (name == "input.lengths") {
      inputs.lengths = &tensor;
    } else if (name.starts_with(kPrefix)) {
      inputs.tensors[name.substr(kPrefix.size())] = tensor;
    }
  }
  return inputs;
}

absl::StatusOr<std::unique_ptr<Engine>> StartEngine(const Arguments& arguments,
                                                    ModelMetrics& metrics) {
  EngineOptions options;
  options.padding = PaddingFromName(arguments.padding).value_or(Padding::kPacked);
  options.warmup = false;
  // What is read from a file is in memory already: nothing to refuse.
  options.limits = {std::numeric_limits<int64_t>::max(), std::numeric_limits<int64_t>::max(),
                    std::numeric_limits<int64_t>::max()};
  return Engine::Start(
      options, [&] { return LoadModel(arguments.model, arguments.load); }, metrics);
}

absl::Status RunOffline(const Arguments& arguments) {
  auto file = ReadSafetensors(arguments.input);
  if (!file.ok()) return file.status();
  Metrics metrics({});
  auto engine = StartEngine(arguments, metrics.ForModel("run", 1));
  if (!engine.ok()) return engine.status();
  const Signature& signature = (*engine)->info().signature;

  const Inputs inputs = TakeInputs(file->tensors);
  auto items = SplitBatch(signature, inputs.tensors, inputs.lengths);
  if (!items.ok()) return items.status();
  std::vector<std::string> wanted = arguments.outputs;
  if (wanted.empty()) {
    for (const OutputSpec& output : signature.outputs) wanted.push_back(output.name);
  }
  for (Item& item : *items) item.options.outputs = wanted;

  const bool terminal = isatty(STDERR_FILENO) == 1;
  auto results = RunAll(**engine, *std::move(items), [&](size_t done, size_t all) {
    if (terminal)
      std::fprintf(stderr, "\r%zu of %zu sequences%s", done, all, done == all ? "\n" : "");
  });
  if (!results.ok()) return results.status();
  const bool ragged = inputs.lengths != nullptr;
  const int64_t longest = ragged ? PaddedLength(signature, inputs.tensors) : 0;
  TensorMap outputs;
  for (const auto& [name, tensor] : JoinBatch(signature, *results, longest)) {
    outputs["output." + name] = tensor;
  }
  return WriteSafetensors(arguments.output, outputs);
}

int Run(const Arguments& arguments) {
  absl::Status status = RunOffline(arguments);
  return status.ok() ? 0 : Fail(std::string(status.message()));
}

}  // namespace

void AddRunCommand(CLI::App& app, ChosenCommand& chosen) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand(
      "run", "Compute a file of sequences with the server's engine, without a server");
  command->footer(
      "The input holds tensors input.<argument> with a leading batch axis, named as the model's\n"
      "inputs are (`linserve inspect` lists them); other tensors are ignored. input.lengths, one\n"
      "integer a sequence, makes the batch ragged. The output holds output.<name>: y is what the\n"
      "Python package returns; rows past a sequence's length are zero.\n\n"
      "Example:\n"
      "  linserve run --model my-model --input in.safetensors --output out.safetensors\n");
  command->add_option("--model", arguments->model, "A model directory")->required();
  command->add_option("--input", arguments->input, "A safetensors file")->required();
  command->add_option("--output", arguments->output, "The safetensors file to write")->required();
  command->add_option("--outputs", arguments->outputs, "Names of the outputs to compute; none: all")
      ->delimiter(',');
  command->add_option("--dtype", arguments->load.dtype, "f32, bf16 or auto")
      ->check(CLI::IsMember({"f32", "bf16", "auto"}))
      ->capture_default_str();
  command->add_option("--padding", arguments->padding, "packed, bucket, fixed or zeros")
      ->check(CLI::IsMember({"packed", "bucket", "fixed", "zeros"}))
      ->capture_default_str();
  command->add_option("--threads", arguments->load.threads, "0: one a processor")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command->add_option("--device", arguments->load.device, "auto or cpu")->capture_default_str();
  command->callback([arguments, &chosen] { chosen = [arguments] { return Run(*arguments); }; });
}

}  // namespace linserve
