#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "attention/rows/placed_layout.h"
#include "core/sequence/batch.h"
#include "core/sequence/signature.h"
#include "models/config/class_labels.h"
#include "models/network/parameters.h"
#include "models/sessions/session_memory.h"
#include "models/sessions/session_plan.h"

namespace linserve {

// Is a batch on the device: what Batch holds, as LibTorch tensors. Floats and attention masks are
// of the type that the model computes in.
struct TensorBatch {
  Padding padding = Padding::kPacked;
  int64_t size = 0;  // sequences
  std::map<std::string, at::Tensor> inputs;
  std::map<char, PlacedLayout> axes;
  // Holds the sessions of the sequences, if these are the next chunks of them; else null.
  std::shared_ptr<SessionMemory> memory{};

  bool Has(const std::string& input) const { return inputs.contains(input); }
  const at::Tensor& operator[](const std::string& input) const { return inputs.at(input); }
  // Returns the input of this name; undefined if the batch has none.
  at::Tensor Find(const std::string& input) const {
    return Has(input) ? inputs.at(input) : at::Tensor();
  }
};

// Is one forward pass of a network. Exceptions pass through; the Model boundary turns them into a
// status.
class Pass {
 public:
  virtual ~Pass() = default;

  // Computes the next layer; false once there is none left.
  virtual bool Step() = 0;

  // Returns a part of an output by its name in the signature. Along the first of its axes whose
  // letter is in batch.axes the output is laid out as the batch's inputs are, and this is [begin,
  // end) of it; an output without such an axis is [batch, ...], and this is sequences [begin, end)
  // of it. It is called for all outputs that are asked for and no others; what is dear (logits)
  // should be computed here, for these rows only. REQUIRES: Step() returned false.
  virtual at::Tensor Output(const std::string& name, int64_t begin, int64_t end) = 0;
};

// Holds what a network says of itself at load and to `linserve inspect`.
struct NetworkNotes {
  std::vector<std::pair<std::string, std::string>> facts;  // "projections": "24 distinct matrices"
  std::vector<std::string> warnings;
};

// Is one architecture with one set of constructor arguments: its tensors under the Python package's
// names, and what it computes. Adding one takes a class like this, a row in registry.cc and
// goldens.
class Network {
 public:
  virtual ~Network() = default;

  // Called once, before anything else; the network stays where it is from then on. What brings the
  // tensors into the form that the computation wants is given to Scope::AfterLoading().
  virtual void Declare(const Scope& scope) = 0;

  virtual Signature signature() const = 0;

  // Counts additions and multiplications of one forward pass over a sequence of `length` (of every
  // letter), or over an image of as many pixels; all outputs.
  virtual double Flops(int64_t length) const = 0;

  // Returns the number of steps that a pass takes.
  virtual int64_t Layers() const { return 1; }
  // Returns how many elements of its parameters it keeps twice on the CPU.
  virtual int64_t Copies() const { return 0; }

  virtual NetworkNotes Notes() const { return {}; }

  virtual ClassLabels Labels() const { return {}; }

  // Says what a session keeps. A pass over a batch with memory reads and rewrites each slot of it
  // once.
  virtual SessionPlan Sessions() const {
    return SessionPlan::Refused("its attention needs the whole input");
  }

  // Says whether a pass over padded sequences on a device gives right rows if it was recorded for
  // other lengths, since it takes the lengths from the layouts' tables wherever they matter.
  virtual bool Recordable() const { return false; }

  // Says whether this input, a mask, changes nothing where it is true in all rows of a batch, so
  // that it is left out.
  virtual bool LeavesOutFullMask(const std::string& /*input*/) const { return false; }

  virtual std::unique_ptr<Pass> Begin(TensorBatch batch) const = 0;
};

// Returns the signature that encoders of the package `transformers` begin with: token ids, and what
// hides some of them, become rows of this width.
inline Signature SignatureOfEncoder(int64_t vocabulary, int64_t width) {
  const Axis length = Axis::Ragged('n');
  Signature signature;
  signature.inputs = {
      {.name = "x", .kind = InputKind::kToken, .axes = {length}, .vocabulary = vocabulary},
      {.name = "attention_mask", .kind = InputKind::kMask, .axes = {length}, .optional = true}};
  signature.outputs = {{.name = "last_hidden_state",
                        .axes = {length, Axis::Fixed(width)},
                        .mask = "attention_mask"}};
  return signature;
}

}  // namespace linserve
