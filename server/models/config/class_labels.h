#pragma once

#include <string>
#include <vector>

#include "engine/model.h"
#include "models/config/params.h"

namespace linserve {

// Names the classes that a network's output `logits` scores, in order. Without names it is no
// classifier.
struct ClassLabels {
  std::vector<std::string> names{};
  ProblemType problem = ProblemType::kSingleLabel;
};

// Reads id2label, num_labels and problem_type as configurations of the package `transformers` do:
// without names the classes are called LABEL_0, LABEL_1 and so on, and two of them are usual.
ClassLabels ClassLabelsParam(Params& params);

}  // namespace linserve
