#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/sequence/pooling.h"

namespace linserve {

// Is a Dense module of sentence-transformers: y = activation(x·weightᵀ + bias). With a residual, x
// is added, or what PATH.residual.weight makes of it where the widths differ.
struct DenseModule {
  // Returns what its tensors `weight` and `bias` are called before that.
  std::string Tensors() const { return path.empty() ? "linear" : path + ".linear"; }

  std::string path;    // of its folder; "": its tensors are among the encoder's
  int64_t inputs = 0;  // 0: as many as come
  int64_t outputs = 0;
  bool biased = true;
  std::string activation{};  // the class of PyTorch, without its module: "Tanh"
  bool residual = false;

  bool operator==(const DenseModule&) const = default;
};

// Is a SpladePooling of sentence-transformers, by its own words: it makes a sparse embedding of a
// masked language model's logits.
struct SpladeModule {
  std::string strategy;
  std::string activation;

  bool operator==(const SpladeModule&) const = default;
};

// Name the tokens of the words by which a re-ranker answers.
inline constexpr const char* kTrueToken = "true_token_id";
inline constexpr const char* kFalseToken = "false_token_id";

// Holds what sentence-transformers computes behind the encoder: it pools a text's rows, takes the
// vector through the Dense modules, and normalizes it.
struct SentenceModules {
  Pooling pooling = Pooling::kMean;
  // The folder of a StaticEmbedding's files, which is in an encoder's place; "": the model's own.
  std::optional<std::string> table{};
  bool leaves_out_prompts = false;  // rows of a prompt's tokens are not pooled
  bool each_row = false;  // nothing is pooled: each row goes through the modules by itself
  std::vector<DenseModule> dense{};
  bool normalize = false;
  std::optional<SpladeModule> splade{};  // then nothing else is computed
  // The arguments of a LogitScore: kTrueToken and perhaps kFalseToken. Then nothing else is,
  // either.
  std::optional<nlohmann::json> answers{};

  bool operator==(const SentenceModules&) const = default;
};

// Is a MultiVectorMask of sentence-transformers: it says which rows of a text count.
struct RowsModule {
  std::vector<std::string> skipped{};  // tokens whose rows do not
  bool in_queries = false;             // in which texts those are skipped
  bool in_documents = true;
};

// Holds the modules of a late-interaction model.
struct RowModules {
  SentenceModules sentence;
  std::optional<RowsModule> rows{};
};

// Reads DIRECTORY/modules.json and the config.json of each module. Without that file the rows are
// pooled by their mean and nothing else is done, as sentence-transformers does. `prompted` says
// whether texts may have prompts before them. Throws ConfigError for a module, an order or a value
// that is not computed here, naming it.
SentenceModules ReadSentenceModules(const std::string& directory, bool prompted);

// Reads the same files of a late-interaction model, whose modules take rows. REQUIRES: there is a
// modules.json.
RowModules ReadRowModules(const std::string& directory);

// Returns the texts that a file has as this member. Throws ConfigError if they are no such list.
std::vector<std::string> TextsOf(const nlohmann::json& list, const std::string& file,
                                 const char* key);

}  // namespace linserve
