#include "engine/generation/token_sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace linserve {
namespace {

float Number(float logit) {
  return std::isnan(logit) ? -std::numeric_limits<float>::infinity() : logit;
}

// Puts the likelier one first, of two equal ones the lower.
bool Before(const std::pair<float, int64_t>& a, const std::pair<float, int64_t>& b) {
  return a.first != b.first ? a.first > b.first : a.second < b.second;
}

int64_t Likeliest(const float* logits, int64_t count) {
  int64_t best = 0;
  for (int64_t i = 1; i < count; ++i) {
    if (Number(logits[i]) > Number(logits[best])) best = i;
  }
  return best;
}

}  // namespace

int64_t TokenSampler::Sample(const float* logits, int64_t count) {
  const int64_t likeliest = Likeliest(logits, count);
  largest_ = Number(logits[likeliest]);
  if (options_.temperature == 0 || std::isinf(largest_)) return likeliest;
  candidates_.clear();
  for (int64_t i = 0; i < count; ++i) candidates_.emplace_back(Number(logits[i]), i);
  if (options_.top_k > 0 && options_.top_k < count) KeepTopK();
  if (options_.top_p < 1) KeepTopP();
  double lot = Uniform() * Sum();
  size_t chosen = 0;
  while (chosen + 1 < candidates_.size() && lot >= Weight(candidates_[chosen])) {
    lot -= Weight(candidates_[chosen++]);
  }
  return candidates_[chosen].second;
}

void TokenSampler::KeepTopK() {
  const auto end = candidates_.begin() + options_.top_k;
  std::nth_element(candidates_.begin(), end - 1, candidates_.end(), Before);
  candidates_.erase(end, candidates_.end());
  std::sort(candidates_.begin(), candidates_.end(), Before);
}

// A heap is used because as a rule few of many candidates are kept.
void TokenSampler::KeepTopP() {
  const auto later = [](const Candidate& a, const Candidate& b) { return Before(b, a); };
  const double wanted = options_.top_p * Sum();
  std::vector<Candidate> kept;
  std::make_heap(candidates_.begin(), candidates_.end(), later);
  for (double sum = 0; sum < wanted && !candidates_.empty(); sum += Weight(kept.back())) {
    std::pop_heap(candidates_.begin(), candidates_.end(), later);
    kept.push_back(candidates_.back());
    candidates_.pop_back();
  }
  candidates_ = std::move(kept);
}

double TokenSampler::Weight(const Candidate& candidate) const {
  return std::exp((static_cast<double>(candidate.first) - largest_) / options_.temperature);
}

double TokenSampler::Sum() const {
  double sum = 0;
  for (const Candidate& candidate : candidates_) sum += Weight(candidate);
  return sum;
}

// Draws from [0, 1) by hand: the standard's distributions differ from library to library.
double TokenSampler::Uniform() { return static_cast<double>(random_() >> 11) * 0x1.0p-53; }

}  // namespace linserve
