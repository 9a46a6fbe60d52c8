#include "text/huggingface/settings/class_parts.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

namespace linserve {
namespace {

using nlohmann::json;

// Finds the atoms, bonds, rings and branches of a molecule as SMILES; what lies between is dropped.
constexpr const char* kSmiles =
    R"((\[[^\]]+]|Br?|Cl?|N|O|S|P|F|I|b|c|n|o|s|p|\(|\)|\.|=|#|-|\+|\\|\/|:|~|@|\?|>|\*|\$|\%[0-9]{2}|[0-9]))";

// Returns the parts of a normalizer that is a sequence, or it alone.
json PartsOf(json normalizer) {
  if (normalizer.is_null()) return json::array();
  if (normalizer.is_object() && normalizer.value("type", json()) == "Sequence" &&
      normalizer.contains("normalizers")) {
    return normalizer["normalizers"];
  }
  return json::array({std::move(normalizer)});
}

bool IsPart(const json& part, const char* type) {
  return part.is_object() && part.value("type", json()) == type;
}

absl::Status ExpectModel(const char* type, const TokenizerSettings& settings,
                         const FileMembers& members) {
  const std::string found = ModelTypeOf(*members.model);
  if (found == type) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "its model is a " + found + ", but the folder's files make it a " + settings.class_name +
      ", whose model is a " + type +
      "; if the file is right as it is, let tokenizer_config.json say "
      "\"tokenizer_class\": \"PreTrainedTokenizerFast\"");
}

// Sets the marks by the names that they have in tokenizer_config.json. `before` may be null: there
// is none.
absl::Status PutAround(const char* before, const char* after, const TokenizerSettings& settings,
                       FileMembers& members) {
  for (const char* name : {before, after}) {
    if (name == nullptr || !settings.MarkText(name).empty()) continue;
    return absl::InvalidArgumentError("tokenizer_config.json names no " + std::string(name) +
                                      ", which stands around each text");
  }
  members.marks = {.before = before != nullptr ? settings.MarkText(before) : "",
                   .after = settings.MarkText(after)};
  return absl::OkStatus();
}

absl::StatusOr<json> BertNormalizerBy(const TokenizerSettings& settings) {
  const auto lowercase = settings.Flag("do_lower_case", true);
  const auto accents = settings.Flag("strip_accents", true);
  const auto chinese = settings.Flag("tokenize_chinese_chars", true);
  for (const auto* read : {&lowercase, &accents, &chinese}) {
    if (!read->ok()) return read->status();
  }
  return json{{"type", "BertNormalizer"},
              {"clean_text", true},
              {"handle_chinese_chars", *chinese},
              {"strip_accents", settings.config.value("strip_accents", json())},
              {"lowercase", *lowercase}};
}

absl::Status BuildBert(const TokenizerSettings& settings, FileMembers& members) {
  absl::Status status = ExpectModel("WordPiece", settings, members);
  if (status.ok()) status = PutAround("cls_token", "sep_token", settings, members);
  if (!status.ok()) return status;
  auto normalizer = BertNormalizerBy(settings);
  if (!normalizer.ok()) return normalizer.status();
  members.normalizer = *std::move(normalizer);
  members.pre_tokenizer = {{"type", "BertPreTokenizer"}};
  members.decoder = {{"type", "WordPiece"}, {"prefix", "##"}, {"cleanup", true}};
  members.model->has_unk_token = true;
  members.model->unk_token = settings.MarkText("unk_token");
  members.model->has_prefix = true;
  members.model->continuing_subword_prefix = "##";
  members.model->max_input_chars_per_word = 100;
  members.marks->as_roberta = settings.kind == TokenizerClass::kMpnet;
  members.marks->trims_places = settings.kind == TokenizerClass::kMpnet;
  return absl::OkStatus();
}

absl::Status BuildRoberta(const TokenizerSettings& settings, FileMembers& members) {
  absl::Status status = ExpectModel("BPE", settings, members);
  if (status.ok()) status = PutAround("cls_token", "sep_token", settings, members);
  const auto space_first = settings.Flag("add_prefix_space", false);
  const auto trims = settings.Flag("trim_offsets", true);
  if (status.ok()) status = space_first.status();
  if (status.ok()) status = trims.status();
  if (!status.ok()) return status;
  members.normalizer = nullptr;
  members.pre_tokenizer = {{"type", "ByteLevel"}, {"add_prefix_space", *space_first}};
  members.decoder = {{"type", "ByteLevel"}};
  members.marks->as_roberta = true;
  members.marks->trims_places = *trims;
  members.marks->has_prefix = *space_first;
  ModelMembers model;
  model.type = "BPE";
  model.tokens = std::move(members.model->tokens);
  model.merges = std::move(members.model->merges);
  members.model = std::move(model);
  return absl::OkStatus();
}

// Returns the number that Camembert's and XLM-RoBERTa's texts have for what is unknown.
int64_t UnknownId(const TokenizerSettings& settings, const ModelMembers& model) {
  if (settings.kind == TokenizerClass::kXlmRoberta) return 3;
  const auto found = std::find_if(
      model.tokens.begin(), model.tokens.end(),
      [unknown = settings.MarkText("unk_token")](const auto& one) { return one.first == unknown; });
  return found == model.tokens.end() ? 0 : found - model.tokens.begin();
}

// Sets how texts are split into SentencePiece's words, normalised by the file's table if it has
// one.
void SetPieces(bool space_first, int64_t unknown, FileMembers& members) {
  json charsmap;
  for (json& part : PartsOf(std::move(members.normalizer))) {
    if (charsmap.is_null() && IsPart(part, "Precompiled")) charsmap = std::move(part);
  }
  members.normalizer = std::move(charsmap);
  const json metaspace = {{"type", "Metaspace"},
                          {"replacement", "\xE2\x96\x81"},
                          {"prepend_scheme", space_first ? "always" : "never"},
                          {"split", true}};
  members.pre_tokenizer = {{"type", "Sequence"},
                           {"pretokenizers", {{{"type", "WhitespaceSplit"}}, metaspace}}};
  members.decoder = metaspace;
  members.model->unk_id = unknown;
  members.model->byte_fallback = false;
}

absl::Status BuildXlmRoberta(const TokenizerSettings& settings, FileMembers& members) {
  absl::Status status = ExpectModel("Unigram", settings, members);
  if (status.ok()) status = PutAround("bos_token", "eos_token", settings, members);
  const auto space_first = settings.Flag("add_prefix_space", true);
  if (status.ok()) status = space_first.status();
  if (!status.ok()) return status;
  members.marks->as_roberta = true;
  SetPieces(*space_first, UnknownId(settings, *members.model), members);
  return absl::OkStatus();
}

absl::Status BuildT5(const TokenizerSettings& settings, FileMembers& members) {
  constexpr int64_t kUnknown = 2;
  absl::Status status = ExpectModel("Unigram", settings, members);
  if (status.ok()) status = PutAround(nullptr, "eos_token", settings, members);
  if (status.ok()) SetPieces(/*space_first=*/true, kUnknown, members);
  return status;
}

// Returns the number of the unknown token, which is looked for with the score 0; nullopt if there
// is none.
std::optional<int64_t> UnscoredUnknown(const TokenizerSettings& settings,
                                       const ModelMembers& model) {
  const std::string unknown = settings.MarkText("unk_token");
  for (size_t i = 0; i < model.tokens.size(); ++i) {
    if (model.tokens[i].first != unknown) continue;
    if (i < model.scores.size() && model.scores[i] == 0) return static_cast<int64_t>(i);
  }
  return std::nullopt;
}

absl::StatusOr<int64_t> UnknownOfDeberta(const TokenizerSettings& settings,
                                         const ModelMembers& model) {
  if (const auto unknown = UnscoredUnknown(settings, model)) return *unknown;
  const json named = settings.config.value("unk_id", json(1));
  if (named.is_number_integer()) return named.get<int64_t>();
  return absl::InvalidArgumentError("tokenizer_config.json: 'unk_id' is no integer");
}

absl::Status BuildBigBird(const TokenizerSettings& settings, FileMembers& members) {
  constexpr int64_t kUnknown = 100;
  absl::Status status = ExpectModel("Unigram", settings, members);
  if (status.ok()) status = PutAround("cls_token", "sep_token", settings, members);
  const auto space_first = settings.Flag("add_prefix_space", true);
  if (status.ok()) status = space_first.status();
  if (!status.ok()) return status;
  members.normalizer = {
      {"type", "Replace"}, {"pattern", {{"Regex", " {2,}"}}}, {"content", "\xE2\x96\x81"}};
  members.pre_tokenizer = {{"type", "Metaspace"},
                           {"replacement", "\xE2\x96\x81"},
                           {"prepend_scheme", *space_first ? "always" : "never"},
                           {"split", true}};
  members.decoder = members.pre_tokenizer;
  members.model->unk_id = UnscoredUnknown(settings, *members.model).value_or(kUnknown);
  members.model->byte_fallback = false;
  return absl::OkStatus();
}

absl::Status BuildDebertaV2(const TokenizerSettings& settings, FileMembers& members) {
  absl::Status status = ExpectModel("Unigram", settings, members);
  if (status.ok()) status = PutAround("cls_token", "sep_token", settings, members);
  const auto lowers = settings.Flag("do_lower_case", false);
  const auto splits = settings.Flag("split_by_punct", false);
  const auto space_first = settings.Flag("add_prefix_space", true);
  for (const auto* read : {&lowers, &splits, &space_first}) {
    if (status.ok()) status = read->status();
  }
  if (!status.ok()) return status;
  const auto unknown = UnknownOfDeberta(settings, *members.model);
  if (!unknown.ok()) return unknown.status();
  json normalizers = json::array();
  if (*lowers) normalizers.push_back({{"type", "Lowercase"}});
  normalizers.push_back(
      {{"type", "Replace"}, {"pattern", {{"Regex", R"(\s{2,}|[\n\r\t])"}}}, {"content", " "}});
  normalizers.push_back({{"type", "NFC"}});
  normalizers.push_back({{"type", "Strip"}, {"strip_left", false}, {"strip_right", true}});
  members.normalizer = {{"type", "Sequence"}, {"normalizers", std::move(normalizers)}};
  const json metaspace = {{"type", "Metaspace"},
                          {"replacement", "\xE2\x96\x81"},
                          {"prepend_scheme", *space_first ? "always" : "first"},
                          {"split", true}};
  json splitters = json::array();
  if (*splits) splitters.push_back({{"type", "Punctuation"}, {"behavior", "Isolated"}});
  splitters.push_back(metaspace);
  members.pre_tokenizer = {{"type", "Sequence"}, {"pretokenizers", std::move(splitters)}};
  members.decoder = metaspace;
  members.model->unk_id = *unknown;
  members.model->byte_fallback = false;
  return absl::OkStatus();
}

absl::Status BuildMolformer(const TokenizerSettings& settings, FileMembers& members) {
  members.pre_tokenizer = {{"type", "Split"},
                           {"pattern", {{"Regex", kSmiles}}},
                           {"behavior", "Removed"},
                           {"invert", true}};
  members.decoder = {{"type", "Fuse"}};
  members.model->has_unk_token = true;
  members.model->unk_token = settings.MarkText("unk_token");
  return PutAround("cls_token", "sep_token", settings, members);
}

// All tokens are found in texts as they stand there, and each word between them is unknown.
absl::Status BuildEsm(const TokenizerSettings& settings, FileMembers& members) {
  const auto splits_special = settings.Flag("split_special_tokens", false);
  if (!splits_special.ok()) return splits_special.status();
  if (*splits_special) {
    return absl::InvalidArgumentError(
        "tokenizer_config.json: 'split_special_tokens' is true, with which an EsmTokenizer finds "
        "no tokens in words");
  }
  for (const auto& [token, id] : members.model->tokens) {
    members.added_tokens.push_back({{"content", token},
                                    {"single_word", false},
                                    {"lstrip", false},
                                    {"rstrip", false},
                                    {"normalized", false},
                                    {"special", false}});
  }
  // Python's str.split() takes these for space, too.
  const json separators = {{"type", "Split"},
                           {"pattern", {{"Regex", "[\x1c-\x1f]+"}}},
                           {"behavior", "Removed"},
                           {"invert", false}};
  members.pre_tokenizer = {{"type", "Sequence"},
                           {"pretokenizers", {{{"type", "WhitespaceSplit"}}, separators}}};
  members.decoder = {{"type", "WordPiece"}, {"prefix", "##"}, {"cleanup", false}};
  members.model->type = "WordLevel";
  members.model->has_unk_token = true;
  members.model->unk_token = settings.MarkText("unk_token");
  return PutAround("cls_token", "eos_token", settings, members);
}

absl::Status BuildByClass(const TokenizerSettings& settings, FileMembers& members) {
  switch (settings.kind) {
    case TokenizerClass::kNone:
      break;
    case TokenizerClass::kBert:
    case TokenizerClass::kMpnet:
      return BuildBert(settings, members);
    case TokenizerClass::kRoberta:
      return BuildRoberta(settings, members);
    case TokenizerClass::kXlmRoberta:
    case TokenizerClass::kCamembert:
      return BuildXlmRoberta(settings, members);
    case TokenizerClass::kDebertaV2:
      return BuildDebertaV2(settings, members);
    case TokenizerClass::kT5:
      return BuildT5(settings, members);
    case TokenizerClass::kBigBird:
      return BuildBigBird(settings, members);
    case TokenizerClass::kMolformer:
      return BuildMolformer(settings, members);
    case TokenizerClass::kEsm:
      return BuildEsm(settings, members);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status FollowSettings(const TokenizerSettings& settings, FileMembers& members) {
  absl::Status status = BuildByClass(settings, members);
  // sentence-transformers lowers nothing before an EsmTokenizer.
  const bool lowers_first = settings.lowercase_first && settings.kind != TokenizerClass::kEsm;
  if (!status.ok() || !lowers_first) return status;
  json parts = PartsOf(members.normalizer);
  const auto lowers = [](const json& part) { return IsPart(part, "Lowercase"); };
  if (!parts.is_array() || std::any_of(parts.begin(), parts.end(), lowers)) return status;
  parts.insert(parts.begin(), json{{"type", "Lowercase"}});
  members.normalizer = {{"type", "Sequence"}, {"normalizers", std::move(parts)}};
  return status;
}

}  // namespace linserve
