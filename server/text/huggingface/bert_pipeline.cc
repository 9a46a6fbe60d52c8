#include <nlohmann/json.hpp>
#include <utility>

#include "core/strings/quote.h"
#include "core/strings/utf8.h"
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

// Returns the text of a mark that tokenizer_config.json may name, as a text or as an object.
std::string MarkText(const json& config, const std::string& name, const std::string& otherwise) {
  json value = config.value(name, json());
  if (value.is_object()) value = value.value("content", json());
  return value.is_string() ? value.get<std::string>() : otherwise;
}

struct BertMark {
  const char* name;
  const char* of_bert;
  const char* of_mpnet;
};
constexpr BertMark kPad{"pad_token", "[PAD]", "<pad>"};
constexpr BertMark kUnknown{"unk_token", "[UNK]", "[UNK]"};
constexpr BertMark kCls{"cls_token", "[CLS]", "<s>"};
constexpr BertMark kSep{"sep_token", "[SEP]", "</s>"};
constexpr BertMark kMask{"mask_token", "[MASK]", "<mask>"};

std::string TextOf(const BertMark& mark, const TokenizerSettings& settings) {
  const bool mpnet = settings.kind == "MPNetTokenizer";
  return MarkText(settings.config, mark.name, mpnet ? mark.of_mpnet : mark.of_bert);
}

// Puts the marks around texts that Bert has, and takes them out of texts.
absl::Status AddMarks(const TokenizerSettings& settings, Pipeline& pipeline) {
  std::vector<AddedToken> added;
  const auto add = [&](const std::string& text) {
    if (pipeline.vocabulary.Find(text) < 0) return;
    added.push_back({.content = text, .normalized = false, .special = true});
  };
  const std::string cls = TextOf(kCls, settings);
  const std::string sep = TextOf(kSep, settings);
  for (const std::string& mark : {cls, sep}) {
    if (pipeline.vocabulary.Find(mark) < 0) {
      return absl::InvalidArgumentError("it has no " + Quoted(mark) +
                                        ", which stands around each text");
    }
  }
  for (const BertMark& mark : {kPad, kUnknown, kCls, kSep, kMask}) add(TextOf(mark, settings));
  pipeline.post.marks = {.before = {pipeline.vocabulary.Find(cls)},
                         .after = {pipeline.vocabulary.Find(sep)},
                         .around_nothing = true};
  pipeline.post.before_types = pipeline.post.after_types = {0};
  return pipeline.AddTokens(std::move(added));
}

}  // namespace

absl::StatusOr<std::unique_ptr<const Pipeline>> BertPipeline(std::string_view vocabulary,
                                                             const TokenizerSettings& settings) {
  if (!settings.kind.empty() && !settings.like_bert()) {
    return absl::InvalidArgumentError(
        "the tokenizer is a " + settings.kind +
        ", of which no vocab.txt is read, but of a BertTokenizer and an MPNetTokenizer; save it as "
        "tokenizer.json: AutoTokenizer.from_pretrained(FOLDER).save_pretrained(FOLDER)");
  }
  auto pipeline = std::make_unique<Pipeline>();
  if (absl::Status status = ReadLines(vocabulary, pipeline->vocabulary); !status.ok()) {
    return status;
  }
  auto normalizer = BertNormalizerOf(settings.config);
  if (normalizer.ok()) normalizer = NormalizerBy(settings, *std::move(normalizer));
  if (!normalizer.ok()) return normalizer.status();
  auto chain = NormalizerChain::FromJson(*normalizer);
  if (!chain.ok()) return chain.status();
  pipeline->normalizer = *std::move(chain);
  pipeline->splits = SplitChain({BertSplit()});
  pipeline->model.emplace(std::in_place_type<WordPieceModel>, pipeline->vocabulary,
                          WordPieceOptions{.unk_token = TextOf(kUnknown, settings)});
  pipeline->decoder = DecoderChain({WordPieceDecoder{.prefix = "##", .cleanup = true}});
  pipeline->truncation = settings.truncation;
  if (absl::Status status = AddMarks(settings, *pipeline); !status.ok()) return status;
  return pipeline;
}

}  // namespace linserve
