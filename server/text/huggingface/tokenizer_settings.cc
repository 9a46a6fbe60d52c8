#include "text/huggingface/tokenizer_settings.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>
#include <utility>

#include "core/files/json_file.h"
#include "core/files/sentence_files.h"
#include "core/strings/quote.h"

namespace linserve {
namespace {

using nlohmann::json;

// Names the tokenizers that are built like BertTokenizer, and the model types that have them where
// nothing else is said.
constexpr std::array<std::string_view, 4> kLikeBert = {"BertTokenizer", "DistilBertTokenizer",
                                                       "ElectraTokenizer", "MPNetTokenizer"};
constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kKindsOfTypes = {
    {{"bert", "BertTokenizer"},
     {"distilbert", "DistilBertTokenizer"},
     {"mpnet", "MPNetTokenizer"},
     {"nomic_bert", "BertTokenizer"}}};

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

std::string KindOf(const json& tokenizer, const json& model) {
  for (const json* file : {&tokenizer, &model}) {
    std::string kind = TextMember(*file, "tokenizer_class");
    if (kind.ends_with("Fast")) kind.resize(kind.size() - std::string_view("Fast").size());
    if (!kind.empty()) return kind;
  }
  const std::string type = TextMember(model, "model_type");
  for (const auto& [known, kind] : kKindsOfTypes) {
    if (type == known) return std::string(kind);
  }
  return "";
}

// Returns the parts of a normalizer that is a sequence, or it alone.
json PartsOf(json normalizer) {
  if (normalizer.is_null()) return json::array();
  if (TextMember(normalizer, "type") == "Sequence" && normalizer.contains("normalizers")) {
    return normalizer["normalizers"];
  }
  return json::array({std::move(normalizer)});
}

bool IsLowercase(const json& part) {
  return part.is_object() && TextMember(part, "type") == "Lowercase";
}

}  // namespace

bool TokenizerSettings::like_bert() const {
  return std::find(kLikeBert.begin(), kLikeBert.end(), kind) != kLikeBert.end();
}

absl::StatusOr<TokenizerSettings> ReadTokenizerSettings(const std::string& path) {
  auto config = ReadBeside(path, "tokenizer_config.json");
  if (!config.ok()) return config.status();
  const auto model = ReadBeside(path, "config.json");
  if (!model.ok()) return model.status();
  json sentence = json::object();
  for (const char* name : kTransformerSettings) {
    auto settings = ReadBeside(path, name);
    if (!settings.ok()) return settings.status();
    if (sentence.empty()) sentence = *std::move(settings);
  }
  TokenizerSettings settings{.config = *std::move(config), .kind = "", .truncation = std::nullopt};
  settings.kind = KindOf(settings.config, *model);
  const std::string side = TextMember(settings.config, "truncation_side");
  // It names the end that is cut off, and thereby the tokens that are dropped.
  if (!side.empty()) settings.truncation = TruncationFromName(side);
  settings.lowercase_first = sentence.value("do_lower_case", json()) == true;
  return settings;
}

absl::StatusOr<json> BertNormalizerOf(const json& config) {
  const auto flag = [&config](const char* name, json otherwise) -> absl::StatusOr<json> {
    json value = config.value(name, json());
    if (value.is_null()) return otherwise;
    if (value.is_boolean()) return value;
    return absl::InvalidArgumentError("tokenizer_config.json: " + Quoted(name) + " is no bool");
  };
  const auto lowercase = flag("do_lower_case", true);
  const auto accents = flag("strip_accents", nullptr);
  const auto chinese = flag("tokenize_chinese_chars", true);
  for (const auto* read : {&lowercase, &accents, &chinese}) {
    if (!read->ok()) return read->status();
  }
  return json{{"type", "BertNormalizer"},
              {"clean_text", true},
              {"handle_chinese_chars", *chinese},
              {"strip_accents", *accents},
              {"lowercase", *lowercase}};
}

absl::StatusOr<json> NormalizerBy(const TokenizerSettings& settings, json normalizer) {
  const bool is_bert = normalizer.is_object() && TextMember(normalizer, "type") == "BertNormalizer";
  if (settings.like_bert() && is_bert) {
    auto bert = BertNormalizerOf(settings.config);
    if (!bert.ok()) return bert;
    normalizer = *std::move(bert);
  }
  if (!settings.lowercase_first) return normalizer;
  json parts = PartsOf(normalizer);
  if (!parts.is_array() || std::any_of(parts.begin(), parts.end(), IsLowercase)) return normalizer;
  parts.insert(parts.begin(), json{{"type", "Lowercase"}});
  return json{{"type", "Sequence"}, {"normalizers", std::move(parts)}};
}

}  // namespace linserve
