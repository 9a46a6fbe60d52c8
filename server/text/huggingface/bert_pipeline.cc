#include <nlohmann/json.hpp>
#include <utility>

#include "core/status/json_text.h"
#include "core/status/quote.h"
#include "core/status/utf8.h"
#include "text/huggingface/characters/characters.h"
#include "text/huggingface/pipeline.h"

namespace linserve {
namespace {

using nlohmann::json;

std::string_view WithoutSpaceAtEnd(std::string_view line) {
  while (!line.empty()) {
    const Character last = CharacterBefore(line, line.size());
    if (!IsWhite(last.code)) break;
    line.remove_suffix(last.bytes);
  }
  return line;
}

absl::Status ReadLines(std::string_view text, TokenVocabulary& vocabulary) {
  if (!IsUtf8(text)) return absl::InvalidArgumentError("it is not UTF-8");
  for (int64_t id = 0; !text.empty(); ++id) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = WithoutSpaceAtEnd(text.substr(0, end));
    if (absl::Status status = vocabulary.Add(std::string(line), id); !status.ok()) return status;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  vocabulary.Index();
  return absl::OkStatus();
}

// Reads a member of tokenizer_config.json that is a bool.
absl::StatusOr<bool> Flag(const json& config, const std::string& name, bool otherwise) {
  const json value = config.value(name, json());
  if (value.is_null()) return otherwise;
  if (!value.is_boolean())
    return absl::InvalidArgumentError("tokenizer_config.json: '" + name + "' is no bool");
  return value.get<bool>();
}

// Returns the text of a mark that tokenizer_config.json may name, as a text or as an object.
std::string MarkText(const json& config, const std::string& name, const std::string& otherwise) {
  json value = config.value(name, json());
  if (value.is_object()) value = value.value("content", json());
  return value.is_string() ? value.get<std::string>() : otherwise;
}

absl::StatusOr<BertNormalizer> ReadNormalizer(const json& config) {
  BertNormalizer bert;
  const auto lower = Flag(config, "do_lower_case", true);
  if (!lower.ok()) return lower.status();
  const auto accents = Flag(config, "strip_accents", *lower);
  if (!accents.ok()) return accents.status();
  const auto chinese = Flag(config, "tokenize_chinese_chars", true);
  if (!chinese.ok()) return chinese.status();
  bert.lowercase = *lower;
  bert.strip_accents = *accents;
  bert.handle_chinese_chars = *chinese;
  return bert;
}

// Puts the marks around texts that Bert has, and takes them out of texts.
absl::Status AddMarks(const json& config, const std::string& unknown, Pipeline& pipeline) {
  std::vector<AddedToken> added;
  const auto add = [&](const std::string& text) {
    if (pipeline.vocabulary.Find(text) < 0) return;
    added.push_back({.content = text, .normalized = false, .special = true});
  };
  const std::string cls = MarkText(config, "cls_token", "[CLS]");
  const std::string sep = MarkText(config, "sep_token", "[SEP]");
  for (const std::string& mark : {cls, sep}) {
    if (pipeline.vocabulary.Find(mark) < 0) {
      return absl::InvalidArgumentError("it has no " + Quoted(mark) +
                                        ", which stands around each text");
    }
  }
  add(MarkText(config, "pad_token", "[PAD]"));
  add(unknown);
  add(cls);
  add(sep);
  add(MarkText(config, "mask_token", "[MASK]"));
  pipeline.post.marks = {.before = {pipeline.vocabulary.Find(cls)},
                         .after = {pipeline.vocabulary.Find(sep)},
                         .around_nothing = true};
  pipeline.post.before_types = pipeline.post.after_types = {0};
  return pipeline.AddTokens(std::move(added));
}

}  // namespace

absl::StatusOr<std::unique_ptr<const Pipeline>> BertPipeline(std::string_view vocabulary,
                                                             std::string_view config) {
  auto pipeline = std::make_unique<Pipeline>();
  if (absl::Status status = ReadLines(vocabulary, pipeline->vocabulary); !status.ok()) {
    return status;
  }
  auto parsed = config.empty() ? absl::StatusOr<json>(json::object()) : ParseJson(config);
  if (!parsed.ok()) return parsed.status();
  if (!parsed->is_object())
    return absl::InvalidArgumentError("tokenizer_config.json is no JSON object");
  const auto normalizer = ReadNormalizer(*parsed);
  if (!normalizer.ok()) return normalizer.status();
  const std::string unknown = MarkText(*parsed, "unk_token", "[UNK]");
  pipeline->normalizer = NormalizerChain({*normalizer});
  pipeline->splits = SplitChain({BertSplit()});
  pipeline->model.emplace(std::in_place_type<WordPieceModel>, pipeline->vocabulary,
                          WordPieceOptions{.unk_token = unknown});
  pipeline->decoder = DecoderChain({WordPieceDecoder{.prefix = "##", .cleanup = true}});
  absl::Status status = AddMarks(*parsed, unknown, *pipeline);
  if (!status.ok()) return status;
  return pipeline;
}

}  // namespace linserve
