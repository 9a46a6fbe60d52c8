#pragma once

#include <cstdint>

#include "core/tensor/tensor.h"

namespace linserve {

// Makes the sum over a query's rows of the largest product with a row of the document: the score of
// late interaction (ColBERT; Khattab and Zaharia 2020, arXiv:2004.12832). A document without rows
// scores below all others, as in sentence-transformers.
class MaxSim {
 public:
  // REQUIRES: both are F32 [·, width].
  MaxSim(Tensor query, Tensor document);

  // Takes the query's next row. REQUIRES: not done().
  void Advance();
  bool done() const { return row_ >= query_.shape()[0]; }

  // Returns how many numbers Advance() multiplies.
  int64_t products() const { return document_.elements(); }
  int64_t rows_left() const { return query_.shape()[0] - row_; }
  // Returns the score once all is done.
  float score() const { return score_; }

 private:
  const Tensor query_;
  const Tensor document_;
  int64_t row_ = 0;
  float score_ = 0;
};

}  // namespace linserve
