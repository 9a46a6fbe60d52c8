#include "models/linear_attention_transformer/autopadder.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "attention/rows/aten.h"
#include "models/config/wrappers.h"

namespace linserve::linear_attention_transformer {
namespace {

// The shortest sequence is computed as if it had so many rows.
constexpr int64_t kMostMultiple = 2048;

// Returns the sequences' rows in their places in another layout, zeros elsewhere.
at::Tensor Moved(const at::Tensor& rows, const PlacedLayout& from, const PlacedLayout& to) {
  std::vector<int64_t> shape = rows.sizes().vec();
  shape[0] = to.rows;
  at::Tensor moved = at::zeros(shape, rows.options());
  for (size_t i = 0; i < from.starts.size(); ++i) {
    moved.narrow(0, to.starts[i], to.lengths[i])
        .copy_(rows.narrow(0, from.starts[i], from.lengths[i]));
  }
  return moved;
}

}  // namespace

Autopadder Autopadder::From(Params& params, const Options& options, int64_t longest) {
  Autopadder autopadder;
  Params* wrapper = params.Wrapper(kAutopadder);
  if (wrapper == nullptr) return autopadder;
  autopadder.left = wrapper->Flag("pad_left", false);
  autopadder.longest = longest;
  // The package leaves the window of attend_axially out of this multiple.
  autopadder.multiple = std::lcm(options.causal ? options.blindspot_size : 1,
                                 options.has_local_heads() ? options.local_attn_window_size : 1);
  if (autopadder.multiple > kMostMultiple) {
    params.Fail(options.has_local_heads() ? "local_attn_window_size" : "blindspot_size",
                "at most " + std::to_string(kMostMultiple) +
                    " rows, or as many together with blindspot_size: the Autopadder pads every "
                    "sequence to a multiple of it");
  }
  return autopadder;
}

std::string Autopadder::SessionRefusal() const {
  if (!pads() || !left) return "";
  return "the Autopadder pads on the left, by as many rows as the whole length asks for";
}

void Autopadder::Describe(NetworkNotes& notes) const {
  if (!pads()) return;
  notes.facts.emplace_back("autopadder", "each sequence to a multiple of " +
                                             std::to_string(multiple) + " rows, on the " +
                                             (left ? "left" : "right"));
}

Autopadded::Autopadded(const Autopadder& autopadder, const PlacedLayout& layout)
    : layout_(layout), padded_(autopadder.pads()) {
  if (!padded_) return;
  for (int64_t length : layout.lengths) {
    const int64_t multiple = autopadder.multiple;
    int64_t whole = (length + multiple - 1) / multiple * multiple;
    // The package fails where the network takes fewer rows; the rest of the padding is masked.
    if (autopadder.longest > 0) whole = std::min(whole, std::max(autopadder.longest, length));
    whole_.starts.push_back(whole_.rows);
    whole_.lengths.push_back(whole);
    own_.starts.push_back(whole_.rows + (autopadder.left ? whole - length : 0));
    own_.lengths.push_back(length);
    whole_.rows += whole;
  }
  own_.rows = whole_.rows;
}

at::Tensor Autopadded::Pad(const at::Tensor& rows) const {
  return padded_ ? Moved(rows, layout_, own_) : rows;
}

MaskedLayout Autopadded::Pad(const at::Tensor& mask, const at::TensorOptions& options) const {
  if (!padded_) return {layout_, mask};
  const at::Tensor given =
      mask.defined() ? mask : at::ones({layout_.rows}, options.dtype(at::kBool));
  MaskedLayout masked{whole_, Moved(given, layout_, own_)};
  for (size_t i = 0; !mask.defined() && i < own_.lengths.size(); ++i) {
    masked.padded.push_back(own_.lengths[i] < whole_.lengths[i]);
  }
  return masked;
}

at::Tensor Autopadded::Cut(const at::Tensor& rows) const {
  return padded_ ? Moved(rows, own_, layout_) : rows;
}

}  // namespace linserve::linear_attention_transformer
