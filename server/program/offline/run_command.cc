#include <unistd.h>

#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/files/safetensors.h"
#include "core/sequence/package_layout.h"
#include "core/sequence/package_results.h"
#include "core/tensor/comparison.h"
#include "engine/serving_options.h"
#include "program/commands.h"
#include "program/offline/offline.h"
#include "program/option_flags.h"
#include "telemetry/metrics.h"

namespace linserve {
namespace {

struct RunArguments {
  std::string model;
  std::string input;
  std::string output;
  std::vector<std::string> outputs;
  std::string compare;
  double tolerance = -1;  // none
  std::string device = "auto";
  ServingOptions serving;
  OptionTable table;
  OptionFlags flags;
};

absl::StatusOr<std::unique_ptr<Engine>> StartEngine(const RunArguments& arguments,
                                                    ModelMetrics& metrics) {
  auto serving = ServingOptionsFor(arguments.model, arguments.serving, arguments.flags);
  if (!serving.ok()) return serving.status();
  serving->warmup = false;
  if (serving->replicas == 0) serving->replicas = 1;  // one batch after the other
  return StartOffline({arguments.model, *serving, arguments.device}, metrics);
}

// Shows how far the outputs are from those of equal names in another file. Returns OK if all are
// within the tolerance.
absl::Status CompareWith(const RunArguments& arguments, const TensorMap& outputs) {
  auto expected = ReadSafetensors(arguments.compare);
  if (!expected.ok()) return expected.status();
  size_t compared = 0;
  bool within = true;
  for (const auto& [name, tensor] : outputs) {
    const auto other = expected->tensors.find(name);
    if (other == expected->tensors.end()) continue;
    const auto comparison = Compare(tensor, other->second);
    if (!comparison.ok()) {
      return absl::InvalidArgumentError(name + ": " + std::string(comparison.status().message()));
    }
    std::printf("%s: %s\n", name.c_str(), ToString(*comparison).c_str());
    within = within && (arguments.tolerance < 0 || comparison->largest <= arguments.tolerance);
    ++compared;
  }
  if (compared == 0) {
    return absl::InvalidArgumentError(arguments.compare + " holds none of the outputs computed");
  }
  if (within) return absl::OkStatus();
  return absl::OutOfRangeError("a difference is larger than the tolerance");
}

absl::Status RunOffline(const RunArguments& arguments) {
  auto file = ReadSafetensors(arguments.input);
  if (!file.ok()) return file.status();
  Metrics metrics({});
  auto engine = StartEngine(arguments, metrics.ForModel("run", 1));
  if (!engine.ok()) return engine.status();
  const Signature& signature = (*engine)->info().signature;

  const auto batch = PackageBatch::From(signature, file->tensors);
  if (!batch.ok()) return batch.status();
  auto items = SplitBatch(signature, *batch);
  if (!items.ok()) return items.status();
  if (const std::string hint = HintOfPadding(signature, *batch); !hint.empty()) {
    std::fprintf(stderr, "linserve: note: %s\n", hint.c_str());
  }
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
  TensorMap outputs;
  for (const auto& [name, tensor] :
       JoinBatch(signature, *results, batch->PaddedLengths(signature))) {
    outputs["output." + name] = tensor;
  }
  if (!arguments.output.empty()) {
    absl::Status written = WriteSafetensors(arguments.output, outputs);
    if (!written.ok()) return written;
  }
  return arguments.compare.empty() ? absl::OkStatus() : CompareWith(arguments, outputs);
}

int Run(const RunArguments& arguments) {
  if (arguments.output.empty() && arguments.compare.empty()) {
    return Fail(
        "nothing to do with the outputs: give --output FILE to keep them or --compare FILE");
  }
  absl::Status status = RunOffline(arguments);
  return status.ok() ? 0 : Fail(std::string(status.message()));
}

}  // namespace

void AddRunCommand(CLI::App& app, ChosenCommand& chosen) {
  auto arguments = std::make_shared<RunArguments>();
  CLI::App* command = app.add_subcommand(
      "run", "Compute a file of sequences with the server's engine, without a server");
  command->footer(
      "The input holds tensors input.<argument>, named as the model's inputs are (`linserve\n"
      "inspect` lists them), with the batch axis where the Python package has it: in front, but\n"
      "second for linear_multihead_attention. Other tensors are ignored. input.lengths, one\n"
      "integer a sequence, makes the batch ragged along the first axis of the first input, and\n"
      "input.lengths.m along the axis that `inspect` calls m. The output holds output.<name>: y\n"
      "is what the package returns; rows past a sequence's length are zero.\n\n"
      "Examples:\n"
      "  linserve run --model my-model --input in.safetensors --output out.safetensors\n"
      "  linserve run --model my-model --input in.safetensors --compare package.safetensors \\\n"
      "      --tolerance 1e-5\n"
      "The second example shows how far the outputs are from what the package gave (or from\n"
      "another model's, or from this one's in another --dtype), and fails if that is too far.\n\n"
      "The flags from --padding on win over the \"serving\" object of the model's config.json. A\n"
      "model that Python ran in linformer_pytorch's Padder gives the same numbers for short\n"
      "sequences with --padding zeros.\n");
  AddModelFlag(*command, arguments->model);
  command->add_option("--input", arguments->input, "A safetensors file")->required();
  command->add_option("--output", arguments->output, "The safetensors file to write");
  command
      ->add_option("--outputs", arguments->outputs,
                   "Names of the outputs to compute (default: all)")
      ->delimiter(',');
  command->add_option("--compare", arguments->compare,
                      "A safetensors file with tensors output.<name> to compare with");
  command
      ->add_option(
          "--tolerance", arguments->tolerance,
          "With --compare: the exit code is 1 if two elements differ by more. It is absolute, so "
          "give 1e-5 times the largest output for 1e-5 of that")
      ->check(CLI::NonNegativeNumber);
  command->add_option("--device", arguments->device, kDeviceHelp)->capture_default_str();
  arguments->serving.Bind(arguments->table);
  AddOptionFlags(*command, arguments->table, arguments->flags,
                 {"padding", "buckets", "dtype", "threads", "replicas", "max_batch_tokens",
                  "max_batch_sequences", "allow_nonfinite"});
  command->callback([arguments, &chosen] { chosen = [arguments] { return Run(*arguments); }; });
}

}  // namespace linserve
