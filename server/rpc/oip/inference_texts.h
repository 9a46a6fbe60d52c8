#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "inference/grpc_service.pb.h"

namespace linserve {

// Names the input of a batch of texts, BYTES [batch] or [batch, 1], or of pairs of texts that are
// read together, [batch, 2], in place of the token ids.
inline constexpr const char* kTextInput = "text";

// Names the output that says how many tokens each sequence has, where it is asked for: INT64
// [batch]. Asked for alone, it comes beside the model's default output.
inline constexpr const char* kTokensOutput = "tokens";

bool HasTexts(const inference::ModelInferRequest& message);

// Returns how many texts or pairs there are, by their shape. INVALID_ARGUMENT if there is another
// input beside them, or if they are of another form.
absl::StatusOr<int64_t> CountTexts(const inference::ModelInferRequest& message,
                                   const std::string& model);

// Says whether they are pairs. REQUIRES: CountTexts() is a number.
bool ArePairs(const inference::ModelInferRequest& message);

// Returns the texts as views of the message's bytes, those of a pair one after the other.
// INVALID_ARGUMENT if they are not as many as CountTexts() says. REQUIRES: that is a number.
absl::StatusOr<std::vector<std::string_view>> TextsOf(const inference::ModelInferRequest& message,
                                                      const std::string& model);

}  // namespace linserve
