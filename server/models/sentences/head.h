#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "attention/rows/activation.h"
#include "core/sequence/pooling.h"
#include "models/config/class_labels.h"

namespace linserve {

struct HeadNorm {
  std::string path;  // of its tensors
  double eps = 1e-5;
  bool biased = true;
};

// Says which tokens' logits, of a language model's head [vocabulary, width], are one score: that of
// the word that says yes, less that of the one that says no, if there is one.
struct AnswerTokens {
  int64_t yes = 0;
  std::optional<int64_t> no{};
  int64_t vocabulary = 0;
  double divisor = 1;  // of logits
  double cap = 0;      // logits x are cap · tanh(x / cap); 0: as they are
  std::string tied{};  // the encoder's tensor that the head's weights are; empty: they are its own
};

// Is one layer of a head: y = norm(activation(x·weightᵀ + bias)).
struct HeadLayer {
  std::string path;  // of its tensors weight and bias
  int64_t outputs = 0;
  bool biased = true;
  Activation activation = Activation::kIdentity;
  std::optional<HeadNorm> norm{};
  bool skip = false;        // y has x added
  std::string skip_path{};  // y has x·weightᵀ of these tensors added; empty: it has not
  std::optional<AnswerTokens> answers{};  // of whose weights those of its one output are made
};

// Names the input that says which rows of a head's are given.
inline constexpr const char* kScoringMask = "scoring_mask";
// Names the input that says which rows are pooled, if not all that the encoder's mask shows.
inline constexpr const char* kPoolingMask = "pooling_mask";

// Says what makes one vector of a sequence behind an encoder, or one of each of its rows.
struct Head {
  std::string output;   // what the vector is called
  std::string encoder;  // what the encoder's names stand below, as in "bert"; empty: nothing
  std::string input;  // the output of the encoder that it takes: a vector, or rows, which it pools
  Pooling pooling = Pooling::kMean;
  bool pools_some = false;  // there is a kPoolingMask
  bool each_row = false;    // it takes rows one by one, and pools none
  bool normalized = false;  // what it makes of a row is divided by its 2-norm
  bool hidden_too = false;  // it pools what the mask hides, too
  // It pools rows of other tokens alone, but for a sequence's first one where there is none.
  std::optional<int64_t> pad_token{};
  std::vector<HeadLayer> layers;
  int64_t layers_of_rows = 0;  // so many layers, the first ones, come before the pooling
  ClassLabels labels{};
};

}  // namespace linserve
