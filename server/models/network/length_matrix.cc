#include "models/network/length_matrix.h"

#include "attention/linformer/linformer_attention.h"
#include "attention/rows/aten.h"

namespace linserve {

void LengthMatrix::Declare(const Scope& scope, const std::string& name) {
  if (form_ == Form::kParameter) {
    return scope.Declare(name, loaded_, {length_, slots_}, Init::kNormal);
  }
  (scope / name).Declare("weight", loaded_, {slots_, length_}, Init::kNormal);
  if (form_ == Form::kLinearWithBias) {
    (scope / name).Declare("bias", bias_, {slots_}, Init::kZeros);
  }
}

void LengthMatrix::Prepare(DType products, bool by_blocks) {
  if (!loaded_.defined()) return;
  const bool length_first = form_ == Form::kParameter;
  if (by_blocks) {
    const at::Tensor slots_first = length_first ? loaded_.t() : loaded_;
    blocks_ = LengthWeights(slots_first.unsqueeze(0), {}, products);
  } else {
    matrix_ = WithAlignedRows(length_first ? loaded_ : loaded_.t().contiguous());
  }
  loaded_.reset();
  bias_.reset();
}

}  // namespace linserve
