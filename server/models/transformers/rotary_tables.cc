#include "models/transformers/rotary_tables.h"

#include "attention/positions/positions.h"
#include "attention/positions/rotary_frequencies.h"
#include "attention/rows/aten.h"
#include "models/transformers/names.h"

namespace linserve::transformers {
namespace {

// Makes all rows as the package does, which rounds them once.
at::Tensor ExactSinusoid(int64_t length, int64_t width, double base) {
  const at::TensorOptions doubles = at::TensorOptions().dtype(at::kDouble);
  const at::Tensor exponents = at::arange(0, width, 2, doubles).div(static_cast<double>(width));
  const at::Tensor angles = at::outer(at::arange(length, doubles), at::pow(base, -exponents));
  return at::cat({angles.sin(), angles.cos()}, 1).to(at::kFloat);
}

}  // namespace

void RotaryTables::Declare(const Scope& scope) {
  if (options_.table == PositionTable::kNone) return;
  if (options_.table == PositionTable::kFrequencies) return DeclareFrequencies(scope);
  const double theta = options_.layers.front().theta;
  (scope / "encoder" / "embed_positions")
      .DeclareBuffer("weight", rows_, {options_.longest, options_.dim_head()}, [this, theta] {
        return ExactSinusoid(options_.longest, options_.dim_head(), theta);
      });
}

// Older files have the frequencies in each layer.
void RotaryTables::DeclareFrequencies(const Scope& scope) {
  const RotaryFrequencies usual{.theta = options_.layers.front().theta};
  const auto declare = [&](const Scope& at) {
    (at / "rotary_embeddings")
        .DeclareBuffer("inv_freq", frequencies_, {options_.dim_head() / 2},
                       [this, usual] { return FrequenciesOf(usual, options_.dim_head()); });
  };
  declare(scope);
  const Scope layers = scope / NamesOf(options_.family).layers;
  declare(layers / "*" / "attention.self");  // as the package writes it
  for (int64_t i = 0; i < std::ssize(options_.layers); ++i) declare(layers / i / "attention.self");
}

std::map<double, at::Tensor> RotaryTables::operator()(int64_t longest,
                                                      const at::TensorOptions& floats) const {
  std::map<double, at::Tensor> tables;
  for (const LayerKind& layer : options_.layers) {
    if (layer.theta == 0 || tables.contains(layer.theta)) continue;
    tables[layer.theta] = Make(layer.theta, longest, floats);
  }
  return tables;
}

at::Tensor RotaryTables::Make(double theta, int64_t longest,
                              const at::TensorOptions& floats) const {
  if (rows_.defined()) {
    // Rows of padding may be beyond the table.
    const int64_t missing = longest - rows_.size(0);
    return missing > 0 ? at::constant_pad_nd(rows_, {0, 0, 0, missing}) : rows_;
  }
  const at::Tensor positions = at::arange(longest, floats);
  if (frequencies_.defined()) return Sinusoid(positions, frequencies_);
  return Sinusoid(positions, options_.dim_head(), theta, options_.stretch);
}

}  // namespace linserve::transformers
