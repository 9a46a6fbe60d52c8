#pragma once

#include <cstdint>
#include <random>
#include <utility>
#include <vector>

namespace linserve {

// Says how the next token is chosen by its logits.
struct SamplingOptions {
  double temperature = 0;  // 0: the likeliest token, whatever the others say
  int64_t top_k = 0;       // among so many likeliest ones; 0: all
  double top_p = 1;        // among the likeliest ones that make up so much of the probability
  uint64_t seed = 0;
};

// Chooses tokens one after another. The choice is the same for equal options and logits,
// everywhere. Not thread-safe.
class TokenSampler {
 public:
  // REQUIRES: temperature >= 0, top_k >= 0, 0 < top_p <= 1.
  explicit TokenSampler(const SamplingOptions& options)
      : options_(options), random_(options.seed) {}

  // Chooses by logits [count], count >= 1. Of equal logits the first is chosen; NaN is never chosen
  // beside a number.
  int64_t Sample(const float* logits, int64_t count);

 private:
  using Candidate = std::pair<float, int64_t>;  // logit and token

  void KeepTopK();
  void KeepTopP();
  double Weight(const Candidate& candidate) const;  // its probability, but for a common factor
  double Sum() const;                               // of all weights
  double Uniform();

  const SamplingOptions options_;
  std::mt19937_64 random_;
  double largest_ = 0;  // the largest logit
  std::vector<Candidate> candidates_;
};

}  // namespace linserve
