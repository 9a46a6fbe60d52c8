#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "models/network/layers.h"

namespace linserve {

// Computes several linear layers of the same rows: by one product on a device, which reads the rows
// once; layer by layer where their weights are packed.
class JoinedLinear {
 public:
  // Takes over the layers that have weights: these become views of joined ones. The layers must
  // stay where they are.
  void Join(const std::vector<Linear*>& layers);

  // Returns what each layer makes of x [rows, inputs], as [rows, outputs]: on a device as views of
  // one tensor.
  std::vector<at::Tensor> operator()(const at::Tensor& x) const;

 private:
  void JoinBiases();

  std::vector<const Linear*> layers_;
  at::Tensor weight_;  // of all layers
  at::Tensor bias_;    // undefined: none has one
};

}  // namespace linserve
