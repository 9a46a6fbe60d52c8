#include "text/huggingface/json_tokenizer.h"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/files/file.h"
#include "core/json/json_text.h"
#include "text/huggingface/pipeline.h"
#include "text/huggingface/pipeline_reader.h"

namespace linserve {
namespace {

constexpr size_t kLargestTokenizer = 64 << 20;  // those of 250,000 tokens have some 17 MB

class JsonTokenizer : public Tokenizer {
 public:
  JsonTokenizer(std::string file, std::unique_ptr<const Pipeline> pipeline)
      : Tokenizer(std::move(file), pipeline->post.marks), pipeline_(std::move(pipeline)) {}

  int64_t vocabulary() const override { return pipeline_->ids; }

  const std::string& PieceOf(int64_t id) const override {
    const AddedToken* const token = pipeline_->added_by_id[static_cast<size_t>(id)];
    return token != nullptr ? token->content : pipeline_->vocabulary.TextOf(id);
  }

  std::unique_ptr<TokenReader> Read(std::string_view text, bool places) const override {
    return std::make_unique<PipelineReader>(*pipeline_, text, places);
  }

  std::vector<int64_t> TypeIds(size_t ids) const override {
    const PostProcessing& post = pipeline_->post;
    std::vector<int64_t> types = post.before_types;
    const size_t marks = post.before_types.size() + post.after_types.size();
    types.resize(std::max(types.size(), ids - std::min(ids, post.after_types.size())),
                 post.text_type);
    types.insert(types.end(), post.after_types.begin(), post.after_types.end());
    // Where not even the marks have room, the last ones stay.
    if (ids < marks) types.erase(types.begin(), types.end() - static_cast<std::ptrdiff_t>(ids));
    const bool all_0 = std::count(types.begin(), types.end(), 0) == std::ssize(types);
    return all_0 ? std::vector<int64_t>() : types;
  }

  std::optional<Truncation> truncation() const override { return pipeline_->truncation; }

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

absl::Status CheckThere(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_regular_file(path, error)) return absl::OkStatus();
  return absl::NotFoundError("there is no tokenizer at " + path);
}

absl::StatusOr<std::shared_ptr<const Tokenizer>> Named(
    const std::string& path, const char* kind,
    absl::StatusOr<std::unique_ptr<const Pipeline>> pipeline) {
  if (pipeline.ok()) {
    return std::make_shared<JsonTokenizer>(std::filesystem::path(path).filename(),
                                           *std::move(pipeline));
  }
  return absl::InvalidArgumentError(path + " is no " + kind + " that can be read here: " +
                                    std::string(pipeline.status().message()));
}

// Loads a file of a tokenizer: `make` is called with its text and the settings beside it.
template <typename Make>
absl::StatusOr<std::shared_ptr<const Tokenizer>> Load(const std::string& path, const char* kind,
                                                      const Make& make) {
  if (absl::Status there = CheckThere(path); !there.ok()) return there;
  const auto settings = ReadTokenizerSettings(path);
  if (!settings.ok()) return Named(path, kind, settings.status());
  const auto text = ReadFile(path, kLargestTokenizer);
  return Named(path, kind, text.ok() ? make(*text, *settings) : text.status());
}

}  // namespace

absl::StatusOr<std::shared_ptr<const Tokenizer>> LoadTokenizerJson(const std::string& path) {
  return Load(path, "tokenizer.json", ReadPipeline);
}

absl::StatusOr<std::shared_ptr<const Tokenizer>> LoadBertVocabulary(const std::string& path) {
  return Load(path, "vocabulary", BertPipeline);
}

absl::StatusOr<std::shared_ptr<const Tokenizer>> LoadMolformerVocabulary(const std::string& path) {
  if (absl::Status there = CheckThere(path); !there.ok()) return there;
  const auto settings = ReadTokenizerSettings(path);
  if (settings.ok() && settings->kind != "MolformerTokenizer") {
    return absl::NotFoundError(path + " is of another tokenizer than MolformerTokenizer");
  }
  return Load(path, "vocabulary", [](const std::string& text, const TokenizerSettings& beside) {
    return MolformerPipeline(text, beside.config);
  });
}

absl::StatusOr<std::shared_ptr<const Tokenizer>> ParseTokenizerJson(std::string_view json) {
  return Named("tokenizer.json", "tokenizer.json", ReadPipeline(json));
}

}  // namespace linserve
