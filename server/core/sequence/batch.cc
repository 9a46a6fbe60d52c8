#include "core/sequence/batch.h"

#include <array>
#include <utility>

namespace linserve {
namespace {

constexpr std::array<std::string_view, 5> kReasonNames = {"full", "delay", "idle", "length",
                                                          "drain"};

}  // namespace

std::string_view Name(Padding padding) { return kPaddingNames[static_cast<size_t>(padding)]; }

std::string_view Name(CloseReason reason) { return kReasonNames[static_cast<size_t>(reason)]; }

AxisLayout LayOut(std::vector<int64_t> lengths, int64_t padded_length) {
  AxisLayout layout;
  layout.padded_length = padded_length;
  for (const int64_t length : lengths) {
    layout.starts.push_back(layout.rows);
    layout.rows += padded_length > 0 ? padded_length : length;
  }
  layout.lengths = std::move(lengths);
  return layout;
}

Tensor Crop(const AxisLayout& layout, const Tensor& rows, size_t index) {
  return rows.Rows(layout.starts[index], layout.starts[index] + layout.lengths[index]);
}

}  // namespace linserve
