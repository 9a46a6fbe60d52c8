#include <array>
#include <cstdio>
#include <memory>
#include <utility>

#include "client/commands/commands.h"
#include "client/commands/embed_job.h"
#include "client/commands/failure_log.h"
#include "client/files/inputs.h"
#include "client/terminal/table.h"
#include "core/tensor/comparison.h"

namespace linserve {
namespace {

struct CompareArguments {
  std::string file;
  std::vector<std::string> models;
  InputOptions input;
  ModelChoice choice;
};

std::string Text(const char* format, double value) {
  std::array<char, 32> text;
  std::snprintf(text.data(), text.size(), format, value);
  return text.data();
}

// Returns the results of one model, in the order of the sequences.
absl::StatusOr<std::vector<SequenceResult>> ResultsOf(EmbeddingClient& client,
                                                      const CompareArguments& arguments,
                                                      const std::string& model,
                                                      const InputSequences& sequences) {
  const auto description = client.GetModel(model, 0);
  if (!description.ok()) return description.status();
  EmbedJobOptions job;
  job.model = model;
  job.options = arguments.choice.ToOutputOptions(*description);
  job.one_request = description->signature.request_is_unit;
  std::vector<SequenceResult> results;
  RunEmbedJob(client, job, sequences,
              [&](const JobResult& answer) { results.push_back(answer.result); });
  return results;
}

// Says how far two models are apart on the sequences that both embedded.
struct Difference {
  Comparison rows;
  size_t sequences = 0;
};

// Returns the first fault that is not one of a single sequence.
absl::StatusOr<Difference> CompareResults(const std::vector<SequenceResult>& first,
                                          const std::vector<SequenceResult>& second) {
  Difference sum;
  absl::Status fault = absl::NotFoundError("no sequence was embedded by both models");
  const auto of_sequence = [&](size_t i, const absl::Status& status) {
    return absl::Status(status.code(),
                        "sequence " + first[i].id + ": " + std::string(status.message()));
  };
  for (size_t i = 0; i < first.size(); ++i) {
    if (!first[i].status.ok() || !second[i].status.ok()) {
      fault = of_sequence(i, first[i].status.ok() ? second[i].status : first[i].status);
      continue;
    }
    const auto comparison =
        Compare(first[i].outputs.begin()->second, second[i].outputs.begin()->second);
    if (!comparison.ok()) return of_sequence(i, comparison.status());
    sum.rows.Add(*comparison);
    ++sum.sequences;
  }
  if (sum.rows.elements == 0) return fault;
  return sum;
}

int RunCompare(const GlobalOptions& globals, CompareArguments arguments) {
  if (arguments.models.size() < 2) {
    return FailWith(absl::InvalidArgumentError("--models needs two or more names"));
  }
  EmbeddingClient client(globals.ToClientOptions());
  const auto model = client.GetModel(arguments.models[0], 0);
  if (!model.ok()) return FailWith(model.status());
  arguments.input.limits = InputLimits::Of(model->signature);
  arguments.input.signature = model->signature;
  arguments.input.texts = model->text;
  const auto sequences =
      ReadInputs(arguments.file, InputFormatOfPath(arguments.file), arguments.input);
  if (!sequences.ok()) return FailWith(sequences.status());
  const auto reference = ResultsOf(client, arguments, arguments.models[0], *sequences);
  if (!reference.ok()) return FailWith(reference.status());
  FailureLog failures;
  const auto note_failures = [&failures](const std::string& name,
                                         const std::vector<SequenceResult>& results) {
    for (const SequenceResult& result : results) {
      if (!result.status.ok()) failures.Add(result.id + ", by " + name, result.status);
    }
  };
  note_failures(arguments.models[0], *reference);
  Table table({{"model"},
               {"sequences", Align::kRight},
               {"largest difference", Align::kRight},
               {"mean", Align::kRight},
               {"mean cosine", Align::kRight},
               {"smallest cosine", Align::kRight}});
  for (size_t i = 1; i < arguments.models.size(); ++i) {
    const auto results = ResultsOf(client, arguments, arguments.models[i], *sequences);
    if (!results.ok()) return FailWith(results.status());
    note_failures(arguments.models[i], *results);
    const auto difference = CompareResults(*reference, *results);
    if (!difference.ok()) {
      return FailWith({difference.status().code(), arguments.models[i] + " against " +
                                                       arguments.models[0] + ": " +
                                                       std::string(difference.status().message())});
    }
    const Comparison& rows = difference->rows;
    table.Add({arguments.models[i], std::to_string(difference->sequences),
               Text("%.3g", rows.largest), Text("%.3g", rows.mean), Text("%.6f", rows.mean_cosine),
               Text("%.6f", rows.smallest_cosine)});
  }
  std::printf("%zu sequences, against %s\n%s", sequences->size(), arguments.models[0].c_str(),
              table.ToText().c_str());
  return failures.Finish();
}

}  // namespace

void AddCompareCommand(CLI::App& app, const GlobalOptions& globals, ChosenCommand& chosen) {
  CLI::App* compare = app.add_subcommand(
      "compare", "Embed the same sequences with several models, and show how far they are apart");
  compare->footer(
      "Examples:\n"
      "  linserve-client compare sentences.txt --models softmax,elu,taylor\n"
      "  linserve-client compare features.npy --models f32,bf16 --pooling none");
  auto arguments = std::make_shared<CompareArguments>();
  compare
      ->add_option("FILE", arguments->file,
                   "What to embed, as for `embed`; its extension tells the format")
      ->required();
  compare->add_option("--models", arguments->models, "The model to compare with, then the others")
      ->delimiter(',')
      ->required();
  compare->add_flag("--batched", arguments->input.batched, "Read a whole batch, as `embed` does");
  arguments->choice.AddResultOptions(*compare);
  compare->callback([&globals, &chosen, arguments] {
    chosen = [&globals, arguments] { return RunCompare(globals, *arguments); };
  });
}

}  // namespace linserve
