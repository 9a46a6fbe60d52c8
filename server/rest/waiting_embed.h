#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/tensor/tensor.h"
#include "rest/rest_call.h"
#include "rest/tensor_json.h"
#include "serving/embeddings_request.h"

namespace linserve {

// A byte of a vector becomes up to so many of JSON.
inline constexpr int64_t kTextBytes = kLongestElement / int64_t{sizeof(float)};

// Waits for what an embedding API asks for. A query that could not be read is refused, which counts
// as a request, too. `rpc` names the request in the metrics.
absl::StatusOr<Embeddings> Embed(const RestCall& call, const std::string& rpc,
                                 absl::StatusOr<EmbeddingsQuery> query);

// Appends one vector, by its index.
using AppendVector = std::function<absl::Status(size_t index, const Tensor& vector)>;

// Appends the vectors with commas between them. CANCELLED if the caller leaves meanwhile.
absl::Status AppendVectors(const RestCall& call, const Embeddings& embeddings,
                           const AppendVector& append, std::string& text);

}  // namespace linserve
