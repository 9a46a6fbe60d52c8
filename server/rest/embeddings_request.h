#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/sequence/truncation.h"
#include "core/tensor/tensor.h"
#include "rest/rest_call.h"
#include "rest/sequence_input.h"

namespace linserve {

// Holds what the embedding APIs ask for, each in its own words.
struct EmbeddingsQuery {
  std::string model;  // "": the only model
  SequenceInput sequences;
  bool normalize = true;
  Truncation truncation = Truncation::kNone;
  int64_t dimensions = 0;  // of each vector; 0: all that the model gives
  bool base64 = false;     // whether a vector is answered as its bytes, in base64, or as numbers
  std::string cause_of_foreign_ids{};  // of this API's callers, for the error that names such ids
};

struct Embeddings {
  std::string model;
  int64_t tokens = 0;             // tokens of all sequences
  std::vector<Tensor> vectors;    // one for each sequence, F32 [width]
  std::shared_ptr<void> sending;  // held until the vectors are sent
};

// Waits for one vector for each sequence: pooled as the model is served, by the mean if it is not.
// There is room for their text in an answer until that is sent. A query that could not be read is
// refused, which counts as a request, too. `rpc` names the request in the metrics.
absl::StatusOr<Embeddings> Embed(const RestCall& call, const std::string& rpc,
                                 absl::StatusOr<EmbeddingsQuery> query);

}  // namespace linserve
