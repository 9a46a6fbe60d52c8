#include "models/network/joined_linear.h"

#include "attention/rows/aten.h"

namespace linserve {

void JoinedLinear::Join(const std::vector<Linear*>& layers) {
  if (!layers_.empty()) return;  // declared twice: shared by two modules
  std::vector<at::Tensor> weights;
  for (const Linear* layer : layers) {
    if (!layer->packed && !layer->weight.defined()) continue;
    layers_.push_back(layer);
    if (layer->weight.defined()) weights.push_back(layer->weight);
  }
  if (weights.empty()) return;
  weight_ = at::cat(weights);
  JoinBiases();
  int64_t row = 0;
  for (Linear* layer : layers) {
    if (!layer->weight.defined()) continue;
    layer->weight = weight_.narrow(0, row, layer->outputs);
    row += layer->outputs;
  }
}

void JoinedLinear::JoinBiases() {
  bool any = false;
  std::vector<at::Tensor> biases;
  for (const Linear* layer : layers_) {
    any = any || layer->with_bias;
    biases.push_back(layer->with_bias ? layer->bias
                                      : at::zeros({layer->outputs}, weight_.options()));
  }
  if (any) bias_ = at::cat(biases);
}

std::vector<at::Tensor> JoinedLinear::operator()(const at::Tensor& x) const {
  std::vector<at::Tensor> results;
  if (!weight_.defined()) {
    for (const Linear* layer : layers_) results.push_back((*layer)(x));
    return results;
  }
  const at::Tensor joined = at::linear(x, weight_, bias_);
  int64_t column = 0;
  for (const Linear* layer : layers_) {
    results.push_back(joined.narrow(1, column, layer->outputs));
    column += layer->outputs;
  }
  return results;
}

}  // namespace linserve
