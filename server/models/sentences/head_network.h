#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "models/network/layers.h"
#include "models/network/network.h"
#include "models/sentences/head.h"

namespace linserve {

// Is an encoder with layers behind it that make one vector of a sequence, or one of each of its
// rows: the Dense modules of sentence-transformers, or a classifier. That is its first output. The
// encoder's own outputs follow. With a vector of each row an optional mask, kScoringMask, says
// which of them are given; it hides no row from others. Nor does kPoolingMask, where a vector is
// made of some rows alone.
class HeadNetwork : public Network {
 public:
  // REQUIRES: the head has a layer, takes each row, or pools some.
  HeadNetwork(std::unique_ptr<Network> encoder, Head head);

  void Declare(const Scope& scope) override;
  Signature signature() const override;
  double Flops(int64_t length) const override;
  int64_t Layers() const override { return encoder_->Layers(); }
  NetworkNotes Notes() const override;
  ClassLabels Labels() const override { return head_.labels; }
  bool Recordable() const override { return encoder_->Recordable() && !head_.pad_token; }
  bool LeavesOutFullMask(const std::string& input) const override {
    return encoder_->LeavesOutFullMask(input);
  }
  std::unique_ptr<Pass> Begin(TensorBatch batch) const override;

 private:
  class HeadPass;

  struct Layer {
    explicit Layer(int64_t inputs, const HeadLayer& options);

    void Declare(const Scope& scope, const Scope& body);
    at::Tensor operator()(const at::Tensor& x) const;

    HeadLayer kind;
    Linear linear;
    std::optional<LayerNorm> norm{};
    std::optional<Linear> skip{};

   private:
    void DeclareAnswers(const Scope& scope, const Scope& body);

    at::Tensor own_head_;  // [vocabulary, inputs], until the weights are made of it
  };

  // Takes vectors [·, width] through the layers [first, end).
  at::Tensor Apply(at::Tensor vectors, int64_t first, int64_t end) const;
  // Makes a vector of each of these rows.
  at::Tensor EachRow(const at::Tensor& rows) const;

  std::unique_ptr<Network> encoder_;
  Head head_;
  OutputSpec input_;  // what it takes
  std::deque<Layer> layers_;
  int64_t width_ = 0;  // of what it makes
};

}  // namespace linserve
