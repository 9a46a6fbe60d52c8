#include "text/huggingface/json_tokenizer.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/files/file.h"
#include "core/json/json_text.h"
#include "text/huggingface/pipeline.h"
#include "text/huggingface/pipeline_reader.h"

namespace linserve {
namespace {

constexpr const char* kWithJieba = "RoFormerTokenizer";
constexpr size_t kLargestTokenizer = 64 << 20;  // those of 250,000 tokens have some 17 MB

class JsonTokenizer : public Tokenizer {
 public:
  JsonTokenizer(std::string file, std::unique_ptr<const Pipeline> pipeline)
      : Tokenizer(std::move(file), pipeline->post.marks, pipeline->post.pair),
        pipeline_(std::move(pipeline)) {}
  JsonTokenizer(std::string file, Marks marks, std::optional<PairTemplate> pair,
                std::unique_ptr<const Pipeline> pipeline)
      : Tokenizer(std::move(file), std::move(marks), std::move(pair)),
        pipeline_(std::move(pipeline)) {}

  int64_t vocabulary() const override { return pipeline_->ids; }

  const std::string& PieceOf(int64_t id) const override {
    const AddedToken* const token = pipeline_->added_by_id[static_cast<size_t>(id)];
    return token != nullptr ? token->content : pipeline_->vocabulary.TextOf(id);
  }

  std::optional<int64_t> IdOf(std::string_view piece) const override {
    const int64_t id = pipeline_->IdOf(piece);
    return id < 0 ? std::nullopt : std::optional(id);
  }

  std::unique_ptr<TokenReader> Read(std::string_view text, bool places) const override {
    return std::make_unique<PipelineReader>(*pipeline_, text, places);
  }

  std::optional<Truncation> truncation() const override { return pipeline_->truncation; }
  std::optional<int64_t> filler() const override { return pipeline_->filler; }
  std::optional<int64_t> unknown() const override { return pipeline_->unknown; }
  int64_t longest() const override { return pipeline_->longest; }

 private:
  absl::StatusOr<std::string> DecodeIds(const std::vector<int64_t>& ids,
                                        bool marks) const override {
    std::vector<std::string> tokens;
    for (const int64_t id : ids) {
      const bool known = id >= 0 && id < pipeline_->ids;
      const AddedToken* const added =
          known ? pipeline_->added_by_id[static_cast<size_t>(id)] : nullptr;
      if (!marks && added != nullptr && added->special) continue;
      const std::string& text = pipeline_->DecodedText(id);
      if (!text.empty()) tokens.push_back(text);
    }
    return pipeline_->decoder.Decode(std::move(tokens));
  }

  const std::unique_ptr<const Pipeline> pipeline_;
};

using Tokens = std::vector<std::string>;
using Loaded = absl::StatusOr<std::shared_ptr<const Tokenizer>>;
using MadePipeline = absl::StatusOr<std::unique_ptr<const Pipeline>>;

Loaded Named(const std::string& path, const char* kind, MadePipeline pipeline) {
  if (absl::IsNotFound(pipeline.status())) return pipeline.status();
  if (pipeline.ok()) {
    return std::make_shared<JsonTokenizer>(std::filesystem::path(path).filename(),
                                           *std::move(pipeline));
  }
  return absl::InvalidArgumentError(path + " is no " + kind + " that can be read here: " +
                                    std::string(pipeline.status().message()));
}

absl::Status FindTokenizer(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_regular_file(path, error)) return absl::OkStatus();
  return absl::NotFoundError("there is no tokenizer at " + path);
}

// Loads a file of a tokenizer: `make` is called with its text and the settings beside it.
template <typename Make>
Loaded Load(const std::string& path, const char* kind, const Tokens& whole, const Make& make) {
  if (absl::Status found = FindTokenizer(path); !found.ok()) return found;
  auto settings = ReadTokenizerSettings(path);
  if (!settings.ok()) return Named(path, kind, settings.status());
  if (settings->class_name == kWithJieba) {
    return absl::NotFoundError(path + " is of a " + settings->class_name +
                               ", which finds words by jieba's dictionary");
  }
  settings->whole = whole;
  const auto text = ReadFile(path, kLargestTokenizer);
  return Named(path, kind, text.ok() ? make(*text, *std::move(settings)) : text.status());
}

MadePipeline OfLines(const std::string& text, TokenizerSettings settings) {
  // A type of models whose tokenizer.json counts as it is may have none.
  settings.kind =
      settings.class_name.empty() ? TokenizerClass::kBert : ClassNamed(settings.class_name);
  if (settings.class_name == "EsmTokenizer") settings.kind = TokenizerClass::kEsm;
  constexpr std::array kRead = {TokenizerClass::kBert, TokenizerClass::kMpnet,
                                TokenizerClass::kEsm};
  if (std::find(kRead.begin(), kRead.end(), settings.kind) == kRead.end()) {
    return absl::InvalidArgumentError(
        "the tokenizer is a " + settings.class_name +
        ", of which no vocab.txt is read, but of a BertTokenizer, an MPNetTokenizer and an "
        "EsmTokenizer; save it as tokenizer.json: "
        "AutoTokenizer.from_pretrained(FOLDER).save_pretrained(FOLDER)");
  }
  ModelMembers vocabulary;
  absl::Status status = ReadVocabularyLines(text, vocabulary);
  if (!status.ok()) return status;
  return PipelineOf(std::move(vocabulary), settings);
}

MadePipeline OfObject(const std::string& path, const std::string& text,
                      TokenizerSettings settings) {
  if (settings.class_name == "MolformerTokenizer") settings.kind = TokenizerClass::kMolformer;
  const bool roberta = settings.kind == TokenizerClass::kRoberta;
  if (!roberta && settings.kind != TokenizerClass::kMolformer) {
    return absl::NotFoundError(path +
                               " is of another tokenizer than RobertaTokenizer and "
                               "MolformerTokenizer");
  }
  ModelMembers vocabulary;
  absl::Status status = ReadVocabularyObject(text, vocabulary);
  if (status.ok() && roberta) {
    const std::string beside = std::filesystem::path(path).replace_filename("merges.txt");
    const auto merges = ReadFile(beside, kLargestTokenizer);
    status = merges.ok() ? ReadMergeLines(*merges, vocabulary) : merges.status();
  }
  if (!status.ok()) return status;
  return PipelineOf(std::move(vocabulary), settings);
}

}  // namespace

Loaded LoadTokenizerJson(const std::string& path, const Tokens& whole) {
  return Load(path, "tokenizer.json", whole, ReadPipeline);
}

Loaded LoadBareTokenizer(const std::string& path) {
  if (absl::Status found = FindTokenizer(path); !found.ok()) return found;
  const auto text = ReadFile(path, kLargestTokenizer);
  MadePipeline pipeline = text.ok() ? ReadPipeline(*text) : text.status();
  if (!pipeline.ok()) return Named(path, "tokenizer.json", pipeline.status());
  return std::make_shared<JsonTokenizer>(std::filesystem::path(path).filename(), Marks(),
                                         std::nullopt, *std::move(pipeline));
}

Loaded LoadVocabularyLines(const std::string& path, const Tokens& whole) {
  return Load(path, "vocabulary", whole, OfLines);
}

Loaded LoadVocabularyObject(const std::string& path, const Tokens& whole) {
  return Load(path, "vocabulary", whole,
              [&path](const std::string& text, TokenizerSettings settings) {
                return OfObject(path, text, std::move(settings));
              });
}

Loaded ParseTokenizerJson(std::string_view json) {
  return Named("tokenizer.json", "tokenizer.json", ReadPipeline(json));
}

}  // namespace linserve
