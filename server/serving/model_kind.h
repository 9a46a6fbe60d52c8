#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "repository/repository.h"

namespace linserve {

// Says what the first output of a model is: vectors or rows of what it reads, vectors that have a
// weight for each word of its vocabulary, scores of several classes, or the one score by which a
// re-ranker orders texts.
enum class ModelKind : uint8_t { kEmbedding, kSparse, kClassifier, kReranker };

ModelKind KindOf(const ServedModel& model);

// These return OK if the model is of the kind that a request needs. UNIMPLEMENTED says what kind it
// is of, and what to ask it instead.
absl::Status CheckEmbeds(const ServedModel& model);
absl::Status CheckEmbedsSparsely(const ServedModel& model);
absl::Status CheckClassifies(const ServedModel& model);
absl::Status CheckRanks(const ServedModel& model);

}  // namespace linserve
