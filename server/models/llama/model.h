#pragma once

#include <memory>

#include "models/config/params.h"
#include "models/llama/options.h"
#include "models/network/network.h"

namespace linserve::llama {

// Makes a model of a family as the PyPI package `transformers` 5.24.0 has it: LlamaModel (Touvron
// et al. 2023) or one of its kin, which Family names, with the arguments of its configuration
// (config.json of a Hugging Face folder). It takes x [n] (input_ids) and attention_mask [n]
// (optional, true = a visible key), and gives last_hidden_state [n, hidden_size].
std::unique_ptr<Network> MakeModel(Family family, Params& params);

// Makes its …ForSequenceClassification, whose first output is logits [classes]. Besides, it takes
// id2label, num_labels and problem_type, and of EuroBERT classifier_pooling. All but that one score
// the last token that is not pad_token_id.
std::unique_ptr<Network> MakeClassifier(Family family, Params& params);

// Makes its …ForCausalLM as a re-ranker that answers by words: its one score is the logit of
// true_token_id at the last token, less that of false_token_id if it is there. So does LogitScore
// of sentence-transformers 6.2.0.
std::unique_ptr<Network> MakeAnswering(Family family, Params& params);

template <Family family>
std::unique_ptr<Network> MakeModel(Params& params) {
  return MakeModel(family, params);
}

template <Family family>
std::unique_ptr<Network> MakeClassifier(Params& params) {
  return MakeClassifier(family, params);
}

template <Family family>
std::unique_ptr<Network> MakeAnswering(Params& params) {
  return MakeAnswering(family, params);
}

}  // namespace linserve::llama
