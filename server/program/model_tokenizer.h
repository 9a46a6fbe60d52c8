#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

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

// Returns how many tokens a text may have, and what says so; 0: as many as the model takes. That of
// a static model of sentence-transformers may be said by its tokenizer's file alone.
std::pair<int64_t, std::string> TextLimitOf(const ServingOptions& serving,
                                            const Tokenizer* tokenizer);

// Returns OK if the model takes what its tokenizer gives, as it would be served. INVALID_ARGUMENT
// says why not.
absl::Status CheckTokenizer(const std::string& directory, const ServingOptions& serving,
                            const Tokenizer& tokenizer, const Signature& signature);

}  // namespace linserve
