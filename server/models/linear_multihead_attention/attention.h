#pragma once

#include <cstdint>
#include <string>

#include "attention/blocks/block_slots.h"
#include "attention/rows/placed_layout.h"
#include "models/config/params.h"
#include "models/network/layers.h"
#include "models/network/network.h"

namespace linserve::linear_multihead_attention {

struct AttentionOptions {
  int64_t embed_dim = 0;
  int64_t num_heads = 0;
  int64_t kdim = 0;
  int64_t vdim = 0;
  int64_t seq_len = 512;
  int64_t proj_k = 128;
  std::string param_sharing = "none";  // layerwise: E is F; all other words mean none
  bool bias = true;
  bool add_bias_kv = false;
  bool add_zero_attn = false;
  bool package_layout = false;

  // Reads and checks the arguments of the class itself.
  static AttentionOptions From(Params& params);

  // Reads proj_k, param_sharing and projection_layout, which all that is built of the class takes.
  void ReadProjection(Params& params, const std::string& default_layout);

  // Returns how many rows of keys it takes at most; in the package's layout it takes these and no
  // fewer.
  int64_t longest() const { return seq_len - (add_bias_kv ? 1 : 0); }
  int64_t slots() const { return proj_k + (add_zero_attn ? 1 : 0); }
  LengthLimit Limit(char letter) const;
  void AddTo(NetworkNotes& notes) const;
};

// Is linear_multihead_attention.LinearMultiheadAttention: torch.nn.MultiheadAttention with keys and
// values projected along the length by E and F (proj_k, seq_len).
class Attention {
 public:
  // Holds rows of a batch, laid out each by its own layout. Undefined masks are none.
  struct Inputs {
    at::Tensor query;
    at::Tensor key;
    at::Tensor value;
    const PlacedLayout& layout;
    const PlacedLayout& key_layout;
    at::Tensor key_padding_mask{};  // [key rows], true: this row is no key
    at::Tensor attn_mask{};         // [batch, heads, length, proj_k], added to the scores
  };

  // Says what attends to what, heads side by side: queries [rows, embed_dim], slots [batch, slots,
  // embed_dim].
  struct Projected {
    at::Tensor queries;
    at::Tensor keys;
    at::Tensor values;
    at::Tensor mask;
  };

  explicit Attention(const AttentionOptions& options);

  // With `by_blocks` it is laid out for AddByBlocks(), which then is all that may be called, if
  // WorksByBlocks() says so.
  void Declare(const Scope& scope, bool by_blocks = false);

  Projected Project(const Inputs& inputs) const;
  at::Tensor Attend(const Projected& projected, const PlacedLayout& layout) const;
  at::Tensor Forward(const Inputs& inputs) const { return Attend(Project(inputs), inputs.layout); }
  // Returns the weights that the slots get, averaged over the heads: [rows, slots].
  at::Tensor Weights(const Projected& projected, const PlacedLayout& layout) const;

  // Holds rows of a batch: values are made of them as they are, queries and keys with positions.
  struct Side {
    NormedRows rows;  // [rows, embed_dim]
    const PlacedLayout& layout;
    at::Tensor position{};      // [rows, embed_dim]; undefined: zeros
    at::Tensor padding_mask{};  // [rows], true: this row is no key; undefined: all are
  };

  // Adds the attention of x to its source to the target, and calls `then` for each block of x's
  // rows. All three may be the same rows. REQUIRES: WorksByBlocks().
  void AddByBlocks(const at::Tensor& target, const Side& x, const Side& source,
                   const BlockStep& then) const;
  bool WorksByBlocks() const { return e_blocks_.defined(); }

  // Counts additions and multiplications for one sequence of `queries` rows and `keys` rows of
  // keys.
  double Flops(int64_t queries, int64_t keys) const;

 private:
  // Gives queries, keys and values their weights and biases of the checkpoint's tensors.
  void ShareOut();
  // Makes slots [batch, slots, embed_dim] of keys or values by a projection [seq_len,
  // proj_k]. Overwrites `rows`.
  at::Tensor ToSlots(at::Tensor& rows, const Inputs& inputs, const at::Tensor& projection,
                     const at::Tensor& bias, const at::Tensor& last_row) const;
  // Says whether blocks of rows can do what the options ask for.
  bool TakesBlocks() const;
  // Lays E and F out for blocks of rows, or else for rows as a tensor.
  void PrepareProjections(DType products, bool by_blocks);
  // Makes slots of the rows of one sequence of the source.
  void ProjectSource(const Side& source, size_t sequence, BlockSlots& slots) const;

  AttentionOptions options_;
  bool one_in_proj_;                          // one in_proj_weight for q, k and v
  at::Tensor in_proj_weight_, in_proj_bias_;  // until they are loaded
  Linear query_, key_, value_;
  at::Tensor e_proj_weight_, f_proj_weight_;  // once loaded [seq_len, proj_k]
  at::Tensor bias_e_, bias_f_, bias_k_, bias_v_;
  LengthWeights e_blocks_, f_blocks_;  // in place of E and F
  Linear out_proj_;
};

}  // namespace linserve::linear_multihead_attention
