#include <cstdint>
#include <cstdio>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>

#include "client/commands/commands.h"
#include "client/files/inputs.h"
#include "core/json/json_text.h"

namespace linserve {
namespace {

struct GenerateArguments {
  std::string prompt;
  ModelChoice choice;
  GenerateCall call;
  bool json = false;
};

// Parses the prompt as ids, where the model has no tokenizer: [1, 2, 3].
absl::StatusOr<std::vector<int64_t>> IdsOf(const std::string& prompt) {
  const InputSequences lines = ParseIdLines(prompt, {});
  if (lines.size() != 1) {
    return absl::InvalidArgumentError("the prompt has " + std::to_string(lines.size()) +
                                      " lines, expected one of token ids: '[1, 2, 3]'");
  }
  if (!lines[0].status.ok()) {
    return absl::InvalidArgumentError(
        "the prompt, of a model without a tokenizer, is token ids: "
        "'[1, 2, 3]'; " +
        std::string(lines[0].status.message()));
  }
  const Tensor& x = lines[0].inputs.at("x");
  std::vector<int64_t> ids(static_cast<size_t>(x.elements()));
  ConvertToInt64(x.dtype(), x.bytes(), x.elements(), ids.data());
  return ids;
}

// Prints the tokens. One that ends in the middle of a character adds no text yet.
void Print(const GeneratedTokens& tokens, bool text) {
  if (text) {
    std::fputs(tokens.text.c_str(), stdout);
  } else {
    for (const int64_t id : tokens.ids) std::printf("%lld ", static_cast<long long>(id));
  }
  std::fflush(stdout);
}

int RunGenerate(const GlobalOptions& globals, GenerateArguments arguments) {
  if (arguments.prompt == "-") {
    auto prompt = ReadWhole("-");
    if (!prompt.ok()) return FailWith(prompt.status());
    arguments.prompt = *std::move(prompt);
    // The end of its last line is of the file, as shells see it, and not of the prompt.
    if (arguments.prompt.ends_with('\n')) arguments.prompt.pop_back();
    if (arguments.prompt.ends_with('\r')) arguments.prompt.pop_back();
  }
  EmbeddingClient client(globals.ToClientOptions());
  const auto model = client.GetModel(arguments.choice.model, arguments.choice.version);
  if (!model.ok()) return FailWith(model.status());
  GenerateCall& call = arguments.call;
  call.model = model->name;
  call.version = arguments.choice.version;
  if (model->text) {
    call.text = arguments.prompt;
  } else {
    auto ids = IdsOf(arguments.prompt);
    if (!ids.ok()) return FailWith(ids.status());
    call.token_ids = *std::move(ids);
  }
  nlohmann::json ids = nlohmann::json::array();
  std::string text;
  const auto end = client.Generate(call, [&](const GeneratedTokens& tokens) {
    if (!arguments.json) return Print(tokens, model->text);
    for (const int64_t id : tokens.ids) ids.push_back(id);
    text += tokens.text;
  });
  if (!arguments.json) std::printf("\n");
  if (!end.ok()) return FailWith(end.status());
  if (arguments.json) {
    nlohmann::json answer = {{"token_ids", ids},
                             {"finish_reason", end->reason},
                             {"prompt_tokens", end->prompt_tokens},
                             {"generated_tokens", end->generated_tokens}};
    if (model->text) answer["text"] = text;
    std::printf("%s\n", JsonText(answer).c_str());
  }
  return EXIT_SUCCESS;
}

}  // namespace

void AddGenerateCommand(CLI::App& app, const GlobalOptions& globals, ChosenCommand& chosen) {
  CLI::App* generate =
      app.add_subcommand("generate", "Go on with a prompt, by a causal language model");
  generate->footer(
      "Examples:\n"
      "  linserve-client generate 'Once upon a time' --max-tokens 50 --temperature 0.8 --top-p "
      "0.9\n"
      "  linserve-client generate '[1, 17, 4]' --model lm --stop 2\n"
      "Tokens are printed as they come: as text where the model has a tokenizer, else as ids.");
  auto arguments = std::make_shared<GenerateArguments>();
  GenerateCall& call = arguments->call;
  generate
      ->add_option("PROMPT", arguments->prompt,
                   "A text or, where the model has no tokenizer, [id, ...]; - is standard input")
      ->required();
  arguments->choice.AddModelOptions(*generate);
  generate
      ->add_option("--max-tokens", call.max_tokens,
                   "How many tokens at most (default: as many as the model takes)")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 31));
  generate
      ->add_option("--temperature", call.temperature,
                   "How freely tokens are chosen. 0: always the likeliest token; 1: by the model's "
                   "probabilities")
      ->check(CLI::Range(0.0, 1e6))
      ->capture_default_str();
  generate
      ->add_option("--top-k", call.top_k,
                   "Choose among this many of the likeliest tokens (default: all)")
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 31));
  generate
      ->add_option("--top-p", call.top_p,
                   "Choose among the likeliest tokens that together have this probability")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  generate->add_option("--seed", call.seed, "Equal seeds give equal tokens")->capture_default_str();
  generate
      ->add_option("--stop", call.stop_tokens, "A token id that ends the answer; may be repeated")
      ->check(CLI::Range(int64_t{0}, int64_t{std::numeric_limits<uint32_t>::max()}))
      ->allow_extra_args(false);
  generate->add_flag("--json", arguments->json, "Print one JSON object at the end");
  generate->callback([&globals, &chosen, arguments] {
    chosen = [&globals, arguments] { return RunGenerate(globals, *arguments); };
  });
}

}  // namespace linserve
