#pragma once

#include <ATen/core/Tensor.h>

#include <utility>

namespace linserve {

// Holds the rows that a stack's layers add to: u += f(v), then v += g(u). In a plain stack u and v
// are one stream. In a reversible one they are two, which begin alike.
class ResidualStreams {
 public:
  ResidualStreams(at::Tensor rows, bool reversible)
      : v_(std::move(rows)), u_(reversible ? v_.clone() : v_) {}

  at::Tensor& u() { return u_; }
  at::Tensor& v() { return v_; }

  // Returns v, or for two streams u + v. It is called once.
  at::Tensor Sum() { return u_.is_same(v_) ? v_ : v_.add_(u_); }
  // Returns v, or for two streams their mean. It is called once.
  at::Tensor Mean() { return u_.is_same(v_) ? v_ : v_.add_(u_).mul_(0.5); }

 private:
  at::Tensor v_;
  at::Tensor u_;
};

}  // namespace linserve
