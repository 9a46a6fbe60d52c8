#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "attention/spans.h"
#include "models/attention_method.h"
#include "models/layers.h"
#include "models/params.h"
#include "models/session_memory.h"

namespace linserve {

enum class EncoderPositions : uint8_t { kNone, kLearned, kSinusoidal, kRotary };

struct EncoderOptions {
  std::optional<AttentionMethod> method;  // nullopt: linformer
  int64_t dim = 0;
  int64_t depth = 0;
  int64_t heads = 8;
  int64_t dim_head = 0;
  int64_t ff_mult = 4;
  bool causal = false;
  int64_t seq_len = 0;  // of linformer
  int64_t k = 0;
  std::optional<int64_t> num_tokens;  // nullopt: rows of floats
  EncoderPositions positions = EncoderPositions::kNone;
  std::optional<int64_t> max_seq_len;

  // Reads and checks the arguments of linserve.Encoder.
  static EncoderOptions From(Params& params);

  bool linformer() const { return !method.has_value(); }
  int64_t inner() const { return heads * dim_head; }

  // Why the network has no sessions; empty if it has.
  std::string SessionRefusal() const;
};

// What all layers need to know of a batch.
struct EncoderContext {
  AxisLayout layout;
  at::Tensor mask;  // BOOL [rows], true = the key is visible; undefined: all
  // F32 [longest of position_layout, dim_head]: sines, then cosines; undefined: none.
  at::Tensor rotation;
  // The rows that tables of positions are for: those of each sequence, or all, if the sequences
  // have been read in part.
  AxisLayout position_layout;
  std::shared_ptr<SessionMemory> memory;  // null: these are whole sequences
};

// Self-attention by any of the methods, with q, k, v without bias.
class EncoderAttention {
 public:
  explicit EncoderAttention(const EncoderOptions& options);

  void Declare(const Scope& scope);
  at::Tensor operator()(const at::Tensor& rows, const EncoderContext& context) const;
  double Flops(int64_t length) const;

  // What it keeps of a sequence. REQUIRES: causal, a linear method.
  std::vector<StateSlot> State() const;

  // Whether the batch is better computed by AddInParts(): a linear method, and a sequence that does
  // not fit the caches.
  bool WorksInParts(const EncoderContext& context) const;
  // rows += attention of their norms, sequence by sequence and part by part, so that keys and
  // queries never exist as a whole. Calls `then` for each part once it is done.
  void AddInParts(at::Tensor& rows, const LayerNorm& norm, const EncoderContext& context,
                  const std::function<void(const at::Tensor& part)>& then) const;

 private:
  // A part of one sequence, from its row `offset` on.
  struct Part {
    at::Tensor rows;
    at::Tensor normed;
    int64_t offset;
    at::Tensor mask;  // [1, rows], undefined: all
  };
  // Calls `function` for the parts of a sequence.
  static void ForParts(const at::Tensor& rows, int64_t sequence, const LayerNorm& norm,
                       const EncoderContext& context,
                       const std::function<void(const Part&)>& function);
  // [heads, rows, dim_head] of a part by one of the projections, turned if that is asked for.
  at::Tensor Heads(const Linear& projection, const Part& part, const at::Tensor& rotation) const;

  // Overwrites the queries with the result.
  void AttendToKeys(at::Tensor& queries, const at::Tensor& keys, const at::Tensor& values,
                    const EncoderContext& context) const;
  // The same of all sequences at once, where the device has a kernel for it. False: nothing is
  // done.
  bool AttendOnDevice(at::Tensor& queries, const at::Tensor& keys, const at::Tensor& values,
                      const EncoderContext& context) const;
  // The same for the next rows of sequences whose earlier ones are in the context's memory.
  void Continue(at::Tensor& queries, const at::Tensor& keys, const at::Tensor& values,
                const EncoderContext& context) const;
  // The same by Linformer. Overwrites hidden keys and values, too.
  void AttendToProjected(at::Tensor& queries, at::Tensor& keys, at::Tensor& values,
                         const EncoderContext& context) const;

  EncoderOptions options_;
  Linear to_q_, to_k_, to_v_, to_out_;
  at::Tensor proj_k_, proj_v_;  // of linformer
};

// x += attn(attn_norm(x)), x += ff(ff_norm(x)).
class EncoderLayer {
 public:
  explicit EncoderLayer(const EncoderOptions& options);

  void Declare(const Scope& scope);
  void Apply(at::Tensor& rows, const EncoderContext& context) const;  // in place
  double Flops(int64_t length) const;
  std::vector<StateSlot> State() const { return attn_.State(); }

 private:
  LayerNorm attn_norm_;
  EncoderAttention attn_;
  LayerNorm ff_norm_;
  FeedForward ff_;
};

}  // namespace linserve
