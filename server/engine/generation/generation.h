#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/sequence/item.h"
#include "engine/generation/token_sampler.h"
#include "engine/model.h"

namespace linserve {

struct GenerationOptions {
  SamplingOptions sampling;
  int64_t max_tokens = 0;         // 0: as many as the model takes
  std::set<int64_t> stop_tokens;  // the first of them ends the text, and is its last token
};

enum class FinishReason : uint8_t {
  kStop,       // a stop token came
  kMaxTokens,  // there are as many as were asked for
  kLength,     // there are as many as the model takes
};

std::string_view Name(FinishReason reason);  // Returns "stop", "max_tokens" or "length".

// Goes on with a prompt, token by token, on the worker that computes it: each result gives the
// logits of the next token, which is sampled, told and read in turn.
class Generation : public Continuation {
 public:
  // Takes each token. It is called on the worker's thread, and must not block.
  using OnToken = std::function<void(int64_t token)>;

  // Returns OK if the model can generate; UNIMPLEMENTED says why not.
  static absl::Status Check(const ModelInfo& info);

  // Returns the prompt, with whatever the model takes beside it, as the first chunk of a session of
  // its own that generates. `id` differs from those of all other sessions of the caller. Returns
  // INVALID_ARGUMENT if the prompt is not valid. REQUIRES: Check() returned OK.
  static absl::StatusOr<Item> Begin(const ModelInfo& info, std::string id, TensorMap inputs,
                                    GenerationOptions options, OnToken on_token);

  // Begins with a first chunk that holds the first `read` tokens of the prompt.
  Generation(GenerationOptions options, std::string input, std::string output, Tensor prompt,
             int64_t read, int64_t room, OnToken on_token);

  int64_t Rows() const override { return prompt_.elements(); }
  std::optional<TensorMap> Next(const ItemResult& result) override;

  // Valid after the last result.
  FinishReason reason() const { return reason_; }
  int64_t generated() const { return generated_; }

 private:
  const GenerationOptions options_;
  const std::string input_;   // name of the input that takes the tokens
  const std::string output_;  // name of the output that has their logits
  const Tensor prompt_;
  int64_t read_;        // tokens of the prompt that were read
  const int64_t room_;  // tokens that the model takes after the prompt; 0: no limit
  const OnToken on_token_;
  TokenSampler sampler_;
  int64_t generated_ = 0;
  FinishReason reason_ = FinishReason::kMaxTokens;
};

}  // namespace linserve
