#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/model.h"
#include "support/fakes/fake_model.h"

namespace linserve {

constexpr int64_t kTestVocabulary = 100;
constexpr int64_t kTestLongest = 20000;

// Makes models that take x [n] of token ids below kTestVocabulary, n up to kTestLongest. They give
// y [n, 4] = (id, place, n, 1) and z [n, 2] = (place, id).
ModelFactory TokenModel(const std::shared_ptr<FakeModelControl>& control);

// Makes models that take x [n, 3] and, if wanted, context [m, 3]. They give y [n, 3], which is x
// plus the sum of the context's rows.
ModelFactory FloatModel(const std::shared_ptr<FakeModelControl>& control);

// Makes classifiers that take x [n] of token ids and, if wanted, token_type_ids [n]. Label i has
// the score i + 1 + (the sum of the ids of type 0) / 100 + (the sum of the others) / 10.
ModelFactory ClassifierModel(const std::vector<std::string>& labels,
                             ProblemType problem_type = ProblemType::kSingleLabel);

// Makes sparse encoders that take x [n] of token ids. A word's weight is half the number of times
// that it stands there.
ModelFactory SparseModel();

}  // namespace linserve
