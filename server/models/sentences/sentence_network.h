#pragma once

#include <deque>
#include <memory>
#include <string>

#include "attention/rows/activation.h"
#include "models/config/sentence_modules.h"
#include "models/network/layers.h"
#include "models/network/network.h"

namespace linserve {

// Is an encoder with the Dense modules of sentence-transformers behind it. Its first output is
// sentence_embedding [outputs of the last of them]: the rows of the encoder's first output, pooled
// as the folder says and taken through the modules. The encoder's own outputs follow.
class SentenceNetwork : public Network {
 public:
  // Throws ConfigError for modules whose widths do not fit together.
  SentenceNetwork(std::unique_ptr<Network> encoder, const SentenceModules& modules);

  void Declare(const Scope& scope) override;
  Signature signature() const override;
  double Flops(int64_t length) const override;
  int64_t Layers() const override { return encoder_->Layers(); }
  NetworkNotes Notes() const override { return encoder_->Notes(); }
  bool Recordable() const override { return encoder_->Recordable(); }
  bool LeavesOutFullMasks() const override { return encoder_->LeavesOutFullMasks(); }
  std::unique_ptr<Pass> Begin(TensorBatch batch) const override;

 private:
  class SentencePass;

  struct Dense {
    std::string path;
    Linear linear;
    Activation activation;
  };

  // Takes vectors [sequences, width] through the modules.
  at::Tensor Apply(at::Tensor vectors) const;

  std::unique_ptr<Network> encoder_;
  Pooling pooling_;
  std::deque<Dense> dense_;
};

}  // namespace linserve
