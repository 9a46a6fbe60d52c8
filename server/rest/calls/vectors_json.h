#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "core/tensor/tensor.h"
#include "rest/calls/rest_call.h"
#include "rest/json/tensor_json.h"
#include "serving/requests/embeddings_request.h"

namespace linserve {

// A byte of a vector becomes up to so many of JSON.
inline constexpr int64_t kJsonOfFloatByte = kLongestElement / int64_t{sizeof(float)};

// Appends one vector, by its index.
using AppendVector = std::function<absl::Status(size_t index, const Tensor& vector)>;

// Appends the vectors with commas between them, in each of which a byte becomes up to
// `answer_bytes`. CANCELLED if the caller leaves meanwhile.
absl::Status AppendVectors(const RestCall& call, const Embeddings& embeddings, int64_t answer_bytes,
                           const AppendVector& append, std::string& text);

}  // namespace linserve
