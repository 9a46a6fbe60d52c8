#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "client/commands/commands.h"
#include "client/commands/embed_job.h"
#include "client/commands/neighbours.h"
#include "client/files/inputs.h"
#include "client/files/passages.h"
#include "client/terminal/progress.h"
#include "client/terminal/table.h"
#include "core/strings/utf8.h"

namespace linserve {
namespace {

struct SearchArguments {
  std::string index;
  std::vector<std::string> queries;
  std::string query_prompt;  // names of the model's prompts; "": its default one
  std::string passage_prompt;
  ModelChoice choice;
  size_t top = 5;
  size_t longest = 600;
};

using Vectors = std::vector<std::vector<float>>;

// Reads the passages. It is called before anything is asked of a server, so that what is wrong with
// the text is told at once.
absl::StatusOr<std::vector<Passage>> ReadPassages(const SearchArguments& arguments) {
  const auto content = ReadWhole(arguments.index);
  if (!content.ok()) return content.status();
  if (!IsUtf8(*content)) {
    return absl::InvalidArgumentError(arguments.index + " is not a text in UTF-8");
  }
  auto passages = CutIntoPassages(*content, arguments.longest);
  if (passages.empty()) return absl::InvalidArgumentError("there is nothing to search in");
  return passages;
}

// Embeds the texts, and returns one vector of length one for each.
absl::StatusOr<Vectors> EmbedTexts(EmbeddingClient& client, const SearchArguments& arguments,
                                   const ModelDescription& model, const std::string& prompt_name,
                                   const std::vector<std::string>& texts) {
  InputSequences sequences;
  for (const std::string& text : texts) {
    sequences.push_back({std::to_string(sequences.size()), absl::OkStatus(), {}, text});
  }
  OutputOptions options = arguments.choice.ToOutputOptions(model);
  options.normalize = true;
  const EmbedJobOptions job{.model = arguments.choice.model,
                            .version = arguments.choice.version,
                            .options = options,
                            .truncation = Truncation::kRight,
                            .prompt_name = prompt_name};
  Vectors vectors(texts.size());
  absl::Status fault;
  ProgressLine progress;
  size_t done = 0;
  RunEmbedJob(client, job, sequences, [&](const JobResult& answer) {
    ++done;
    if (progress.Due()) progress.Draw(ProgressText(done, texts.size(), progress.seconds()));
    if (!answer.result.status.ok()) return fault.Update(answer.result.status);
    vectors[answer.result.index] = Unit(ToFloats(answer.result.outputs.begin()->second));
  });
  progress.Erase();
  if (!fault.ok()) return fault;
  return vectors;
}

std::string NearestTable(const std::vector<float>& query, const std::vector<Passage>& passages,
                         const Vectors& vectors, size_t top) {
  Table table({{"score", Align::kRight}, {"line", Align::kRight}, {"passage", Align::kLeft}});
  for (const Neighbour& found : Nearest(query, vectors, top)) {
    const Passage& passage = passages[found.index];
    char score[16];
    std::snprintf(score, sizeof(score), "%.3f", found.cosine);
    table.Add({score, std::to_string(passage.line), Excerpt(passage.text, 100)});
  }
  return table.ToText();
}

int RunSearch(const GlobalOptions& globals, const SearchArguments& arguments) {
  const auto passages = ReadPassages(arguments);
  if (!passages.ok()) return FailWith(passages.status());
  EmbeddingClient client(globals.ToClientOptions());
  const auto model = client.GetModel(arguments.choice.model, arguments.choice.version);
  if (!model.ok()) return FailWith(model.status());
  if (!model->text) {
    return FailWith(absl::InvalidArgumentError(
        "model " + model->name +
        " takes no text, for it has no tokenizer; search needs one that does"));
  }
  if (absl::Status fits = CheckGivesVectors(*model, "search"); !fits.ok()) return FailWith(fits);
  const auto of_queries =
      EmbedTexts(client, arguments, *model, arguments.query_prompt, arguments.queries);
  if (!of_queries.ok()) return FailWith(of_queries.status());
  std::vector<std::string> texts;
  for (const Passage& passage : *passages) texts.push_back(passage.text);
  const auto of_passages = EmbedTexts(client, arguments, *model, arguments.passage_prompt, texts);
  if (!of_passages.ok()) return FailWith(of_passages.status());
  for (size_t i = 0; i < of_queries->size(); ++i) {
    std::printf("%s%s\n%s", i > 0 ? "\n" : "", arguments.queries[i].c_str(),
                NearestTable((*of_queries)[i], *passages, *of_passages, arguments.top).c_str());
  }
  return EXIT_SUCCESS;
}

}  // namespace

void AddSearchCommand(CLI::App& app, const GlobalOptions& globals, ChosenCommand& chosen) {
  CLI::App* search = app.add_subcommand("search", "Find the passages of a text nearest in meaning");
  search->footer(
      "Examples:\n"
      "  man ls | linserve-client search --index - 'newest files first'\n"
      "  linserve-client search --index deploy/README.md 'scale out' 'which port' --top 3\n"
      "Passages are paragraphs, cut where a sentence ends if they are long. Scores are cosines.\n"
      "The model must take text.");
  auto arguments = std::make_shared<SearchArguments>();
  search->add_option("--index", arguments->index, "The text to search in; - is standard input")
      ->required();
  search
      ->add_option("QUERY", arguments->queries,
                   "What to look for; each query is answered by itself")
      ->required();
  arguments->choice.AddModelOptions(*search);
  search->add_option("--query-prompt", arguments->query_prompt,
                     "The model's prompt to put before each query, by its name (default: its "
                     "default one, if it has one)");
  search->add_option("--passage-prompt", arguments->passage_prompt, "The same for the passages");
  search->add_option("--top", arguments->top, "How many passages to print")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  search->add_option("--passage-bytes", arguments->longest, "The most bytes in a passage")
      ->check(CLI::Range(20, 100000))
      ->capture_default_str();
  search->callback([&globals, &chosen, arguments] {
    chosen = [&globals, arguments] { return RunSearch(globals, *arguments); };
  });
}

}  // namespace linserve
