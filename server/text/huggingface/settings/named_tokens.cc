#include "text/huggingface/settings/named_tokens.h"

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "core/json/json_number.h"
#include "core/strings/quote.h"

namespace linserve {
namespace {

using nlohmann::json;

// Lists the marks in the order in which the package adds those that a tokenizer lacks.
constexpr std::array<std::string_view, 7> kMarks = {
    "bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"};

constexpr std::string_view kMask = kMarks.back();
constexpr const char* kFurther = "extra_special_tokens";
constexpr const char* kOldFurther = "additional_special_tokens";
constexpr const char* kOwnTokens = "model_specific_special_tokens";

// Returns a token with all members that one has in a tokenizer.json: what is not said is as the
// package's AddedToken has it.
absl::StatusOr<json> WholeToken(const json& value, const char* file) {
  json token = value.is_string() ? json{{"content", value}, {"special", true}} : value;
  if (!token.is_object() || !token.value("content", json()).is_string()) {
    return absl::InvalidArgumentError(std::string(file) +
                                      " names a token that is neither a text nor an object with "
                                      "a 'content'");
  }
  json made = {{"single_word", false}, {"lstrip", false}, {"rstrip", false}, {"special", false}};
  made.update(token);
  if (!made.contains("normalized")) made["normalized"] = made["special"] != true;
  return made;
}

using TokensById = std::map<int64_t, json>;

// Reads {"30522": {"content": ...}, ...}.
absl::Status ReadListed(const json& listed, TokensById& tokens) {
  if (!listed.is_object()) {
    return absl::InvalidArgumentError("tokenizer_config.json: 'added_tokens_decoder' is no object");
  }
  for (const auto& [key, value] : listed.items()) {
    const auto id = IntegerOf<int64_t>(key);
    if (!id) {
      return absl::InvalidArgumentError(
          "tokenizer_config.json: 'added_tokens_decoder' has the id " + Quoted(key) +
          ", expected an integer");
    }
    auto token = WholeToken(value, "tokenizer_config.json");
    if (!token.ok()) return token.status();
    tokens[*id] = *std::move(token);
  }
  return absl::OkStatus();
}

using TokenTexts = std::set<std::string>;

std::string ContentOf(const json& token) {
  const json text = token.is_object() ? token.value("content", json()) : token;
  return text.is_string() ? text.get<std::string>() : "";
}

TokenTexts TokenTextsOf(const json& tokens) {
  TokenTexts texts;
  for (const json& token : tokens) texts.insert(ContentOf(token));
  return texts;
}

bool IsNamed(std::string_view name) {
  const bool is_mark = std::find(kMarks.begin(), kMarks.end(), name) != kMarks.end();
  return !is_mark && name.ends_with("_token");
}

bool IsToken(const json& value) {
  return value.is_string() || (value.is_object() && value.contains("content"));
}

// Holds tokens by their names, in the order in which they came.
using TokensByName = nlohmann::ordered_json;

void TakeNamed(const json& tokens, TokensByName& into) {
  if (!tokens.is_object()) return;
  for (const auto& [name, token] : tokens.items()) into[name] = token;
}

// Holds tokens beside the marks, as transformers collects them.
struct OtherTokens {
  TokensByName own = TokensByName::object();  // a model's, such as its "image_token"
  json further = json::array();
  bool further_early = false;  // they are known when added_tokens.json is read
};

// Returns the marks of gaps that T5 fills: so many, or as many as usual.
json Sentinels(const json& number) {
  constexpr int64_t kUsual = 100;
  constexpr int64_t kMost = 1000;
  const int64_t count =
      number.is_number_integer() ? std::clamp<int64_t>(number.get<int64_t>(), 0, kMost) : kUsual;
  json sentinels = json::array();
  for (int64_t i = 0; i < count; ++i) {
    sentinels.push_back("<extra_id_" + std::to_string(i) + ">");
  }
  return sentinels;
}

OtherTokens OtherTokensOf(const TokenizerSettings& settings) {
  const json& config = settings.config;
  json further = config.value(kFurther, json());
  json old = config.value(kOldFurther, json());
  if (further.empty() && !old.empty()) further = std::exchange(old, json());
  OtherTokens others;
  TokensByName collected = TokensByName::object();
  for (const auto& [name, value] : config.items()) {
    if (!IsNamed(name) || !IsToken(value)) continue;
    (value.is_string() ? collected : others.own)[name] = value;
  }
  TakeNamed(further, collected);
  if (collected.empty()) TakeNamed(config.value(kOwnTokens, json()), collected);
  if (!settings.lists_tokens()) {
    for (const auto& [name, value] : settings.marks.items()) {
      if (IsNamed(name) && IsToken(value)) others.own[name] = value;
    }
    if (settings.marks.contains(kOldFurther)) old = settings.marks[kOldFurther];
    const json more = settings.marks.value(kFurther, json());
    TakeNamed(more, collected);
    if (more.is_array() && !further.is_array()) further = json::array();
    if (more.is_array()) further.insert(further.end(), more.begin(), more.end());
  }
  for (const auto& [name, token] : collected.items()) others.own[name] = token;
  others.further_early = further.is_array();
  if (further.is_array() || old.is_array()) others.further = further.is_array() ? further : old;
  if (others.further.empty() && settings.kind == TokenizerClass::kCamembert) {
    others.further = json::array({"<s>NOTUSED", "</s>NOTUSED", "<unk>NOTUSED"});
  }
  if (others.further.empty() && settings.kind == TokenizerClass::kT5) {
    others.further = Sentinels(settings.config.value("extra_ids", json()));
  }
  return others;
}

// Returns the tokens that the settings name one by one: marks, and a model's own.
json NamedTokens(const TokenizerSettings& settings, const TokensByName& own) {
  const bool mask_takes_space =
      settings.kind == TokenizerClass::kMpnet || settings.kind == TokenizerClass::kCamembert;
  json named = json::array();
  const auto add = [&named](json token) {
    if (token.is_object()) {
      token.emplace("normalized", false);
      token["special"] = true;
    }
    if (!token.is_null()) named.push_back(std::move(token));
  };
  for (const std::string_view name : kMarks) {
    json mark = settings.Mark(std::string(name));
    if (mask_takes_space && name == kMask && mark.is_string()) {
      mark = {{"content", mark}, {"lstrip", true}};
    }
    add(std::move(mark));
  }
  for (const auto& [name, token] : own.items()) add(token);
  return named;
}

// Reads the files in which older folders have tokens with their ids: added_tokens.json and the
// tokenizer's own file, which counts where both have an id.
absl::Status ReadOlder(const TokenizerSettings& settings, const json& of_file, TokenTexts special,
                       TokensById& tokens) {
  for (const std::string_view name : kMarks) special.insert(settings.MarkText(std::string(name)));
  for (const auto& [text, id] : settings.more_tokens.items()) {
    if (!id.is_number_integer()) {
      return absl::InvalidArgumentError("added_tokens.json: the id of " + Quoted(text) +
                                        " is no integer");
    }
    auto token = WholeToken({{"content", text}, {"special", special.contains(text)}}, "");
    tokens[id.get<int64_t>()] = *std::move(token);
  }
  for (const json& token : of_file) {
    const json id = token.is_object() ? token.value("id", json()) : json();
    if (!id.is_number_integer()) continue;
    tokens[id.get<int64_t>()] = token;
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<json> AllAddedTokens(const TokenizerSettings& settings, const json& of_file) {
  json all = settings.kind == TokenizerClass::kNone ? of_file : json::array();
  const OtherTokens others = OtherTokensOf(settings);
  const json named = NamedTokens(settings, others.own);
  TokenTexts known;
  if (others.further_early) known = TokenTextsOf(others.further);
  TokensById by_id;
  absl::Status status = settings.lists_tokens()
                            ? ReadListed(settings.config["added_tokens_decoder"], by_id)
                            : ReadOlder(settings, of_file, std::move(known), by_id);
  if (!status.ok()) return status;
  const TokenTexts special = TokenTextsOf(named);
  for (auto& [id, token] : by_id) {
    if (special.contains(ContentOf(token))) token["special"] = true;
    all.push_back(std::move(token));
  }
  // What is listed counts more than what is named; of two that are named and differ, the last does.
  // The package takes a text and an object for different even if they mean the same token.
  const TokenTexts listed = TokenTextsOf(all);
  std::set<json> seen;
  for (const json* tokens : {&named, &others.further}) {
    for (const json& one : *tokens) {
      auto token = WholeToken(one, "tokenizer_config.json");
      if (!token.ok()) return token.status();
      const bool is_new = seen.insert(one.is_string() ? one : *token).second;
      if (is_new && !listed.contains(ContentOf(*token))) all.push_back(*std::move(token));
    }
  }
  if (settings.kind != TokenizerClass::kEsm) return all;
  for (const json& token : all) {
    if (token.value("single_word", json()) != true) continue;
    return absl::InvalidArgumentError("the token " + Quoted(ContentOf(token)) +
                                      " is a single_word, which an EsmTokenizer joins with what "
                                      "stands beside it");
  }
  // What is said of these tokens counts more than that they are in the vocabulary.
  all.insert(all.begin(), of_file.begin(), of_file.end());
  return all;
}

}  // namespace linserve
