#pragma once

#include <cstdint>
#include <string>

#include "models/sentences/head.h"

namespace linserve {

// Says what a sparse embedding is made of: the logits of a masked language model, which has one for
// each word of its vocabulary in each row. A word's weight is log(1 + max(logit, 0)) of all rows
// together (SPLADE; Formal et al. 2021, arXiv:2107.05720).
struct SparseHead {
  std::string encoder;     // what the encoder's names stand below, as in "bert"
  std::string words;       // its table of words, below that
  HeadLayer transform;     // of each row, before the decoder
  std::string decoder;     // path of the tensors weight and bias, which give the logits
  std::string other_bias;  // another name of the decoder's bias where it is tied; empty: none
  bool tied = true;        // the decoder's weight is the table of words
  bool biased = true;
  int64_t vocabulary = 0;
  bool sum = false;    // over the rows; else a word has its largest weight
  bool twice = false;  // the logarithm is taken of 1 + the logarithm once more
};

}  // namespace linserve
