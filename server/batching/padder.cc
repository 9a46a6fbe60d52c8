#include "batching/padder.h"

#include <algorithm>
#include <utility>

#include "batching/gather.h"

namespace linserve {
namespace {

constexpr int64_t kSmallestBucket = 16;

// Returns the smallest of 16, 24, 32, 48, 64, 96, ... that is at least `length`: past the smallest
// bucket, never more than half of `length` is added.
int64_t DefaultBucket(int64_t length) {
  int64_t bucket = kSmallestBucket;
  while (bucket < length) {
    if (bucket + bucket / 2 >= length) return bucket + bucket / 2;
    bucket *= 2;
  }
  return bucket;
}

// Lays out tensors without a letter: they are stacked, so that item i is row i.
AxisLayout StackedLayout(size_t count) {
  AxisLayout layout;
  layout.rows = static_cast<int64_t>(count);
  for (size_t i = 0; i < count; ++i) {
    layout.starts.push_back(static_cast<int64_t>(i));
    layout.lengths.push_back(1);
  }
  return layout;
}

}  // namespace

Padder::Padder(Signature signature, Padding padding, std::vector<int64_t> buckets)
    : signature_(std::move(signature)), padding_(padding), buckets_(std::move(buckets)) {}

Padding Padder::PaddingOf(const Item& item) const {
  return item.session == nullptr ? padding_ : Padding::kPacked;
}

int64_t Padder::PaddedLength(const Item& item, char letter) const {
  const int64_t length = LengthOf(signature_, item, letter);
  if (RigidLetters(signature_, item).find(letter) != std::string::npos) return length;
  const int64_t longest = LongestFor(signature_, item, letter);
  switch (PaddingOf(item)) {
    case Padding::kPacked:
      return length;
    case Padding::kBucket: {
      const auto bucket = std::lower_bound(buckets_.begin(), buckets_.end(), length);
      int64_t padded = bucket != buckets_.end() ? *bucket : DefaultBucket(length);
      if (!buckets_.empty() && bucket == buckets_.end() && longest > 0) padded = longest;
      return longest > 0 ? std::min(padded, longest) : padded;
    }
    case Padding::kFixed:
    case Padding::kZeros:
      return longest > 0 ? longest : DefaultBucket(length);
  }
  return length;
}

AxisLayout Padder::Layout(char letter, const std::vector<const Item*>& items) const {
  const bool packed = PaddingOf(*items[0]) == Padding::kPacked;
  std::vector<int64_t> lengths;
  int64_t padded_length = 0;
  for (const Item* item : items) {
    lengths.push_back(LengthOf(signature_, *item, letter));
    if (!packed) padded_length = std::max(padded_length, PaddedLength(*item, letter));
  }
  return LayOut(std::move(lengths), padded_length);
}

Batch Padder::Pad(const std::vector<const Item*>& items, const TensorAllocator& allocate) const {
  Batch batch;
  batch.padding = PaddingOf(*items[0]);
  for (const Item* item : items) {
    batch.options.push_back(item->options);
    if (item->session != nullptr) batch.sessions.push_back(item->session);
  }
  for (char letter : LaidOutLetters(signature_, *items[0])) {
    batch.axes[letter] = Layout(letter, items);
  }
  for (const Item* item : items) {
    batch.rows += Cost(*item);
    batch.padding_rows += Cost(*item) - PackedRows(signature_, *item);
  }
  for (const InputSpec& spec : signature_.inputs) {
    if (!items[0]->inputs.contains(spec.name)) continue;
    const char letter = spec.axes.empty() ? '\0' : spec.axes[0].letter;
    const AxisLayout layout = letter == '\0' ? StackedLayout(items.size()) : batch.axes.at(letter);
    batch.inputs[spec.name] = Gather(spec, layout, items, allocate);
  }
  return batch;
}

std::string Padder::Key(const Item& item) const {
  std::string key = BatchKey(signature_, item);
  if (PaddingOf(item) == Padding::kPacked) return key;
  for (char letter : LaidOutLetters(signature_, item)) {
    key += '/';
    key += std::to_string(PaddedLength(item, letter));
  }
  return key;
}

int64_t Padder::Cost(const Item& item) const {
  int64_t cost = 0;
  for (char letter : LaidOutLetters(signature_, item)) {
    if (CountsAsRows(signature_, item, letter)) cost += PaddedLength(item, letter);
  }
  return cost > 0 ? cost : PackedRows(signature_, item);
}

}  // namespace linserve
