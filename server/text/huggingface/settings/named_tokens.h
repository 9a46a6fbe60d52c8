#pragma once

#include <nlohmann/json_fwd.hpp>

#include "absl/status/statusor.h"
#include "text/huggingface/settings/tokenizer_settings.h"

namespace linserve {

// Returns all tokens that stand beside a model's, in the order in which transformers 5 adds them:
// those of the tokenizer's own file, which are given, those that the files beside it list, the
// marks that are named, and further ones. What it gives has the form of `added_tokens` in a
// tokenizer.json. INVALID_ARGUMENT names what is wrong in the files.
absl::StatusOr<nlohmann::json> AllAddedTokens(const TokenizerSettings& settings,
                                              const nlohmann::json& of_file);

}  // namespace linserve
