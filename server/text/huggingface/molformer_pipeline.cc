#include <array>
#include <nlohmann/json.hpp>
#include <string>

#include "core/json/json_text.h"
#include "core/strings/quote.h"
#include "text/huggingface/pipeline.h"

namespace linserve {
namespace {

using nlohmann::json;

// Finds the atoms, bonds, rings and branches of a molecule as SMILES; what lies between is dropped.
constexpr const char* kSmiles =
    R"((\[[^\]]+]|Br?|Cl?|N|O|S|P|F|I|b|c|n|o|s|p|\(|\)|\.|=|#|-|\+|\\|\/|:|~|@|\?|>|\*|\$|\%[0-9]{2}|[0-9]))";

struct Mark {
  const char* name;
  const char* usual;
};
// They stand in the order in which the package adds those that the vocabulary lacks.
constexpr std::array kMarks = {Mark{"unk_token", "<unk>"}, Mark{"sep_token", "<eos>"},
                               Mark{"pad_token", "<pad>"}, Mark{"cls_token", "<bos>"},
                               Mark{"mask_token", "<mask>"}};

// Returns the text of a mark that tokenizer_config.json may name, as a text or as an object.
std::string TextOf(const json& config, const Mark& mark) {
  json value = config.value(mark.name, json());
  if (value.is_object()) value = value.value("content", json());
  return value.is_string() ? value.get<std::string>() : mark.usual;
}

json AddedTokenOf(const std::string& content) {
  return {{"content", content}, {"single_word", false}, {"lstrip", false},
          {"rstrip", false},    {"normalized", false},  {"special", true}};
}

// Returns the tokens that are taken out of a text before it is split.
json AddedTokens(const json& config) {
  json added = json::array();
  for (const Mark& mark : kMarks) added.push_back(AddedTokenOf(TextOf(config, mark)));
  const json more = config.value("added_tokens_decoder", json::object());
  if (!more.is_object()) return added;
  for (const auto& [id, token] : more.items()) {
    if (!token.is_object() || !token.contains("content")) continue;
    json one = AddedTokenOf("");
    one.update(token);
    added.push_back(one);
  }
  return added;
}

// Returns the part of a tokenizer.json that puts the marks around a text.
json TemplateOf(const json& config) {
  const std::string before = TextOf(config, kMarks[3]);
  const std::string after = TextOf(config, kMarks[1]);
  const auto mark = [](const std::string& text) {
    return json{{"SpecialToken", {{"id", text}, {"type_id", 0}}}};
  };
  return {{"type", "TemplateProcessing"},
          {"single", {mark(before), {{"Sequence", {{"id", "A"}, {"type_id", 0}}}}, mark(after)}},
          {"pair", json::array()},
          {"special_tokens", json::object()}};
}

}  // namespace

absl::StatusOr<std::unique_ptr<const Pipeline>> MolformerPipeline(std::string_view vocabulary,
                                                                  const json& config) {
  auto tokens = ParseJson(vocabulary);
  if (!tokens.ok()) return tokens.status();
  if (!tokens->is_object()) return absl::InvalidArgumentError("it is no object of tokens");
  json post = TemplateOf(config);
  for (const Mark& mark : {kMarks[3], kMarks[1]}) {
    const std::string text = TextOf(config, mark);
    const json id = tokens->value(text, json());
    if (!id.is_number_integer()) {
      return absl::InvalidArgumentError("it has no " + Quoted(text) +
                                        ", which stands around each text");
    }
    post["special_tokens"][text] = {{"id", text}, {"ids", {id}}, {"tokens", {text}}};
  }
  // The package itself makes a tokenizer.json so.
  const json all = {
      {"version", "1.0"},
      {"added_tokens", AddedTokens(config)},
      {"pre_tokenizer",
       {{"type", "Split"},
        {"pattern", {{"Regex", kSmiles}}},
        {"behavior", "Removed"},
        {"invert", true}}},
      {"post_processor", post},
      {"decoder", {{"type", "Fuse"}}},
      {"model",
       {{"type", "WordLevel"}, {"vocab", *tokens}, {"unk_token", TextOf(config, kMarks[0])}}}};
  return ReadPipeline(all.dump());
}

}  // namespace linserve
