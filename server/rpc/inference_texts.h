#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "rpc/received.h"

namespace linserve {

// The input of a batch of texts, BYTES [batch] or [batch, 1], in place of the token ids.
inline constexpr const char* kTextInput = "text";

// The output, where it is asked for, of how many tokens each sequence has: INT64 [batch]. Asked for
// alone, it comes beside the model's default output.
inline constexpr const char* kTokensOutput = "tokens";

bool HasTexts(const inference::ModelInferRequest& message);

// Copies large fields into the message again: texts are read where they lie, as one.
void PutBack(Received<inference::ModelInferRequest>& request);

// Views of the message's bytes. INVALID_ARGUMENT if they are not as many texts as the shape says,
// or if there is another input beside them.
absl::StatusOr<std::vector<std::string_view>> TextsOf(const inference::ModelInferRequest& message,
                                                      const std::string& model);

}  // namespace linserve
