#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "text/huggingface/added_tokens.h"
#include "text/huggingface/decoders.h"
#include "text/huggingface/file/model_members.h"
#include "text/huggingface/models/bpe_model.h"
#include "text/huggingface/models/token_neighbours.h"
#include "text/huggingface/models/token_vocabulary.h"
#include "text/huggingface/models/unigram_model.h"
#include "text/huggingface/models/word_models.h"
#include "text/huggingface/normalize/normalizers.h"
#include "text/huggingface/post_processor.h"
#include "text/huggingface/settings/tokenizer_settings.h"
#include "text/huggingface/split/pre_tokenizers.h"

namespace linserve {

using TokenModel = std::variant<WordLevelModel, WordPieceModel, BpeModel, UnigramModel>;

// Holds the parts of a tokenizer in the order in which a text goes through them. The models point
// to the vocabulary, so that it is neither copied nor moved.
struct Pipeline {
  Pipeline() = default;
  Pipeline(const Pipeline&) = delete;
  Pipeline& operator=(const Pipeline&) = delete;

  // Gives the added tokens their ids, as the package does: those that their texts have already, or
  // the next ones. Then finds them in texts. REQUIRES: the other parts are there.
  absl::Status AddTokens(std::vector<AddedToken> tokens);

  // Returns the id of an added token, or of one of the model; -1 if there is no such token.
  int64_t IdOf(std::string_view text) const;

  // Returns what an id stands for when it is decoded, an added token's text or a model's; "" if it
  // is none's.
  const std::string& DecodedText(int64_t id) const;

  TokenVocabulary vocabulary;
  NormalizerChain normalizer;
  SplitChain splits;
  std::optional<TokenModel> model;
  // Knows where words can be cut that are left to the model; nullopt where that is not asked.
  std::optional<TokenNeighbours> neighbours;
  PostProcessing post;
  DecoderChain decoder;
  std::optional<Truncation> truncation;  // what becomes of long texts, if the files say it
  std::optional<int64_t> filler;         // the id of the mask or, without one, of the end
  std::optional<int64_t> unknown;        // the id of what has no token, if the model names one
  int64_t longest = 0;                   // tokens that the file leaves of a text; 0: any number

  std::vector<AddedToken> added;
  AddedTokenFinder before_normalizing{{}, {}};
  AddedTokenFinder after_normalizing{{}, {}};
  std::vector<const AddedToken*> added_by_id;  // null: none
  std::vector<std::string> decoded;            // of `added`
  int64_t ids = 0;                             // all are below it
};

// Reads a tokenizer.json. INVALID_ARGUMENT says what is wrong with it, or not known here.
absl::StatusOr<std::unique_ptr<const Pipeline>> ReadPipeline(
    std::string_view text, const TokenizerSettings& settings = {});

// Makes the tokenizer of a class, which the settings name, of its vocabulary alone.
absl::StatusOr<std::unique_ptr<const Pipeline>> PipelineOf(ModelMembers vocabulary,
                                                           const TokenizerSettings& settings);

}  // namespace linserve
