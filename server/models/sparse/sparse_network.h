#pragma once

#include <memory>
#include <string>
#include <vector>

#include "models/network/layers.h"
#include "models/network/network.h"
#include "models/network/packed_weight.h"
#include "models/sparse/sparse_head.h"
#include "models/sparse/vocabulary_fold.h"

namespace linserve {

// Is an encoder and a masked language model's head, of whose logits a sequence has one vector:
// sparse_embedding [vocabulary], its first output. The encoder's own outputs follow. Rows that a
// mask hides take no part.
//
// There are never more logits than those of a few rows: each thread folds those of a block of rows
// and of some words into the vector while they are in its cache.
class SparseNetwork : public Network {
 public:
  // REQUIRES: the encoder's first output is its rows.
  SparseNetwork(std::unique_ptr<Network> encoder, SparseHead head);

  void Declare(const Scope& scope) override;
  Signature signature() const override;
  double Flops(int64_t length) const override;
  int64_t Layers() const override { return encoder_->Layers() + FoldSteps(); }
  // A tied decoder is laid out for products beside the table of words.
  int64_t Copies() const override { return head_.tied ? head_.vocabulary * norm_.width : 0; }
  NetworkNotes Notes() const override;
  bool LeavesOutFullMask(const std::string& input) const override {
    return encoder_->LeavesOutFullMask(input);
  }
  std::unique_ptr<Pass> Begin(TensorBatch batch) const override;

 private:
  class SparsePass;

  // Are some rows, one after another, of one sequence.
  struct Span {
    int64_t sequence = 0;
    int64_t count = 0;
  };

  // Returns in how many steps the rows are folded: one takes no longer than some layers do.
  int64_t FoldSteps() const;
  // Lays the decoder out for products in blocks, if its weight is F32 on the CPU.
  void Pack(DType products);
  // Folds encoded rows [rows, width], those of the spans, into the weights [sequences, vocabulary].
  void Fold(const at::Tensor& rows, const std::vector<Span>& spans, at::Tensor& weights) const;
  void FoldPacked(const at::Tensor& rows, const std::vector<Span>& spans,
                  at::Tensor& weights) const;
  // Takes rows through what stands before the decoder.
  at::Tensor Transform(const at::Tensor& rows) const;

  std::unique_ptr<Network> encoder_;
  SparseHead head_;
  OutputSpec input_;  // what it takes
  VocabularyFold fold_;
  Linear transform_;
  LayerNorm norm_;
  at::Tensor own_weight_;             // [vocabulary, width] of a decoder that is not tied
  at::Tensor* weight_ = nullptr;      // that, or the encoder's table of words
  at::Tensor bias_;                   // [vocabulary]
  std::vector<PackedWeight> packed_;  // of kWords words each
};

}  // namespace linserve
