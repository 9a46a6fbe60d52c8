#include <unistd.h>

#include <cstdio>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "commands.h"
#include "core/comparison.h"
#include "core/package_layout.h"
#include "core/safetensors.h"
#include "engine/serving_options.h"
#include "models/model_loader.h"
#include "offline.h"
#include "telemetry/metrics.h"

namespace linserve {
namespace {

struct Arguments {
  std::string model;
  std::string input;
  std::string output;
  std::vector<std::string> outputs;
  std::string compare;
  double tolerance = -1;  // none
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

// Shows how far the outputs are from those of the same names in another file. OK if all are within
// the tolerance.
absl::Status CompareWith(const Arguments& arguments, const TensorMap& outputs) {
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
  if (!arguments.output.empty()) {
    absl::Status written = WriteSafetensors(arguments.output, outputs);
    if (!written.ok()) return written;
  }
  return arguments.compare.empty() ? absl::OkStatus() : CompareWith(arguments, outputs);
}

int Run(const Arguments& arguments) {
  if (arguments.output.empty() && arguments.compare.empty()) {
    return Fail(
        "nothing to do with the outputs: give --output FILE to keep them or --compare FILE");
  }
  absl::Status status = RunOffline(arguments);
  return status.ok() ? 0 : Fail(std::string(status.message()));
}

}  // namespace

void AddRunCommand(CLI::App& app, ChosenCommand& chosen) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand(
      "run", "Compute a file of sequences with the server's engine, without a server");
  command->footer(
      "The input holds tensors input.<argument>, named as the model's inputs are (`linserve\n"
      "inspect` lists them), with the batch axis where the Python package has it: in front, but\n"
      "second for linear_multihead_attention. Other tensors are ignored. input.lengths, one\n"
      "integer a sequence, makes the batch ragged. The output holds output.<name>: y is what the\n"
      "package returns; rows past a sequence's length are zero.\n\n"
      "Examples:\n"
      "  linserve run --model my-model --input in.safetensors --output out.safetensors\n"
      "  linserve run --model my-model --input in.safetensors --compare package.safetensors \\\n"
      "      --tolerance 1e-5\n"
      "The second shows how far the outputs are from what the package gave (or from another\n"
      "model's, or from this one's in another --dtype), and fails if that is too far.\n");
  command->add_option("--model", arguments->model, "A model directory")->required();
  command->add_option("--input", arguments->input, "A safetensors file")->required();
  command->add_option("--output", arguments->output, "The safetensors file to write");
  command->add_option("--outputs", arguments->outputs, "Names of the outputs to compute; none: all")
      ->delimiter(',');
  command->add_option("--compare", arguments->compare,
                      "A safetensors file with tensors output.<name> to compare with");
  command
      ->add_option("--tolerance", arguments->tolerance,
                   "Of --compare: exit code 1 if a difference is larger")
      ->check(CLI::NonNegativeNumber);
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
