#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/sequence/pooling.h"
#include "core/sequence/signature_json.h"
#include "core/sequence/truncation.h"
#include "models/inspect_model.h"
#include "program/commands.h"
#include "program/model_tokenizer.h"
#include "program/offline/verify.h"
#include "program/option_flags.h"

namespace linserve {
namespace {

struct InspectArguments {
  std::string model;
  bool all = false;
  bool json = false;
  bool verify = false;
  std::string input;  // empty: random sequences
};

std::string KindOf(const InputSpec& input) {
  switch (input.kind) {
    case InputKind::kFloat:
      return std::string("float") + (input.folds ? ", further axes may follow" : "");
    case InputKind::kToken:
      return "token ids below " + std::to_string(input.vocabulary);
    case InputKind::kMask:
      return "mask";
    case InputKind::kAttentionMask:
      return std::string("attention mask") + (input.broadcast ? ", first axis optional" : "");
  }
  return "";
}

// Lists the first names, and says how many there are besides.
std::string FirstOf(const std::vector<std::string>& names, size_t most) {
  const size_t shown = std::min(names.size(), most);
  std::string list;
  for (size_t i = 0; i < shown; ++i) list += (i == 0 ? "" : ", ") + names[i];
  return list + (shown == names.size()
                     ? ""
                     : " and " + std::to_string(names.size() - shown) + " more (--tensors)");
}

// Holds how the model would be served, as far as its own files say.
struct AsServed {
  ServingOptions serving;
  std::shared_ptr<const Tokenizer> tokenizer;  // null: none
};

// Returns how many tokens a text may have; 0: any number.
int64_t MostTextTokens(const ModelReport& report, const AsServed& served) {
  const InputSpec* input = report.info.signature.FindInput(kTextBecomes);
  const char letter = input == nullptr || input->axes.empty() ? '\0' : input->axes[0].letter;
  return SmallerLimit(TextLimitOf(served.serving, served.tokenizer.get()).first,
                      LongestFor(report.info.signature, Item(), letter));
}

std::string TextsOf(const ModelReport& report, const AsServed& served) {
  if (served.tokenizer == nullptr) return "none: there is no tokenizer";
  const ServingOptions& serving = served.serving;
  const int64_t most = MostTextTokens(report, served);
  const auto [limit, origin] = TextLimitOf(serving, served.tokenizer.get());
  if (most == 0) return served.tokenizer->file() + ", of any length";
  const bool cut = TruncationOf(serving, served.tokenizer.get()) != Truncation::kNone;
  return served.tokenizer->file() + (cut ? ", cut at " : ", refused above ") +
         std::to_string(most) + " tokens" + (most == limit ? " (" + origin + ")" : "");
}

// Says how a late-interaction model reads the texts of both tasks.
std::string RowsOf(const LateInteraction& late) {
  const auto tokens = [](int64_t most) {
    return most == 0 ? std::string() : " of " + std::to_string(most) + " tokens at most";
  };
  std::string queries = "queries" + tokens(late.query_tokens);
  if (late.expansion) {
    queries += ", filled up to " + std::to_string(late.expansion->length) +
               (late.expansion->attended ? ", which others see" : "");
  }
  return queries + "; documents" + tokens(late.document_tokens) + "; " +
         std::to_string(late.skipped.size()) + " tokens without rows; " +
         (late.mean ? "MeanMaxSim" : "MaxSim");
}

std::string PromptsOf(const ServingOptions& serving) {
  std::string names;
  for (const auto& [name, prompt] : serving.prompts) {
    names += (names.empty() ? "" : ", ") + name;
    if (name == serving.default_prompt) names += " (default)";
  }
  return names;
}

void PrintServed(const ModelReport& report, const AsServed& served) {
  const ServingOptions& serving = served.serving;
  std::printf("texts          %s\n", TextsOf(report, served).c_str());
  const bool sparse = report.info.signature.outputs[0].name == kSparseEmbedding;
  if (report.info.labels == nullptr && !sparse) {
    std::printf("pooling        %s%s\n", std::string(Name(serving.pooling)).c_str(),
                serving.normalize ? ", normalized" : "");
  }
  if (serving.late_interaction) {
    std::printf("rows           %s\n", RowsOf(*serving.late_interaction).c_str());
  }
  if (!serving.prompts.empty()) std::printf("prompts        %s\n", PromptsOf(serving).c_str());
}

void PrintText(const ModelReport& report, const AsServed& served, bool all) {
  const Signature& signature = report.info.signature;
  std::printf("architecture   %s\n", report.info.architecture.c_str());
  std::printf("parameters     %lld in %zu tensors\n",
              static_cast<long long>(report.info.parameters), report.parameters.size());
  std::printf("memory         %.1f MiB in f32\n",
              static_cast<double>(report.info.bytes) / (1 << 20));
  std::printf("compute        %.3f MFLOP a token, at a length of %lld, all outputs\n",
              report.flops_per_token / 1e6, static_cast<long long>(report.length));
  for (const InputSpec& input : signature.inputs) {
    std::printf("input          %s %s, %s%s\n", input.name.c_str(), ToString(input.axes).c_str(),
                KindOf(input).c_str(), input.optional ? ", optional" : "");
  }
  for (size_t i = 0; i < signature.outputs.size(); ++i) {
    std::printf("output         %s %s%s\n", signature.outputs[i].name.c_str(),
                ToString(signature.outputs[i].axes).c_str(), i == 0 ? " (default)" : "");
  }
  for (const LengthLimit& limit : signature.limits) {
    std::printf("limit          %c %s %lld%s\n", limit.letter,
                limit.shortest == limit.longest ? "=" : "<=", static_cast<long long>(limit.longest),
                limit.unless_input.empty() ? "" : (" without " + limit.unless_input).c_str());
  }
  PrintServed(report, served);
  if (report.info.no_sessions.empty()) {
    std::printf("sessions       %lld bytes each\n",
                static_cast<long long>(report.info.session_bytes));
  } else {
    std::printf("sessions       none: %s\n", report.info.no_sessions.c_str());
  }
  for (const auto& [name, value] : report.facts) {
    std::printf("%-14s %s\n", name.c_str(), value.c_str());
  }
  for (const std::string& warning : report.warnings) {
    std::printf("warning        %s\n", warning.c_str());
  }
  if (all) {
    for (const ModelReport::Row& row : report.parameters) {
      std::printf("tensor         %s %s\n", row.name.c_str(), ToString(row.shape).c_str());
    }
  }
  if (!report.prefix.empty()) std::printf("prefix         %s removed\n", report.prefix.c_str());
  if (!report.left_out.empty()) {
    std::printf("left out       %s\n",
                FirstOf(report.left_out, all ? report.left_out.size() : 8).c_str());
  }
  std::printf("checkpoint     %s%s\n",
              report.difference.empty() ? "fits the configuration" : "DOES NOT FIT:",
              report.difference.c_str());
  if (!report.nonfinite.empty()) std::printf("NOT FINITE     %s\n", report.nonfinite.c_str());
}

nlohmann::json ToJson(const Verification& verification) {
  const Comparison& rows = verification.rows;
  return {{"largest", rows.largest},
          {"mean", rows.mean},
          {"mean_cosine", rows.mean_cosine},
          {"smallest_cosine", rows.smallest_cosine},
          {"rows", rows.rows},
          {"changed_neighbours", verification.changed_neighbours},
          {"sequences", verification.sequences}};
}

nlohmann::json ToJson(const ModelReport& report, const AsServed& served) {
  const ServingOptions& serving = served.serving;
  const Tokenizer* const tokenizer = served.tokenizer.get();
  nlohmann::json tensors = nlohmann::json::object();
  for (const ModelReport::Row& row : report.parameters) tensors[row.name] = row.shape;
  nlohmann::json document = ToJson(report.info.signature);
  document.update({{"architecture", report.info.architecture},
                   {"parameters", report.info.parameters},
                   {"bytes", report.info.bytes},
                   {"session_bytes", report.info.session_bytes},
                   {"no_sessions", report.info.no_sessions},
                   {"flops_per_token", report.flops_per_token},
                   {"length", report.length},
                   {"tensors", tensors},
                   {"facts", report.facts},
                   {"warnings", report.warnings},
                   {"tokenizer", tokenizer == nullptr ? "" : tokenizer->file()},
                   {"truncation", Name(TruncationOf(serving, tokenizer))},
                   {"max_text_tokens", MostTextTokens(report, served)},
                   {"pooling", Name(serving.pooling)},
                   {"normalize", serving.normalize},
                   {"prompts", serving.prompts},
                   {"default_prompt", serving.default_prompt},
                   {"pair_template", serving.pair_template},
                   {"stripped_prefix", report.prefix},
                   {"left_out", report.left_out},
                   {"difference", report.difference},
                   {"nonfinite", report.nonfinite}});
  return document;
}

// Returns a length as people usually have it, if the model takes it.
int64_t VerifiedLength(const ModelReport& report) { return std::min<int64_t>(report.length, 512); }

int Inspect(const InspectArguments& arguments) {
  // What the server would refuse at its start is reported here, too.
  const auto serving = ServingOptionsFor(arguments.model, ServingOptions());
  if (!serving.ok()) return Fail(std::string(serving.status().message()));
  const auto tokenizer = LoadTokenizer(arguments.model, *serving);
  if (!tokenizer.ok()) return Fail(std::string(tokenizer.status().message()));
  auto report = InspectModel(arguments.model);
  if (!report.ok()) return Fail(std::string(report.status().message()));
  if (*tokenizer != nullptr) {
    const absl::Status taken =
        CheckTokenizer(arguments.model, *serving, **tokenizer, report->info.signature);
    if (!taken.ok()) return Fail(std::string(taken.message()));
  }
  const AsServed served = {*serving, *tokenizer};
  std::vector<Verification> verified;
  const bool fits =
      report->difference.empty() && (report->nonfinite.empty() || serving->allow_nonfinite);
  if (arguments.verify && fits) {
    auto types =
        VerifyTypes({arguments.model, *serving, "cpu"}, arguments.input, VerifiedLength(*report));
    if (!types.ok()) return Fail(std::string(types.status().message()));
    verified = *std::move(types);
  }
  if (arguments.json) {
    nlohmann::json document = ToJson(*report, served);
    for (const Verification& one : verified) document[one.dtype + "_error"] = ToJson(one);
    std::printf("%s\n", document.dump(2).c_str());
  } else {
    PrintText(*report, served, arguments.all);
    for (const Verification& one : verified) std::printf("%s\n", ToString(one).c_str());
  }
  const bool finite = std::ranges::all_of(
      verified, [](const Verification& one) { return std::isfinite(one.rows.largest); });
  return fits && finite ? 0 : 1;
}

}  // namespace

void AddInspectCommand(CLI::App& app, ChosenCommand& chosen) {
  auto arguments = std::make_shared<InspectArguments>();
  CLI::App* command = app.add_subcommand(
      "inspect", "Show a model's size, cost, inputs and outputs, and whether its tensors fit");
  AddModelFlag(*command, arguments->model);
  command->add_flag("--tensors", arguments->all,
                    "List every tensor that the configuration asks for");
  CLI::Option* verify = command->add_flag(
      "--verify", arguments->verify,
      "Compute sequences in f32 and in every other type that this CPU has, and show how far they "
      "differ: the first output, before pooling, and whether another sequence is nearest");
  command
      ->add_option("--input", arguments->input,
                   "The sequences to verify with, as `linserve run` takes them (default: random)")
      ->needs(verify)
      ->check(CLI::ExistingFile);
  command->add_flag("--json", arguments->json, "Print it as JSON");
  command->callback([arguments, &chosen] { chosen = [arguments] { return Inspect(*arguments); }; });
}

}  // namespace linserve
