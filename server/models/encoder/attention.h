#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "attention/blocks/block_attention.h"
#include "attention/rows/spans.h"
#include "models/encoder/options.h"
#include "models/network/joined_linear.h"
#include "models/network/layers.h"
#include "models/sessions/session_memory.h"
#include "models/sessions/session_plan.h"

namespace linserve::encoder {

// Holds what all layers need to know of a batch.
struct Context {
  PlacedLayout layout;
  at::Tensor mask;  // BOOL [rows], true = the key is visible; undefined: all
  // Holds sines and then cosines, F32 [longest of position_layout, dim_head]; undefined: no
  // rotation.
  at::Tensor rotation;
  // Holds the rows that tables of positions are for: those of each sequence, or all, if these are
  // chunks of sequences.
  PlacedLayout position_layout;
  std::shared_ptr<SessionMemory> memory;  // null: these are whole sequences
};

// Computes self-attention by any of the methods, with q, k, v without bias.
class Attention {
 public:
  // REQUIRES: it is not linformer's.
  explicit Attention(const Options& options);

  void Declare(const Scope& scope);
  at::Tensor operator()(const at::Tensor& rows, const Context& context) const;
  double Flops(int64_t length) const;

  // Says what it keeps of a sequence. REQUIRES: causal, a linear method.
  std::vector<StateSlot> State() const;

  // Says whether the batch is computed by AddByBlocks(). That takes packed weights and no session.
  bool WorksByBlocks(const Context& context) const;
  // Adds to the rows the attention of their norms, so that keys and queries never exist as a whole.
  // `then` follows on each block of them. REQUIRES: WorksByBlocks().
  void AddByBlocks(const at::Tensor& rows, const LayerNorm& norm, const Context& context,
                   const BlockStep& then) const;

 private:
  // Returns BOOL [rows]: which ones see any key; undefined without a mask.
  at::Tensor RowsThatSee(const Context& context) const;
  void AddSoftmax(const at::Tensor& rows, const LayerNorm& norm, const Context& context,
                  const BlockStep& then) const;

  // Attends to all keys and overwrites the queries with the result.
  void AttendToKeys(at::Tensor& queries, const at::Tensor& keys, const at::Tensor& values,
                    const Context& context) const;
  // Does what AttendToKeys() does for all sequences at once, where the device has a kernel for it.
  // False: nothing is done.
  bool AttendOnDevice(at::Tensor& queries, const at::Tensor& keys, const at::Tensor& values,
                      const Context& context) const;
  // Attends for the next rows of sequences whose earlier ones are in the context's memory, and
  // overwrites the queries.
  void Continue(at::Tensor& queries, const at::Tensor& keys, const at::Tensor& values,
                const Context& context) const;

  Options options_;
  Linear to_q_, to_k_, to_v_, to_out_;
  JoinedLinear qkv_;
  BlockAttention softmax_;
};

}  // namespace linserve::encoder
