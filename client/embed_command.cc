#include <cstdio>
#include <fstream>
#include <iostream>
#include <memory>
#include <utility>

#include "client/commands.h"
#include "client/embed_job.h"
#include "client/inputs.h"
#include "client/neighbours.h"
#include "client/outputs.h"
#include "client/progress.h"

namespace linserve {
namespace {

// So many failures are told one by one.
constexpr size_t kToldFailures = 20;

struct EmbedArguments {
  std::string file = "-";
  std::string format = "auto";
  InputOptions input;
  ModelChoice choice;
  std::string output;
  std::string output_format = "auto";
  size_t batch = EmbedJobOptions().batch;
  size_t in_flight = EmbedJobOptions().in_flight;
  bool neighbours = false;

  InputFormat Format() const {
    const auto named = InputFormatFromName(format);
    return named ? *named : InputFormatOfPath(file);
  }

  OutputFormat ResultFormat() const {
    if (const auto named = OutputFormatFromName(output_format)) return *named;
    if (output.ends_with(".npy")) return OutputFormat::kNpy;
    return output.ends_with(".safetensors") ? OutputFormat::kSafetensors : OutputFormat::kJsonLines;
  }
};

absl::Status CheckArguments(const EmbedArguments& arguments) {
  if (arguments.neighbours && arguments.Format() != InputFormat::kText) {
    return absl::InvalidArgumentError("--neighbours needs lines of text (--format text)");
  }
  if (arguments.neighbours && arguments.choice.pooling == "none") {
    return absl::InvalidArgumentError("--neighbours compares vectors: choose a --pooling");
  }
  if (arguments.neighbours && arguments.choice.outputs.size() > 1) {
    return absl::InvalidArgumentError("--neighbours compares one output: give one --output-name");
  }
  if (arguments.ResultFormat() != OutputFormat::kJsonLines && arguments.output.empty()) {
    return absl::InvalidArgumentError("--output-format " + arguments.output_format +
                                      " needs --output FILE");
  }
  return absl::OkStatus();
}

// The writer and, for JSON lines into a file, the file.
struct Destination {
  std::unique_ptr<std::ofstream> file;
  std::unique_ptr<ResultWriter> writer;
};

absl::StatusOr<Destination> OpenDestination(const EmbedArguments& arguments) {
  Destination destination;
  const OutputFormat format = arguments.ResultFormat();
  if (format == OutputFormat::kNpy) {
    destination.writer = MakeNpyWriter(arguments.output);
  } else if (format == OutputFormat::kSafetensors) {
    destination.writer = MakeSafetensorsWriter(arguments.output);
  } else if (arguments.output.empty() || arguments.output == "-") {
    destination.writer = MakeJsonLinesWriter(std::cout);
  } else {
    destination.file = std::make_unique<std::ofstream>(arguments.output, std::ios::binary);
    if (!*destination.file) return absl::NotFoundError("cannot write to " + arguments.output);
    destination.writer = MakeJsonLinesWriter(*destination.file);
  }
  return destination;
}

// Counts failures and tells the first of them.
class FailureLog {
 public:
  void Add(const SequenceResult& result, ProgressLine& progress) {
    if (++count_ > kToldFailures) return;
    progress.Erase();
    std::fprintf(stderr, "linserve-client: sequence %s: %s\n", result.id.c_str(),
                 result.status.ToString().c_str());
  }

  int Finish() const {
    if (count_ > kToldFailures) {
      std::fprintf(stderr, "linserve-client: and %zu more failed\n", count_ - kToldFailures);
    }
    return count_ == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
  }

