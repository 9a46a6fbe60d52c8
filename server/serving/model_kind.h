#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "access/caller.h"
#include "repository/repository.h"
#include "serving/service_context.h"

namespace linserve {

// Says what the first output of a model is: vectors or rows of what it reads, vectors that have a
// weight for each word of its vocabulary, scores of several classes, or the one score by which a
// re-ranker orders texts.
enum class ModelKind : uint8_t { kEmbedding, kSparse, kClassifier, kReranker };

ModelKind KindOf(const ServedModel& model);

// Returns the name of the only model of this kind that the caller may use, for requests that name
// none where there are several; "" if there is none, or more than one.
std::string OnlyModelOf(const ServiceContext& service, const Caller& caller, ModelKind kind);
// Returns that of the only late-interaction model.
std::string OnlyLateModelOf(const ServiceContext& service, const Caller& caller);

// These return OK if the model is of the kind that a request needs. UNIMPLEMENTED says what kind it
// is of, and what to ask it instead. A late-interaction model, which gives embeddings, ranks, too.
absl::Status CheckEmbeds(const ServedModel& model);
absl::Status CheckEmbedsSparsely(const ServedModel& model);
absl::Status CheckClassifies(const ServedModel& model);
absl::Status CheckRanks(const ServedModel& model);

}  // namespace linserve
