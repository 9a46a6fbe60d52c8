#include <cstdio>
#include <fstream>
#include <iostream>
#include <memory>
#include <utility>

#include "absl/strings/numbers.h"
#include "client/commands/commands.h"
#include "client/commands/embed_arguments.h"
#include "client/commands/embed_job.h"
#include "client/commands/failure_log.h"
#include "client/commands/neighbours.h"
#include "client/commands/session_job.h"
#include "client/files/inputs.h"
#include "client/files/outputs.h"
#include "client/terminal/progress.h"
#include "core/files/file.h"

namespace linserve {
namespace {

// Holds the writer and, for JSON lines into a file, the file.
struct Destination {
  std::unique_ptr<std::ofstream> file;
  std::unique_ptr<ResultWriter> writer;
};

absl::StatusOr<Destination> OpenDestination(const EmbedArguments& arguments) {
  Destination destination;
  const OutputFormat format = arguments.ResultFormat();
  for (const std::string& path :
       {format == OutputFormat::kJsonLines ? "" : arguments.output, arguments.save}) {
    if (absl::Status status = CheckWritable(path); !status.ok()) return status;
  }
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

// Returns whether a sequence's `x` can be cut into rows.
bool HasRows(const Signature& signature) {
  const InputSpec* x = signature.FindInput("x");
  return x != nullptr && !x->axes.empty() && x->axes[0].letter != '\0';
}

EmbeddedLine ToLine(const InputSequence& input, const JobResult& job) {
  EmbeddedLine line{input.id, input.text, job.result.status, job.result.tokens, job.latency, {}};
  if (!job.result.status.ok() || job.result.outputs.empty()) return line;
  line.vector = ToFloats(job.result.outputs.begin()->second);
  return line;
}

// A line without anything on it is no sequence. In an array rows are lines no more behind it.
void WarnOfBlankLines(const EmbedArguments& arguments, const InputSequences& sequences) {
  const InputFormat format = arguments.Format();
  const bool lines = format == InputFormat::kText || format == InputFormat::kIds;
  if (!lines || arguments.ResultFormat() != OutputFormat::kNpy) return;
  size_t last = 0;
  if (!absl::SimpleAtoi(sequences.back().id, &last) || last <= sequences.size()) return;
  std::fprintf(stderr,
               "linserve-client: warning: %zu blank lines have no row in %s; JSON lines have each "
               "line's number\n",
               last - sequences.size(), arguments.output.c_str());
}

// Returns how the sequences are sent chunk by chunk.
absl::StatusOr<SessionJobOptions> SessionsOf(const EmbedArguments& arguments,
                                             const ModelDescription& model,
                                             const InputSequences& sequences) {
  SessionJobOptions job{.model = arguments.choice.model,
                        .version = arguments.choice.version,
                        .options = arguments.choice.ToOutputOptions(model),
                        .priority = PriorityFromLevel(arguments.choice.priority),
                        .chunk_rows = arguments.chunk_rows,
                        .signature = arguments.input.signature,
                        .state = {},
                        .save = !arguments.save.empty()};
  if (sequences.size() > 1 && !(arguments.restore + arguments.save).empty()) {
    return absl::InvalidArgumentError("--restore and --save are of one sequence; there are " +
                                      std::to_string(sequences.size()));
  }
  if (arguments.restore.empty()) return job;
  auto state = ReadWhole(arguments.restore);
  if (!state.ok()) return state.status();
  job.state = *std::move(state);
  return job;
}

EmbedJobOptions JobOf(const EmbedArguments& arguments, const ModelDescription& model,
                      ProgressLine& progress) {
  EmbedJobOptions job{.model = arguments.choice.model,
                      .version = arguments.choice.version,
                      .options = arguments.choice.ToOutputOptions(model),
                      .priority = PriorityFromLevel(arguments.choice.priority),
                      .truncation = arguments.input.truncation,
                      .prompt_name = arguments.prompt_name,
                      .batch = arguments.batch,
                      .in_flight = arguments.in_flight,
                      .one_request = arguments.input.signature.request_is_unit};
  job.on_progress = [&progress](const EmbedProgress& far) {
    if (progress.Due()) progress.Draw(ProgressText(far, progress.seconds()));
  };
  if (!HasRows(arguments.input.signature)) job.chunk_bytes = 0;
  return job;
}

int EmbedAll(EmbeddingClient& client, const EmbedArguments& arguments,
             const ModelDescription& model, const InputSequences& sequences) {
  const auto sessions = SessionsOf(arguments, model, sequences);
  if (!sessions.ok()) return FailWith(sessions.status());
  auto destination = OpenDestination(arguments);
  if (!destination.ok()) return FailWith(destination.status());
  ProgressLine progress;
  std::vector<EmbeddedLine> lines;
  FailureLog failures;
  absl::Status written;
  absl::Status saved;
  size_t done = 0;
  const auto take = [&](const JobResult& answer) {
    ++done;
    if (!answer.result.status.ok()) {
      if (failures.tells()) progress.Erase();
      failures.Add(answer.result.id, answer.result.status);
    } else if (!arguments.save.empty()) {
      saved = ReplaceFile(arguments.save, {answer.result.session});
    }
    if (arguments.neighbours) {
      lines.push_back(ToLine(sequences[answer.result.index], answer));
    } else if (written.ok()) {
      written = destination->writer->Write(answer.result);
    }
    if (arguments.chunk_rows == 0 && progress.Due()) {
      progress.Draw(ProgressText(done, sequences.size(), progress.seconds()));
    }
  };
  if (arguments.chunk_rows > 0) {
    const auto all = static_cast<size_t>(TotalRows(sessions->signature, sequences));
    const auto on_rows = [&](int64_t rows) {
      if (!progress.Due()) return;
      progress.Draw(ProgressText(static_cast<size_t>(rows), all, progress.seconds()));
    };
    RunSessionJob(client, *sessions, sequences, on_rows, take);
  } else {
    RunEmbedJob(client, JobOf(arguments, model, progress), sequences, take);
  }
  progress.Erase();
  if (arguments.neighbours) {
    std::fputs(NeighbourTable(lines).c_str(), stdout);
  } else if (written.ok()) {
    written = destination->writer->Finish();
  }
  const int code = failures.Finish();
  written.Update(saved);
  return written.ok() ? code : FailWith(written);
}

int RunEmbed(const GlobalOptions& globals, EmbedArguments arguments) {
  if (auto status = arguments.Check(); !status.ok()) return FailWith(status);
  if (globals.protocol != "linserve" && !(arguments.save + arguments.restore).empty()) {
    return FailWith(absl::InvalidArgumentError(
        "--save and --restore need --protocol linserve: the Open Inference Protocol has no message "
        "for the state of a session"));
  }
  EmbeddingClient client(globals.ToClientOptions());
  const auto model = client.GetModel(arguments.choice.model, arguments.choice.version);
  if (!model.ok()) return FailWith(model.status());
  if (arguments.neighbours) {
    const absl::Status fits = CheckGivesVectors(*model, "--neighbours");
    if (!fits.ok()) return FailWith(fits);
  }
  arguments.input.limits = InputLimits::Of(model->signature);
  arguments.input.signature = model->signature;
  arguments.input.texts = model->text;
  arguments.input.truncation = TruncationFromName(arguments.truncate);
  const auto sequences = ReadInputs(arguments.file, arguments.Format(), arguments.input);
  if (!sequences.ok()) return FailWith(sequences.status());
  if (sequences->empty()) return FailWith(absl::InvalidArgumentError("there is nothing to embed"));
  WarnOfBlankLines(arguments, *sequences);
  return EmbedAll(client, arguments, *model, *sequences);
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
  arguments->AddTo(*embed);
  embed->callback([&globals, &chosen, arguments] {
    chosen = [&globals, arguments] { return RunEmbed(globals, *arguments); };
  });
}

}  // namespace linserve
