#include "text/huggingface/settings/tokenizer_settings.h"

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <utility>

#include "core/files/json_file.h"
#include "core/files/sentence_files.h"
#include "core/strings/quote.h"

namespace linserve {
namespace {

using nlohmann::json;

// Reads an object beside the file; an empty one if there is none.
absl::StatusOr<json> ReadBeside(const std::string& path, const char* name) {
  auto document = ReadJson(std::filesystem::path(path).replace_filename(name));
  if (absl::IsNotFound(document.status())) return json::object();
  if (!document.ok()) return document.status();
  if (document->is_object()) return document;
  return absl::InvalidArgumentError(std::string(name) + " is no JSON object");
}

std::string TextMember(const json& object, const char* name) {
  const json value = object.value(name, json());
  return value.is_string() ? value.get<std::string>() : "";
}

std::string ClassNameOf(const json& tokenizer, const json& model) {
  for (const json* file : {&tokenizer, &model}) {
    std::string name = TextMember(*file, "tokenizer_class");
    if (name.ends_with("Fast")) name.resize(name.size() - std::string_view("Fast").size());
    if (!name.empty()) return name;
  }
  return ClassOfModels(TextMember(model, "model_type"));
}

// Returns the settings that sentence-transformers keeps: those of the first file that has any.
absl::StatusOr<json> SentenceSettings(const std::string& path) {
  for (const char* name : kTransformerSettings) {
    auto settings = ReadBeside(path, name);
    if (!settings.ok() || !settings->empty()) return settings;
  }
  return json::object();
}

}  // namespace

json TokenizerSettings::Mark(const std::string& name) const {
  if (!lists_tokens() && marks.contains(name)) return marks[name];
  if (config.contains(name)) return config[name];
  return UsualMarks(kind).value(name, json());
}

std::string TokenizerSettings::MarkText(const std::string& name) const {
  json mark = Mark(name);
  if (mark.is_object()) mark = mark.value("content", json());
  return mark.is_string() ? mark.get<std::string>() : "";
}

absl::StatusOr<bool> TokenizerSettings::Flag(const char* name, bool otherwise) const {
  const json value = config.value(name, json());
  if (value.is_null()) return otherwise;
  if (value.is_boolean()) return value.get<bool>();
  return absl::InvalidArgumentError("tokenizer_config.json: " + Quoted(name) + " is no bool");
}

bool TokenizerSettings::takes_types() const {
  const json inputs = config.value("model_input_names", json());
  if (!inputs.is_array()) return !keeps_file && TakesTypes(kind, class_name);
  return std::find(inputs.begin(), inputs.end(), "token_type_ids") != inputs.end();
}

absl::StatusOr<TokenizerSettings> ReadTokenizerSettings(const std::string& path) {
  auto config = ReadBeside(path, "tokenizer_config.json");
  auto marks = ReadBeside(path, "special_tokens_map.json");
  auto more = ReadBeside(path, "added_tokens.json");
  auto model = ReadBeside(path, "config.json");
  auto sentence = SentenceSettings(path);
  for (const auto* read : {&config, &marks, &more, &model, &sentence}) {
    if (!read->ok()) return read->status();
  }
  TokenizerSettings settings{.config = *std::move(config),
                             .marks = *std::move(marks),
                             .more_tokens = *std::move(more),
                             .class_name = "",
                             .truncation = std::nullopt,
                             .whole = {}};
  settings.class_name = ClassNameOf(settings.config, *model);
  settings.keeps_file = KeepsFile(TextMember(*model, "model_type"));
  if (!settings.keeps_file) settings.kind = ClassNamed(settings.class_name);
  const std::string side = TextMember(settings.config, "truncation_side");
  // It names the end that is cut off, and thereby the tokens that are dropped.
  if (!side.empty()) settings.truncation = TruncationFromName(side);
  settings.lowercase_first = sentence->value("do_lower_case", json()) == true;
  return settings;
}

}  // namespace linserve
