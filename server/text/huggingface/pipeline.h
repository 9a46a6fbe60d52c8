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
#include "text/huggingface/models/bpe_model.h"
#include "text/huggingface/models/token_neighbours.h"
#include "text/huggingface/models/token_vocabulary.h"
#include "text/huggingface/models/unigram_model.h"
#include "text/huggingface/models/word_models.h"
#include "text/huggingface/normalize/normalizers.h"
#include "text/huggingface/post_processor.h"
#include "text/huggingface/split/pre_tokenizers.h"
#include "text/huggingface/tokenizer_settings.h"

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

// Makes the BertTokenizer, or the MPNetTokenizer, of a vocab.txt, whose lines are the tokens.
// INVALID_ARGUMENT says, too, that the settings name another.
absl::StatusOr<std::unique_ptr<const Pipeline>> BertPipeline(std::string_view vocabulary,
                                                             const TokenizerSettings& settings);

// Makes the MolformerTokenizer of a vocab.json, an object of tokens with their ids, and of a
// tokenizer_config.json.
absl::StatusOr<std::unique_ptr<const Pipeline>> MolformerPipeline(std::string_view vocabulary,
                                                                  const nlohmann::json& config);

}  // namespace linserve
