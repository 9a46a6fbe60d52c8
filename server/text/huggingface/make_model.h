#pragma once

#include "absl/status/status.h"
#include "text/huggingface/file/model_members.h"
#include "text/huggingface/pipeline.h"

namespace linserve {

// Makes the model, and the vocabulary that it points to. REQUIRES: the pipeline has its normalizer
// and its pre-tokenizer. INVALID_ARGUMENT says what is wrong, or not known.
absl::Status MakeModel(ModelMembers members, Pipeline& pipeline);

}  // namespace linserve
