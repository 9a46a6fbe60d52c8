#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <memory>
#include <string>

#include "core/batch.h"
#include "core/signature.h"
#include "models/parameters.h"

namespace linserve {

// A batch on the device: what Batch holds, as LibTorch tensors.
struct TensorBatch {
  Padding padding = Padding::kPacked;
  std::map<std::string, at::Tensor> inputs;
  std::map<char, AxisLayout> axes;

  bool Has(const std::string& input) const { return inputs.contains(input); }
  const at::Tensor& operator[](const std::string& input) const { return inputs.at(input); }
};

// One forward pass of a network. Exceptions pass through; the Model boundary turns them into a
// status.
class Pass {
 public:
  virtual ~Pass() = default;

  // Computes the next layer; false once there is none left.
  virtual bool Step() = 0;

  // An output by its name in the signature, laid out like the batch's inputs of the same letter.
  // REQUIRES: Step() returned false. Computed only when asked for.
  virtual at::Tensor Output(const std::string& name) = 0;
};

// One architecture with one set of constructor arguments: its tensors under the Python package's
// names, and what it computes. Adding one is a class like this, a row in registry.cc and goldens.
class Network {
 public:
  virtual ~Network() = default;

  // Called once, before anything else; the network stays where it is from then on.
  virtual void Declare(const Scope& scope) = 0;

  virtual Signature signature() const = 0;

  // Additions and multiplications of one forward pass over a sequence of `length`, all outputs.
  virtual double Flops(int64_t length) const = 0;

  virtual std::unique_ptr<Pass> Begin(TensorBatch batch) const = 0;
};

}  // namespace linserve
