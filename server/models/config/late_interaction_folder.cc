#include "models/config/late_interaction_folder.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>
#include <vector>

#include "core/json/json_text.h"
#include "core/strings/quote.h"
#include "models/config/config_error.h"
#include "models/config/folder_file.h"
#include "models/config/params.h"

namespace linserve {
namespace {

using nlohmann::json;

constexpr const char* kSentencesFile = "config_sentence_transformers.json";
constexpr const char* kMetadataFile = "artifact.metadata";  // of Stanford's code, in JSON
constexpr const char* kTasks[] = {"query", "document"};
// Names PyLate's members for what stands before texts, in the order of the tasks.
constexpr const char* kPrefixes[] = {"query_prefix", "document_prefix"};
constexpr const char* kExpansion = "query_expansion";
constexpr int64_t kUsualQuery = 32;  // tokens

json ObjectOf(const std::string& directory, const char* file) {
  json object = FolderFile(directory, file);
  return object.is_object() ? object : json::object();
}

bool IsStanfords(const json& document) {
  const json classes = document.value("architectures", json());
  return std::find(classes.begin(), classes.end(), "HF_ColBERT") != classes.end();
}

bool HasPrefixes(const json& sentences) {
  return std::any_of(std::begin(kPrefixes), std::end(kPrefixes),
                     [&](const char* key) { return sentences.contains(key); });
}

// Says whether modules.json names a class of PyLate.
bool HasPylateModules(const std::string& directory) {
  const json modules = FolderFile(directory, "modules.json");
  return std::any_of(modules.begin(), modules.end(), [](const json& module) {
    const json type = module.is_object() ? module.value("type", json()) : json();
    return type.is_string() && type.get_ref<const std::string&>().starts_with("pylate.");
  });
}

std::vector<std::string> Punctuation() {
  std::vector<std::string> marks;
  for (const char mark : std::string_view("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")) {
    marks.emplace_back(1, mark);
  }
  return marks;
}

// Returns a text; `otherwise` if it is not there, null or empty.
std::string TextOr(const json& object, const char* key, const std::string& otherwise) {
  const json text = object.value(key, json());
  const bool given = text.is_string() && !text.get_ref<const std::string&>().empty();
  return given ? text.get<std::string>() : otherwise;
}

// Returns the expansion that PyLate's flat members stand for; null if they turn it off. What it has
// of a `query_length` is that of the expansion then, and is taken.
json ExpansionOfPylate(const json& sentences, json& settings) {
  if (sentences.value("do_query_expansion", json()) == false) return nullptr;
  json attend = sentences.value("attend_to_expansion_tokens", json());
  if (!sentences.contains("attend_to_expansion_tokens")) {
    attend = sentences.value("attend_to_mask_tokens", json());
  }
  json length = settings.value("query_length", json());
  settings.erase("query_length");
  if (length.is_null() || length == 0) length = kUsualQuery;
  return {{"strategy", "fixed"}, {"attend", attend == true}, {"length", length}};
}

// Returns what a file of PyLate says in place of the Transformer's own settings.
json SettingsOfPylate(const json& sentences) {
  json settings = json::object();
  for (const char* key : {"query_length", "document_length"}) {
    if (const json value = sentences.value(key, json()); !value.is_null()) settings[key] = value;
  }
  constexpr std::array kMarks = {"query_length",          "document_length",
                                 "do_query_expansion",    "attend_to_expansion_tokens",
                                 "attend_to_mask_tokens", "skiplist_words"};
  const bool is_pylates = HasPrefixes(sentences) ||
                          std::any_of(kMarks.begin(), kMarks.end(),
                                      [&](const char* key) { return sentences.contains(key); });
  if (sentences.contains(kExpansion)) {
    settings[kExpansion] = sentences[kExpansion];
  } else if (is_pylates) {
    settings[kExpansion] = ExpansionOfPylate(sentences, settings);
  }
  return settings;
}

// Returns what Stanford's file says in place of them.
json SettingsOfStanford(const json& metadata) {
  json settings = {{kExpansion,
                    {{"strategy", "fixed"},
                     {"attend", metadata.value("attend_to_mask_tokens", json()) == true},
                     {"length", metadata.value("query_maxlen", json())}}}};
  json& length = settings[kExpansion]["length"];
  if (length.is_null() || length == 0) length = kUsualQuery;
  settings["document_length"] = metadata.value("doc_maxlen", json());
  return settings;
}

std::optional<QueryExpansion> ExpansionOf(const json& settings, const std::string& file) {
  const json object = settings.value(kExpansion, json());
  if (object.is_null()) return std::nullopt;
  if (!object.is_object()) {
    throw ConfigError(file + ": query_expansion is " + JsonText(object) +
                      ", expected an object with strategy and length");
  }
  Params params(object, file + ": " + kExpansion);
  QueryExpansion expansion{.length = params.Positive("length"),
                           .attended = params.Flag("attend", false),
                           .token = params.Text("token", "")};
  if (!params.Has("strategy")) params.Fail("strategy", "fixed or min");
  expansion.at_least = params.Choice("strategy", "", {"fixed", "min"}) == "min";
  params.RefuseUnknown();
  return expansion;
}

// Queries are filled up at their end: the package does it where it pads.
void RefuseLeftPadding(const std::string& directory) {
  const json tokenizer = ObjectOf(directory, "tokenizer_config.json");
  std::string side = TextOr(tokenizer, "padding_side", "");
  const std::string name = TextOr(tokenizer, "tokenizer_class", "");
  const bool left_by_itself = name.starts_with("Llama") || name.starts_with("Gemma");
  if (side.empty() && left_by_itself) side = "left";
  if (side != "left") return;
  throw ConfigError(
      "tokenizer_config.json: padding_side is left, where query_expansion would put its tokens "
      "before a query's; that is not computed here: write \"right\" if it was trained so");
}

// Reads how many tokens texts have.
void ReadLengths(const json& settings, const std::string& file, const std::string& directory,
                 LateInteraction& texts) {
  Params params(settings, file);
  texts.query_tokens = params.OptionalPositive("query_length").value_or(0);
  texts.document_tokens = params.OptionalPositive("document_length").value_or(0);
  texts.expansion = ExpansionOf(settings, file);
  if (!texts.expansion) return;
  RefuseLeftPadding(directory);
  const int64_t length = texts.expansion->length;
  if (texts.query_tokens > 0 && texts.query_tokens < length) {
    params.Fail("query_length", "at least the length of query_expansion, " +
                                    std::to_string(length) + ", to which queries are filled up");
  }
  texts.query_tokens = texts.expansion->at_least ? texts.query_tokens : length;
}

// Names the file that says how many tokens texts have, for messages.
std::string OriginOf(const json& transformer, bool stanfords) {
  for (const char* key : {"query_length", "document_length", kExpansion}) {
    if (transformer.contains(key)) return "sentence_bert_config.json";
  }
  return stanfords ? kMetadataFile : kSentencesFile;
}

// Lets each task have a prompt, be it "". What stands before its texts comes before the prompt that
// is there already, or only in its place.
void AddPrompts(const std::vector<std::string>& prefixes, bool both, json& serving) {
  for (size_t i = 0; i < std::size(kTasks); ++i) {
    const std::string prefix = prefixes.empty() ? "" : prefixes[i];
    json& prompt = serving["prompts"][kTasks[i]];
    if (!prompt.is_string()) {
      prompt = prefix;
    } else if (both && !prompt.get_ref<const std::string&>().starts_with(prefix)) {
      prompt = prefix + prompt.get<std::string>();
    }
  }
}

// Reads the folder of Stanford's code, whose projection lies among the encoder's tensors, and
// returns what it says in place of the Transformer's settings.
json ReadStanfords(const std::string& directory, LateInteraction& texts,
                   SentenceModules& sentence) {
  const json metadata = ObjectOf(directory, kMetadataFile);
  Params params(metadata, kMetadataFile);
  sentence = {.pooling = Pooling::kNone, .each_row = true, .normalize = true};
  sentence.dense.push_back({.path = "",
                            .outputs = params.Positive("dim", 128),
                            .biased = false,
                            .activation = "Identity"});
  texts.prefixes = {TextOr(metadata, "query_token_id", "[unused0]") + " ",
                    TextOr(metadata, "doc_token_id", "[unused1]") + " "};
  if (params.Flag("mask_punctuation", true)) texts.skipped = Punctuation();
  return SettingsOfStanford(metadata);
}

// Reads the modules of a folder, and those that PyLate computes without naming them.
RowModules ReadModules(const std::string& directory, const json& sentences, bool names_all) {
  RowModules modules = ReadRowModules(directory);
  if (names_all) return modules;
  modules.sentence.normalize = true;
  modules.rows.emplace();
  const json skipped = sentences.value("skiplist_words", json());
  if (!skipped.is_null()) {
    modules.rows->skipped = TextsOf(skipped, kSentencesFile, "skiplist_words");
  } else if (sentences.value("model_type", json()) == "ColBERT" || HasPrefixes(sentences)) {
    modules.rows->skipped = Punctuation();
  }
  return modules;
}

void TakeModules(RowModules modules, LateInteraction& texts, SentenceModules& sentence) {
  sentence = std::move(modules.sentence);
  if (!modules.rows) {
    if (!texts.expansion) return;
    throw ConfigError(
        "modules.json has no MultiVectorMask, without which the rows of a query_expansion do not "
        "count; add the module, or remove the expansion");
  }
  texts.skipped = std::move(modules.rows->skipped);
  texts.skips_in_queries = modules.rows->in_queries;
  texts.skips_in_documents = modules.rows->in_documents;
}

}  // namespace

bool IsLateInteraction(const json& document, const std::string& directory) {
  const json sentences = ObjectOf(directory, kSentencesFile);
  const json type = sentences.value("model_type", json());
  if (type == "MultiVectorEncoder" || type == "ColBERT") return true;
  if (!type.is_null() && type != "SentenceTransformer") return false;
  return IsStanfords(document) || HasPrefixes(sentences) || HasPylateModules(directory);
}

void ReadLateInteraction(const json& document, const json& transformer,
                         const std::string& directory, ModelConfig& config) {
  const json sentences = ObjectOf(directory, kSentencesFile);
  const bool has_modules = FolderHas(directory, "modules.json");
  const bool stanfords = IsStanfords(document);
  if (!has_modules && !stanfords) {
    throw ConfigError(
        "modules.json is not there, which says how rows are projected: download the whole folder");
  }
  LateInteraction texts;
  texts.mean = sentences.value("similarity_fn_name", json()) == "meanmaxsim";
  json settings = has_modules ? SettingsOfPylate(sentences)
                              : ReadStanfords(directory, texts, config.network.sentence);
  if (transformer.is_object()) settings.update(transformer);
  ReadLengths(settings, OriginOf(transformer, !has_modules), directory, texts);
  if (has_modules) {
    const json type = sentences.value("model_type", json());
    const bool names_all = type == "MultiVectorEncoder" || (type.is_null() && stanfords);
    TakeModules(ReadModules(directory, sentences, names_all), texts, config.network.sentence);
    for (const char* key : kPrefixes) {
      if (HasPrefixes(sentences)) texts.prefixes.push_back(TextOr(sentences, key, ""));
    }
  }
  AddPrompts(texts.prefixes, has_modules, config.serving);
  config.late_interaction = std::move(texts);
}

}  // namespace linserve
