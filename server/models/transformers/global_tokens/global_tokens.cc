#include "models/transformers/global_tokens/global_tokens.h"

#include <algorithm>
#include <cmath>

#include "attention/blocks/block_attention.h"
#include "attention/rows/aten.h"

namespace linserve::transformers {
namespace {

// Collects the tokens of a batch, sequence by sequence.
class Collected {
 public:
  Collected(const GlobalRule& rule, const at::Tensor& visible, const at::Tensor& asked,
            double scale)
      : rule_(rule),
        visible_(OnHost(visible)),
        asked_(OnHost(asked)),
        weighed_(static_cast<float>(std::log(static_cast<double>(rule.weight)) / scale)) {}

  void Add(int64_t start, int64_t length) {
    if (rule_.block > 0) return AddBlocks(start, length);
    if (!asked_.defined()) {
      if (rule_.first) Add(start, 0, 0);
      return;
    }
    const bool* asked = asked_.const_data_ptr<bool>() + start;
    for (int64_t place = 0; place < length; ++place) {
      if (asked[place]) Add(start, place, 0);
    }
  }

  int64_t size() const { return std::ssize(places_); }
  at::Tensor places() const { return at::tensor(places_, at::kLong); }
  at::Tensor rows() const { return at::tensor(rows_, at::kLong); }
  at::Tensor scores() const { return at::tensor(scores_, at::kFloat); }

 private:
  static at::Tensor OnHost(const at::Tensor& mask) {
    return mask.defined() ? mask.cpu().contiguous() : mask;
  }

  void AddBlocks(int64_t start, int64_t length) {
    const int64_t last = (length - 1) / rule_.block * rule_.block;
    for (int64_t place = 0; place < rule_.block; ++place) Add(start, place, weighed_);
    for (int64_t place = last; place < length; ++place) Add(start, place, 0);
  }

  void Add(int64_t start, int64_t place, float score) {
    if (visible_.defined() && !visible_.const_data_ptr<bool>()[start + place]) return;
    places_.push_back(place);
    rows_.push_back(start + place);
    scores_.push_back(score);
  }

  const GlobalRule& rule_;
  at::Tensor visible_, asked_;  // on the host
  float weighed_;
  std::vector<int64_t> places_, rows_;
  std::vector<float> scores_;
};

}  // namespace

bool GlobalTokens::all_whole() const {
  return std::all_of(whole.begin(), whole.end(), [](bool one) { return one; });
}

std::optional<GlobalTokens> FindGlobalTokens(const GlobalRule& rule, const PlacedLayout& layout,
                                             const at::Tensor& ids, const at::Tensor& visible,
                                             const at::Tensor& asked, double scale) {
  if (!rule.defined()) return std::nullopt;
  Collected found(rule, visible, asked, scale);
  GlobalTokens tokens;
  for (size_t i = 0; i < layout.starts.size(); ++i) {
    const int64_t length = layout.lengths[i];
    tokens.whole.push_back(length <= rule.whole);
    if (!tokens.whole[i]) found.Add(layout.starts[i], length);
    tokens.bounds.push_back(found.size());
  }
  if (rule.block == 0 && !visible.defined() && found.size() == 0) return std::nullopt;
  const at::Device device = ids.device();
  tokens.places = found.places().to(device);
  tokens.rows = found.rows().to(device);
  tokens.scores = found.scores().to(device);
  tokens.of_keys = visible.defined() ? BlockAttention::ScoresOfKeys(visible)
                                     : at::zeros({ids.size(0)}, tokens.scores.options());
  tokens.of_keys.index_fill_(0, tokens.rows, BlockAttention::kHidden);
  return tokens;
}

}  // namespace linserve::transformers