 private:
  size_t count_ = 0;
};

EmbeddedLine ToLine(const InputSequence& input, const JobResult& job) {
  EmbeddedLine line{input.text, job.result.status, job.result.tokens, job.latency, {}};
  if (!job.result.status.ok() || job.result.outputs.empty()) return line;
  line.vector = ToFloats(job.result.outputs.begin()->second);
  return line;
}

int EmbedAll(EmbeddingClient& client, const EmbedArguments& arguments,
             const InputSequences& sequences) {
  auto destination = OpenDestination(arguments);
  if (!destination.ok()) return Fail(destination.status());
  const EmbedJobOptions job{
      .model = arguments.choice.model,
      .version = arguments.choice.version,
      .options = arguments.choice.ToOutputOptions(),
      .priority = PriorityFromLevel(arguments.choice.priority),
      .truncation = arguments.input.truncate ? Truncation::kRight : Truncation::kNone,
      .batch = arguments.batch,
      .in_flight = arguments.in_flight,
      .one_request = arguments.input.signature.request_is_unit};
  std::vector<EmbeddedLine> lines;
  FailureLog failures;
  absl::Status written;
  ProgressLine progress;
  size_t done = 0;
  RunEmbedJob(client, job, sequences, [&](const JobResult& answer) {
    ++done;
    if (!answer.result.status.ok()) failures.Add(answer.result, progress);
    if (arguments.neighbours) {
      lines.push_back(ToLine(sequences[answer.result.index], answer));
    } else if (written.ok()) {
      written = destination->writer->Write(answer.result);
    }
    if (progress.Due()) progress.Draw(ProgressText(done, sequences.size(), progress.seconds()));
  });
  progress.Erase();
  if (arguments.neighbours) {
    std::fputs(NeighbourTable(lines).c_str(), stdout);
  } else if (written.ok()) {
    written = destination->writer->Finish();
  }
  const int code = failures.Finish();
  return written.ok() ? code : Fail(written);
}

int RunEmbed(const GlobalOptions& globals, EmbedArguments arguments) {
  if (auto status = CheckArguments(arguments); !status.ok()) return Fail(status);
  EmbeddingClient client(globals.ToClientOptions());
  const auto model = client.GetModel(arguments.choice.model, arguments.choice.version);
  if (!model.ok()) return Fail(model.status());
  arguments.input.limits = InputLimits::Of(model->signature);
  arguments.input.signature = model->signature;
  arguments.input.texts = model->text;
  const auto sequences = ReadInputs(arguments.file, arguments.Format(), arguments.input);
  if (!sequences.ok()) return Fail(sequences.status());
  if (sequences->empty()) return Fail(absl::InvalidArgumentError("there is nothing to embed"));
  return EmbedAll(client, arguments, *sequences);
}

void AddInputOptions(CLI::App& embed, EmbedArguments& arguments) {
  embed.add_option("FILE", arguments.file, "What to embed; - is standard input")
      ->capture_default_str();
  embed
      .add_option("--format", arguments.format,
                  "text: each line is a text, whose bytes are token ids where the model has no "
                  "tokenizer; ids: each line is [id, ...] or "
                  "{\"id\": ..., \"x\": [id, ...]}; npy: one sequence, or many along a leading "
                  "axis; safetensors: each tensor a sequence; auto: by the file's extension "
                  "(.jsonl is ids), else text")
      ->check(CLI::IsMember({"auto", "text", "ids", "npy", "safetensors"}))
      ->capture_default_str();
  embed.add_option("--token-offset", arguments.input.token_offset,
                   "text without a tokenizer: added to every byte, for models with special tokens "
                   "below the bytes");
  embed.add_flag("--truncate", arguments.input.truncate,
                 "text, ids: cut the end of lines that are longer than the model takes");
  embed.add_flag("--batched", arguments.input.batched,
                 "safetensors: tensors named input.<argument>, each of a whole batch as the Python "
                 "package has it, and input.lengths if they are padded");
}

void AddOutputOptions(CLI::App& embed, EmbedArguments& arguments) {
  embed.add_option("--output", arguments.output, "Where to write (default: standard output)");
  embed
      .add_option("--output-format", arguments.output_format,
                  "jsonl: one object a sequence; npy: one array, in which a failed sequence is a "
                  "row of NaN; safetensors: one tensor a sequence, named by its id; auto: by the "
                  "extension of --output, else jsonl")
      ->check(CLI::IsMember({"auto", "jsonl", "npy", "safetensors"}))
      ->capture_default_str();
  embed.add_flag("--neighbours", arguments.neighbours,
                 "text: print a table of each line's nearest other line instead");
  embed.add_option("--batch", arguments.batch, "Sequences of one request at most")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  embed.add_option("--in-flight", arguments.in_flight, "Requests at a time")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
}

}  // namespace

void AddEmbedCommand(CLI::App& app, const GlobalOptions& globals, Command& command) {
  CLI::App* embed = app.add_subcommand("embed", "Embed the sequences of a file");
  embed->footer(
      "Examples:\n"
      "  linserve-client embed sentences.txt > embeddings.jsonl\n"
      "  echo 'how do I pay?' | linserve-client embed --normalize\n"
      "  linserve-client embed tokens.jsonl --truncate --output vectors.npy\n"
      "  linserve-client embed features.npy --pooling none --output rows.safetensors\n"
      "  linserve-client embed sentences.txt --neighbours\n"
      "Results are in the order of the input. The exit code is 1 if a sequence failed: it is\n"
      "reported on standard error, and all others are written.");
  auto arguments = std::make_shared<EmbedArguments>();
  AddInputOptions(*embed, *arguments);
  arguments->choice.AddTo(*embed);
  AddOutputOptions(*embed, *arguments);
  embed->callback([&globals, &command, arguments] {
    command = [&globals, arguments] { return RunEmbed(globals, *arguments); };
  });
}

}  // namespace linserve
