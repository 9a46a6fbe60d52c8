#pragma once

#include <ATen/core/Tensor.h>

#include <deque>
#include <memory>
#include <optional>
#include <utility>

#include "models/linformer_pytorch/attention.h"
#include "models/network/network.h"

namespace linserve::linformer_pytorch {

// Holds what a stack reads besides its rows. Masks are as in AttentionInput.
struct StackContext {
  PlacedLayout layout;    // of the rows
  at::Tensor embeddings;  // that a decoder attends to
  PlacedLayout embeddings_layout;
  at::Tensor hidden_rows;        // by input_mask: as keys and values of self-attention
  at::Tensor hidden_embeddings;  // by input_mask, too: of cross-attention
  at::Tensor hidden_queries;     // by embeddings_mask, despite its name
};

// Is linformer_pytorch.Linformer: post-norm layers, each norm(resample(x) + f(x)), without a final
// norm.
class PostNormStack {
 public:
  explicit PostNormStack(const StackOptions& options);

  void Declare(const Scope& scope);
  const StackOptions& options() const { return options_; }
  int64_t Layers() const { return options_.depth; }
  double Flops(int64_t length) const;
  int64_t Matrices() const;  // E and F, distinct ones
  // Says which of the arguments have no effect.
  std::vector<std::string> Warnings() const;

  // Applies the stack to rows [rows, channels], a layer (of a decoder with its cross-attention) a
  // step.
  class Steps {
   public:
    // Takes over `rows`. `stack` must outlive them.
    Steps(const PostNormStack& stack, at::Tensor rows, StackContext context)
        : stack_(stack), rows_(std::move(rows)), context_(std::move(context)) {}

    bool Step();  // false once every layer is done
    // REQUIRES: Step() returned false.
    const at::Tensor& rows() const { return rows_; }

   private:
    const PostNormStack& stack_;
    at::Tensor rows_;
    StackContext context_;
    size_t layer_ = 0;
  };

 private:
  // Is an attention or a feed-forward with what is around it (the package's Residual).
  struct Sublayer {
    explicit Sublayer(int64_t width) : norm(width) {}

    std::optional<MultiHeadAttention> attention;
    bool cross = false;
    std::optional<FeedForward> feed_forward;
    std::optional<Linear> resample;
    LayerNorm norm;
  };

  void AddAttention(const StackOptions& options, int64_t layer, bool cross);
  void AddFeedForward(const StackOptions& options, int64_t in, int64_t out);
  static AttentionInput InputOf(const Sublayer& sublayer, const at::Tensor& rows,
                                const StackContext& context);
  void Attend(const Sublayer& sublayer, at::Tensor& rows, const StackContext& context) const;
  // Attends together with the next sublayer, if that is a feed-forward that can follow block by
  // block; returns whether it did.
  static bool AttendByBlocks(const Sublayer& sublayer, const Sublayer* next, at::Tensor& rows,
                             const StackContext& context);
  void FeedForwardRows(const Sublayer& sublayer, at::Tensor& rows) const;

  StackOptions options_;
  std::shared_ptr<LengthProjection> shared_;  // with layerwise sharing
  std::deque<Sublayer> seq_;
  size_t per_layer_;  // sublayers
};

}  // namespace linserve::linformer_pytorch
