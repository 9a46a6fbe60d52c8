#include "program/model_tokenizer.h"

#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "core/files/json_file.h"
#include "core/strings/quote.h"
#include "telemetry/log.h"
#include "text/huggingface/json_tokenizer.h"
#include "text/late_texts.h"
#include "text/sentencepiece/piece_tokenizer.h"

namespace linserve {
namespace {

using Loaded = absl::StatusOr<std::shared_ptr<const Tokenizer>>;

// Returns whether the directory's config.json is linserve's own, which names an architecture; what
// is wrong with it is told where the model is loaded.
bool IsOwnConfig(const std::string& directory) {
  const auto config = ReadJson(directory + "/config.json");
  return config.ok() && config->is_object() && config->contains("architecture");
}

Loaded LoadPieces(const std::string& directory, const ServingOptions& serving) {
  return LoadSentencePiece(directory + "/tokenizer.model",
                           {.add_bos = serving.add_bos, .add_eos = serving.add_eos});
}

Loaded LoadFirst(const std::string& directory, const std::vector<std::string>& whole = {}) {
  Loaded loaded = LoadTokenizerJson(directory + "/tokenizer.json", whole);
  if (absl::IsNotFound(loaded.status())) {
    loaded = LoadVocabularyLines(directory + "/vocab.txt", whole);
  }
  if (absl::IsNotFound(loaded.status())) {
    loaded = LoadVocabularyObject(directory + "/vocab.json", whole);
  }
  return loaded;
}

// Loads a tokenizer whose files say themselves which marks stand around a text.
Loaded LoadMarked(const std::string& directory, const ServingOptions& serving) {
  Loaded loaded = LoadFirst(directory);
  if (loaded.ok() && serving.late_interaction) {
    const auto split = SplitPrefixes(*serving.late_interaction, **loaded);
    if (!split.empty()) loaded = LoadFirst(directory, split);
  }
  if (!loaded.ok() || (!serving.add_bos && !serving.add_eos)) return loaded;
  return absl::InvalidArgumentError(
      directory + "/" + (*loaded)->file() +
      " says itself which marks stand around a text; leave add_bos and add_eos out of 'serving'");
}

// Loads that of a static model.
Loaded LoadBare(const std::string& directory, const ServingOptions& serving) {
  const std::filesystem::path folder = serving.static_settings->tokenizer;
  Loaded loaded = LoadBareTokenizer(directory / folder / "tokenizer.json");
  if (!absl::IsNotFound(loaded.status())) return loaded;
  return nullptr;
}

// Warns where a tokenizer lies there in a form that is not read, so that texts would be refused
// without a reason that can be seen.
void WarnOfUnread(const std::string& directory) {
  constexpr const char* kSave =
      "save a tokenizer.json: AutoTokenizer.from_pretrained(FOLDER).save_pretrained(FOLDER)";
  constexpr const char* kByWords =
      "send token ids: a RoFormerTokenizer finds words by jieba's dictionary, which is not known "
      "here";
  constexpr auto kUnread =
      std::to_array<std::pair<const char*, const char*>>({{"tokenizer.json", kByWords},
                                                          {"vocab.txt", kByWords},
                                                          {"sentencepiece.bpe.model", kSave},
                                                          {"spiece.model", kSave},
                                                          {"spm.model", kSave},
                                                          {"merges.txt", kSave},
                                                          {"vocab.json", kSave}});
  for (const auto& [name, advice] : kUnread) {
    std::error_code error;
    if (!std::filesystem::exists(directory + "/" + name, error)) continue;
    Log(LogLevel::kWarning, "the model takes no texts: its tokenizer is in a form that is not read",
        {{"file", directory + "/" + name}, {"advice", advice}});
    return;
  }
}

// Says whether queries can be filled up as the folder says, in a model that takes so many tokens;
// 0: any number.
absl::Status CheckLateTexts(const LateInteraction& late, const Tokenizer& tokenizer,
                            int64_t longest) {
  if (late.expansion && longest > 0 && late.expansion->length > longest) {
    return absl::InvalidArgumentError(
        "query_expansion fills queries up to " + std::to_string(late.expansion->length) +
        " tokens, but the model takes " + std::to_string(longest) + " at most");
  }
  return LateTexts::Of(late, tokenizer).status();
}

}  // namespace

absl::StatusOr<std::shared_ptr<const Tokenizer>> LoadTokenizer(const std::string& directory,
                                                               const ServingOptions& serving) {
  if (serving.static_settings) return LoadBare(directory, serving);
  const bool pieces_first = IsOwnConfig(directory);
  Loaded loaded = pieces_first ? LoadPieces(directory, serving) : LoadMarked(directory, serving);
  if (absl::IsNotFound(loaded.status())) {
    loaded = pieces_first ? LoadMarked(directory, serving) : LoadPieces(directory, serving);
  }
  if (!absl::IsNotFound(loaded.status())) return loaded;
  WarnOfUnread(directory);
  return nullptr;
}

Truncation TruncationOf(const ServingOptions& serving, const Tokenizer* tokenizer) {
  if (tokenizer == nullptr || !serving.tokenizer_truncates) return serving.truncation;
  return tokenizer->truncation().value_or(serving.truncation);
}

std::pair<int64_t, std::string> TextLimitOf(const ServingOptions& serving,
                                            const Tokenizer* tokenizer) {
  const bool of_file = serving.static_settings && !serving.static_settings->as_model2vec;
  if (serving.max_text_tokens > 0 || tokenizer == nullptr || !of_file) {
    return {serving.max_text_tokens, serving.text_limit_origin};
  }
  return {tokenizer->longest(), "truncation in " + tokenizer->file()};
}

absl::Status CheckTokenizer(const std::string& directory, const ServingOptions& serving,
                            const Tokenizer& tokenizer, const Signature& signature) {
  const std::filesystem::path folder =
      serving.static_settings ? serving.static_settings->tokenizer : "";
  const std::string path = directory / folder / tokenizer.file();
  const InputSpec* input = signature.FindInput(kTextBecomes);
  if (input == nullptr || input->kind != InputKind::kToken) {
    return absl::InvalidArgumentError(path + ": the model's input 'x' takes no token ids");
  }
  if (serving.late_interaction) {
    const int64_t longest = LongestFor(signature, Item(), input->axes[0].letter);
    absl::Status fit = CheckLateTexts(*serving.late_interaction, tokenizer, longest);
    if (!fit.ok()) return absl::InvalidArgumentError(directory + ": " + std::string(fit.message()));
  }
  if (tokenizer.vocabulary() <= input->vocabulary) return absl::OkStatus();
  std::string around;
  for (const std::vector<int64_t>* marks : {&tokenizer.marks().before, &tokenizer.marks().after}) {
    for (const int64_t id : *marks) {
      if (id >= input->vocabulary) around = tokenizer.PieceOf(id);
    }
  }
  // Folders from elsewhere may have tokens that the model was never given; few texts have any.
  if (around.empty() && !IsOwnConfig(directory)) {
    Log(LogLevel::kWarning, "texts are refused that have tokens which the model lacks",
        {{"file", path},
         {"because", "it has " + std::to_string(tokenizer.vocabulary()) +
                         " tokens, and the model " + std::to_string(input->vocabulary)}});
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      path + " has " + std::to_string(tokenizer.vocabulary()) + " tokens" +
      (around.empty() ? "" : ", with " + Quoted(around) + ", which stands around each text") +
      ", but the model's vocabulary is " + std::to_string(input->vocabulary));
}

}  // namespace linserve
