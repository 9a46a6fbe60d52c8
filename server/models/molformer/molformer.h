#pragma once

#include <memory>

#include "models/config/params.h"
#include "models/network/network.h"

namespace linserve::molformer {

// Makes MolformerModel, the encoder of molecules of IBM's MoLFormer-XL folder (Ross et al. 2022,
// arXiv:2106.09553), with the arguments of its configuration (config.json). It takes x [n]
// (input_ids) and attention_mask [n] (optional, true = a visible key), and gives last_hidden_state
// [n, hidden_size] and pooler_output [hidden_size], the mean of the visible rows.
std::unique_ptr<Network> MakeModel(Params& params);

// Makes MolformerForSequenceClassification, which has id2label, num_labels, problem_type and
// classifier_skip_connection besides. Its first output is logits [classes].
std::unique_ptr<Network> MakeClassifier(Params& params);

}  // namespace linserve::molformer
