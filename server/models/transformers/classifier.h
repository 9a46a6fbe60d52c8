#pragma once

#include <memory>

#include "models/config/params.h"
#include "models/network/network.h"
#include "models/transformers/options/options.h"

namespace linserve::transformers {

// Makes the …ForSequenceClassification of a family, as transformers 5.24.0 has it: classifiers, and
// re-rankers, which score a query with a text by one class. Its arguments are those of the encoder,
// id2label, num_labels and problem_type, and of ModernBert those that begin with `classifier_`. Its
// first output is logits [classes], and the encoder's follow.
std::unique_ptr<Network> MakeClassifier(Family family, Params& params);

template <Family family>
std::unique_ptr<Network> MakeClassifier(Params& params) {
  return MakeClassifier(family, params);
}

}  // namespace linserve::transformers
