#pragma once

#include "absl/status/status.h"
#include "text/huggingface/file/file_members.h"
#include "text/huggingface/settings/tokenizer_settings.h"

namespace linserve {

// Replaces the parts of a tokenizer that follow from its class, and lets sentence-transformers
// lower texts first. INVALID_ARGUMENT if the model is not of the kind that the class has, or names
// what is wrong in the settings.
absl::Status FollowSettings(const TokenizerSettings& settings, FileMembers& members);

}  // namespace linserve
