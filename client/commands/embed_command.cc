#include <cstdio>
#include <fstream>
#include <iostream>
#include <memory>
#include <utility>

#include "client/commands/commands.h"
#include "client/commands/embed_job.h"
#include "client/commands/neighbours.h"
#include "client/commands/session_job.h"
#include "client/files/inputs.h"
#include "client/files/outputs.h"
#include "client/terminal/progress.h"

namespace linserve {
namespace {

// So many failures are told one by one.
constexpr size_t kToldFailures = 20;

struct EmbedArguments {
  std::string file = "-";
  std::string format = "auto";
  InputOptions input;
  std::string truncate = std::string(Name(Truncation::kNone));
  ModelChoice choice;
  std::string output;
  std::string output_format = "auto";
  size_t batch = EmbedJobOptions().batch;
  size_t in_flight = EmbedJobOptions().in_flight;
  bool neighbours = false;
  int64_t chunk_rows = 0;  // 0: sequences are sent as a whole
  std::string restore;
  std::string save;

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
  const bool chunks = arguments.chunk_rows > 0;
  if (!chunks && !(arguments.restore + arguments.save).empty()) {
    return absl::InvalidArgumentError("--restore and --save are of sessions: give --chunk-rows");
  }
  if (chunks && arguments.choice.pooling != "none" && arguments.choice.pooling != "last") {
    return absl::InvalidArgumentError(
        "--chunk-rows gives the rows of each chunk: choose --pooling "
        "none, or last for the last row alone");
  }
  if (arguments.ResultFormat() != OutputFormat::kJsonLines && arguments.output.empty()) {
    return absl::InvalidArgumentError("--output-format " + arguments.output_format +
                                      " needs --output FILE");
  }
  return absl::OkStatus();
}

// Holds the writer and, for JSON lines into a file, the file.
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

// Returns whether a sequence's `x` can be cut into rows.
bool HasRows(const Signature& signature) {
  const InputSpec* x = signature.FindInput("x");
  return x != nullptr && !x->axes.empty() && x->axes[0].letter != '\0';
}

EmbeddedLine ToLine(const InputSequence& input, const JobResult& job) {
  EmbeddedLine line{input.text, job.result.status, job.result.tokens, job.latency, {}};
  if (!job.result.status.ok() || job.result.outputs.empty()) return line;
  line.vector = ToFloats(job.result.outputs.begin()->second);
  return line;
}

absl::Status EmbedAsSessions(EmbeddingClient& client, const EmbedArguments& arguments,
                             const InputSequences& sequences, ProgressLine& progress,
                             const std::function<void(const JobResult&)>& on_result) {
  SessionJobOptions job{.model = arguments.choice.model,
                        .version = arguments.choice.version,
                        .options = arguments.choice.ToOutputOptions(),
                        .priority = PriorityFromLevel(arguments.choice.priority),
                        .chunk_rows = arguments.chunk_rows,
                        .signature = arguments.input.signature,
                        .state = {},
                        .save = !arguments.save.empty()};
  if (sequences.size() > 1 && !(arguments.restore + arguments.save).empty()) {
    return absl::InvalidArgumentError("--restore and --save are of one sequence; there are " +
                                      std::to_string(sequences.size()));
  }
  if (!arguments.restore.empty()) {
    auto state = ReadWhole(arguments.restore);
    if (!state.ok()) return state.status();
    job.state = *std::move(state);
  }
  const int64_t rows = TotalRows(job.signature, sequences);
  absl::Status saved;
  RunSessionJob(
      client, job, sequences,
      [&](int64_t done) {
        if (!progress.Due()) return;
        progress.Draw(
            ProgressText(static_cast<size_t>(done), static_cast<size_t>(rows), progress.seconds()));
      },
      [&](const JobResult& answer) {
        if (job.save && answer.result.status.ok()) {
          saved = WriteWhole(arguments.save, answer.result.session);
        }
        on_result(answer);
      });
  return saved;
}

int EmbedAll(EmbeddingClient& client, const EmbedArguments& arguments,
             const InputSequences& sequences) {
  auto destination = OpenDestination(arguments);
  if (!destination.ok()) return FailWith(destination.status());
  ProgressLine progress;
  EmbedJobOptions job{.model = arguments.choice.model,
                      .version = arguments.choice.version,
                      .options = arguments.choice.ToOutputOptions(),
                      .priority = PriorityFromLevel(arguments.choice.priority),
                      .truncation = arguments.input.truncation,
                      .batch = arguments.batch,
                      .in_flight = arguments.in_flight,
                      .one_request = arguments.input.signature.request_is_unit};
  job.on_progress = [&](const EmbedProgress& far) {
    if (progress.Due()) progress.Draw(ProgressText(far, progress.seconds()));
  };
  if (!HasRows(arguments.input.signature)) job.part_bytes = 0;
  std::vector<EmbeddedLine> lines;
  FailureLog failures;
  absl::Status written;
  size_t done = 0;
  const auto take = [&](const JobResult& answer) {
    ++done;
    if (!answer.result.status.ok()) failures.Add(answer.result, progress);
    if (arguments.neighbours) {
      lines.push_back(ToLine(sequences[answer.result.index], answer));
    } else if (written.ok()) {
      written = destination->writer->Write(answer.result);
    }
    if (arguments.chunk_rows == 0 && progress.Due()) {
      progress.Draw(ProgressText(done, sequences.size(), progress.seconds()));
    }
  };
  absl::Status sent;
  if (arguments.chunk_rows > 0) {
    sent = EmbedAsSessions(client, arguments, sequences, progress, take);
  } else {
    RunEmbedJob(client, job, sequences, take);
  }
  progress.Erase();
  if (!sent.ok()) return FailWith(sent);
  if (arguments.neighbours) {
    std::fputs(NeighbourTable(lines).c_str(), stdout);
  } else if (written.ok()) {
    written = destination->writer->Finish();
  }
  const int code = failures.Finish();
  return written.ok() ? code : FailWith(written);
}

int RunEmbed(const GlobalOptions& globals, EmbedArguments arguments) {
  if (auto status = CheckArguments(arguments); !status.ok()) return FailWith(status);
  if (globals.protocol != "linserve" && !(arguments.save + arguments.restore).empty()) {
    return FailWith(absl::InvalidArgumentError(
        "--save and --restore need --protocol linserve: the Open Inference Protocol has no message "
        "for the state of a session"));
  }
  EmbeddingClient client(globals.ToClientOptions());
  const auto model = client.GetModel(arguments.choice.model, arguments.choice.version);
  if (!model.ok()) return FailWith(model.status());
  arguments.input.limits = InputLimits::Of(model->signature);
  arguments.input.signature = model->signature;
  arguments.input.texts = model->text;
  arguments.input.truncation = TruncationFromName(arguments.truncate).value_or(Truncation::kNone);
  const auto sequences = ReadInputs(arguments.file, arguments.Format(), arguments.input);
  if (!sequences.ok()) return FailWith(sequences.status());
  if (sequences->empty()) return FailWith(absl::InvalidArgumentError("there is nothing to embed"));
  return EmbedAll(client, arguments, *sequences);
}

void AddInputOptions(CLI::App& embed, EmbedArguments& arguments) {
  embed.add_option("FILE", arguments.file, "What to embed; - is standard input")
      ->capture_default_str();
  embed
      .add_option("--format", arguments.format,
                  "What the file holds. text: each line is a text, whose bytes are token ids where "
                  "the model has no tokenizer; ids: each line is [id, ...] or "
                  "{\"id\": ..., \"x\": [id, ...]}; npy: one sequence, or many along a leading "
                  "axis; safetensors: each tensor is a sequence; auto: the file's extension says "
                  "which (.jsonl is ids), and any other is text")
      ->check(CLI::IsMember({"auto", "text", "ids", "npy", "safetensors"}))
      ->capture_default_str();
  embed.add_option("--token-offset", arguments.input.token_offset,
                   "Add this to every byte of a text where the model has no tokenizer, for models "
                   "with special tokens below the bytes");
  embed
      .add_flag("--truncate{right}", arguments.truncate,
                "Cut lines of text or ids that are longer than the model takes, on the right; "
                "--truncate=left keeps their ends")
      ->check(CLI::IsMember(
          std::vector<std::string>(kTruncationNames.begin(), kTruncationNames.end())));
  embed.add_flag("--batched", arguments.input.batched,
                 "Read a safetensors file of a whole batch as the Python package has it: its "
                 "tensors are named input.<argument>, with input.lengths if they are padded");
}

void AddOutputOptions(CLI::App& embed, EmbedArguments& arguments) {
  embed.add_option("--output", arguments.output, "Where to write (default: standard output)");
  embed
      .add_option("--output-format", arguments.output_format,
                  "How results are written. jsonl: one object a sequence; npy: one array, in which "
                  "a failed sequence is a row of NaN; safetensors: one tensor a sequence, named by "
                  "its id; auto: the extension of --output says which, and any other is jsonl")
      ->check(CLI::IsMember({"auto", "jsonl", "npy", "safetensors"}))
      ->capture_default_str();
  embed.add_flag("--neighbours", arguments.neighbours,
                 "Print, in place of the results, a table of each text line's nearest other line");
  embed.add_option("--batch", arguments.batch, "The most sequences in one request")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  embed.add_option("--in-flight", arguments.in_flight, "How many requests are sent at a time")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
}

void AddSessionOptions(CLI::App& embed, EmbedArguments& arguments) {
  embed
      .add_option("--chunk-rows", arguments.chunk_rows,
                  "Send each sequence as a session, so many rows at a time: causal models read on "
                  "where the chunk before ended")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 40));
  embed.add_option(
      "--restore", arguments.restore,
      "With --chunk-rows: the file of a saved session, from which the sequence goes on");
  embed.add_option("--save", arguments.save,
                   "With --chunk-rows: where to save the session after the last row");
}

}  // namespace

