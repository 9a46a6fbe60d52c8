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

  // These give the rows up: v, or of two streams u + v and their mean.
  at::Tensor TakeSum() {
    const at::Tensor u = std::move(u_);
    at::Tensor rows = std::move(v_);
    return u.is_same(rows) ? rows : rows.add_(u);
  }
  at::Tensor TakeMean() {
    const bool two = !u_.is_same(v_);
    at::Tensor sum = TakeSum();
    return two ? sum.mul_(0.5) : sum;
  }

 private:
  at::Tensor v_;
  at::Tensor u_;
};

}  // namespace linserve
