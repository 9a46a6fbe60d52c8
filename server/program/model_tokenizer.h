#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/sequence/signature.h"
#include "engine/serving_options.h"
#include "text/tokenizer.h"

namespace linserve {

// Loads the tokenizer that lies in a model directory; null if there is none. Of several, the first
// of tokenizer.model, tokenizer.json, vocab.txt and vocab.json counts where config.json is
// linserve's own; a directory that another program has written has its tokenizer.model for that
// program, and there it counts last.
absl::StatusOr<std::shared_ptr<const Tokenizer>> LoadTokenizer(const std::string& directory,
                                                               const ServingOptions& serving);

// Returns which tokens of long texts are dropped. Those of a Hugging Face folder are told by its
// tokenizer's files, if at all.
Truncation TruncationOf(const ServingOptions& serving, const Tokenizer* tokenizer);

// Returns OK if the model takes what its tokenizer gives, as it would be served. INVALID_ARGUMENT
// says why not.
absl::Status CheckTokenizer(const std::string& directory, const ServingOptions& serving,
                            const Tokenizer& tokenizer, const Signature& signature);

}  // namespace linserve