void AddEmbedCommand(CLI::App& app, const GlobalOptions& globals, ChosenCommand& chosen) {
  CLI::App* embed = app.add_subcommand("embed", "Embed the sequences of a file");
  embed->footer(
      "Examples:\n"
      "  linserve-client embed sentences.txt > embeddings.jsonl\n"
      "  echo 'how do I pay?' | linserve-client embed --normalize\n"
      "  linserve-client embed tokens.jsonl --truncate --output vectors.npy\n"
      "  linserve-client embed features.npy --pooling none --output rows.safetensors\n"
      "  linserve-client embed sentences.txt --neighbours\n"
      "  linserve-client embed long.npy --chunk-rows 4096 --pooling none --output rows.npy\n"
      "Results are in the order of the input. The exit code is 1 if a sequence failed: it is\n"
      "reported on standard error, and all others are written.");
  auto arguments = std::make_shared<EmbedArguments>();
  AddInputOptions(*embed, *arguments);
  arguments->choice.AddTo(*embed);
  AddOutputOptions(*embed, *arguments);
  AddSessionOptions(*embed, *arguments);
  embed->callback([&globals, &chosen, arguments] {
    chosen = [&globals, arguments] { return RunEmbed(globals, *arguments); };
  });
}

}  // namespace linserve
