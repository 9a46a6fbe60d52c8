#include "models/tokens/token_positions.h"

#include <string>
#include <utility>

#include "attention/positions/positions.h"
#include "attention/rows/aten.h"

namespace linserve {
namespace {

void DeclareSinusoid(const Scope& scope, at::Tensor& slot, int64_t length, int64_t width) {
  constexpr double kBase = 10000;
  scope.DeclareBuffer("emb", slot, {length, width},
                      [length, width] { return Sinusoid(length, width, kBase); });
}

}  // namespace

TokenPositions::TokenPositions(PositionOptions options)
    : options_(std::move(options)), axes_(options_.axial_shape.size()) {}

void TokenPositions::Declare(const Scope& scope) {
  const Scope positions = scope / "pos_emb";
  switch (options_.kind) {
    case PositionOptions::Kind::kNone:
      break;
    case PositionOptions::Kind::kRotary:
      DeclareSinusoid(positions, table_, options_.longest, options_.width);
      DeclareSinusoid(scope / "layer_pos_emb", head_table_, options_.longest, options_.head_width);
      break;
    case PositionOptions::Kind::kLearned:
      (positions / "emb")
          .Declare("weight", table_, {options_.longest, options_.width}, Init::kNormal);
      break;
    case PositionOptions::Kind::kAxial:
      for (size_t i = 0; i < axes_.size(); ++i) {
        std::vector<int64_t> shape(axes_.size() + 2, 1);
        shape[i + 1] = options_.axial_shape[i];
        shape.back() = options_.width;
        // The second name is that up to axial-positional-embedding 0.2.
        for (const char* name : {"weights.", "weights_"}) {
          positions.Declare(name + std::to_string(i), axes_[i], shape, Init::kNormal);
        }
      }
      positions.AfterLoading([this](DType) { PrepareAxes(); });
      break;
  }
}

void TokenPositions::PrepareAxes() {
  coarse_ = at::zeros({options_.width}, axes_[0].options());
  for (size_t i = 0; i + 1 < axes_.size(); ++i) coarse_ = coarse_ + axes_[i];
  coarse_ = coarse_.reshape({-1, options_.width});
}

void TokenPositions::AddTo(at::Tensor& rows, const Sequences& sequences) const {
  if (options_.kind == PositionOptions::Kind::kNone) return;
  const PlacedLayout& layout = sequences.own.layout;
  if (options_.kind != PositionOptions::Kind::kAxial) {
    if (!sequences.memory) return AddPositions(rows, layout, table_);
    rows.add_(table_.index_select(0, sequences.memory->row_positions()));
    return;
  }
  const at::Tensor fine = axes_.back().view({-1, options_.width});
  if (!sequences.memory) return AddAxialPositions(rows, layout, coarse_, fine);
  const at::Tensor& positions = sequences.memory->row_positions();
  rows.add_(coarse_.index_select(0, positions.div(fine.size(0), "floor")));
  rows.add_(fine.index_select(0, positions.remainder(fine.size(0))));
}

at::Tensor TokenPositions::RotaryOf(const Sequences& sequences) const {
  if (!sequences.memory || !head_table_.defined()) return head_table_;
  return head_table_.index_select(0, sequences.memory->row_positions());
}

}  // namespace linserve
