#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace linserve {

// Says by which frequencies rotary positions turn the pairs of a head's features. Source:
// modeling_rope_utils.py of transformers 5.24.0.
struct RotaryFrequencies {
  // Longer sequences than a model was trained with have frequencies that are
  enum class Scaling : uint8_t {
    kNone,
    kLinear,  // divided by `factor`
    kLlama3,  // divided where they turn less than `slow` times in `trained` positions, not divided
              // where they turn more than `fast` times, and in between in part
    kYarn,    // so, but in part by the place of the pair (Peng et al. 2023, arXiv:2309.00071)
    kLong,    // divided by one of `factors` each, in sequences of up to `trained` positions, for
              // longer ones have others (Ding et al. 2024, arXiv:2402.13753)
  };

  double theta = 10000;
  Scaling scaling = Scaling::kNone;
  double factor = 1;
  std::vector<double> factors{};
  double trained = 1;
  double slow = 1;
  double fast = 32;
  bool whole_places = true;  // of kYarn: where the parts begin and end
  double amplitude = 1;      // of sines and cosines
  double share = 1;          // of a head's features that are turned, the first ones
};

// Returns base^(2j/width), F32 [width/2] on the device of `options`: the reciprocals of
// frequencies. REQUIRES: even width.
at::Tensor ReciprocalFrequencies(int64_t width, double base, const at::TensorOptions& options = {});

// Returns F32 [width/2], on the CPU, of `width` features that are turned. REQUIRES: even width,
// fast > slow > 0, and width/2 factors of kLong.
at::Tensor FrequenciesOf(const RotaryFrequencies& rotary, int64_t width);

}  // namespace linserve
