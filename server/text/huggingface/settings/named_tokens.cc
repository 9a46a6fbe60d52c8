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
constexpr std::array kMarks = {"bos_token", "eos_token", "unk_token", "sep_token",
                               "pad_token", "cls_token", "mask_token"};

constexpr std::string_view kMask = kMarks.back();
constexpr const char* kOldName = "additional_special_tokens";

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

// Returns the tokens that the settings name one by one: marks, and others of models' own.
json NamedTokens(const TokenizerSettings& settings) {
  json tokens = json::array();
  const bool mask_takes_space =
      settings.kind == TokenizerClass::kMpnet || settings.kind == TokenizerClass::kCamembert;
  for (const char* name : kMarks) {
    json mark = settings.Mark(name);
    if (mask_takes_space && name == kMask && mark.is_string()) {
      mark = {{"content", mark}, {"lstrip", true}};
    }
    if (mark.is_object()) {
      mark.emplace("normalized", false);
      mark["special"] = true;
    }
    if (!mark.is_null()) tokens.push_back(std::move(mark));
  }
  for (const auto& [name, value] : settings.config.items()) {
    const bool is_mark = std::find(kMarks.begin(), kMarks.end(), name) != kMarks.end();
    if (!is_mark && name.ends_with("_token") && value.is_string()) tokens.push_back(value);
  }
  return tokens;
}

// Returns the tokens that the settings name in a list. `known` becomes those of them that the
// package knows when it reads added_tokens.json.
json FurtherTokens(const TokenizerSettings& settings, TokenTexts& known) {
  for (const json* file : {&settings.config, &settings.marks}) {
    if (file == &settings.marks && settings.lists_tokens()) break;
    for (const char* name : {"extra_special_tokens", kOldName}) {
      const json further = file->value(name, json());
      if (!further.is_structured() || further.empty()) continue;
      json tokens = json::array();
      for (const auto& [key, token] : further.items()) tokens.push_back(token);
      const bool too_late = file == &settings.marks && name == kOldName;
      if (!too_late) known = TokenTextsOf(tokens);
      return tokens;
    }
  }
  if (settings.kind != TokenizerClass::kCamembert) return json::array();
  return json::array({"<s>NOTUSED", "</s>NOTUSED", "<unk>NOTUSED"});
}

// Reads the files in which older folders have tokens with their ids: added_tokens.json and, where
// its class drops them, the tokenizer's own file.
absl::Status ReadOlder(const TokenizerSettings& settings, const json& of_file, TokenTexts special,
                       TokensById& tokens) {
  for (const char* name : kMarks) special.insert(settings.MarkText(name));
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
    if (settings.kind == TokenizerClass::kNone) {
      tokens.erase(id.get<int64_t>());
    } else {
      tokens[id.get<int64_t>()] = token;
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<json> AllAddedTokens(const TokenizerSettings& settings, const json& of_file) {
  json all = settings.kind == TokenizerClass::kNone ? of_file : json::array();
  const json named = NamedTokens(settings);
  TokenTexts known;
  const json further = FurtherTokens(settings, known);
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
  // What is listed counts more than what is named; of two that are named, the last does.
  const TokenTexts listed = TokenTextsOf(all);
  for (const json* tokens : {&named, &further}) {
    for (const json& one : *tokens) {
      auto token = WholeToken(one, "tokenizer_config.json");
      if (!token.ok()) return token.status();
      if (!listed.contains(ContentOf(*token))) all.push_back(*std::move(token));
    }
  }
  return all;
}

}  // namespace linserve
