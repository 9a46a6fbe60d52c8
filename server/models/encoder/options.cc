#include "models/encoder/options.h"

#include <vector>

namespace linserve::encoder {
namespace {

std::optional<AttentionMethod> MethodFrom(Params& params) {
  const std::string name =
      params.Choice("attention", "softmax", {"softmax", "efficient", "elu", "taylor", "linformer"});
  const bool normalize = params.Flag("normalize", true);
  if (name == "softmax") return AttentionMethod::kSoftmax;
  if (name == "efficient") return AttentionMethod::kEfficient;
  if (name == "taylor") return AttentionMethod::kTaylor;
  if (name == "linformer") return std::nullopt;
  return normalize ? AttentionMethod::kKernelNormalized : AttentionMethod::kKernel;
}

Positions PositionsFrom(Params& params) {
  const std::vector<std::string> names = {"none", "learned", "sinusoidal", "rotary"};
  const std::string name = params.Choice("positions", "none", names);
  size_t index = 0;
  while (names[index] != name) ++index;
  return static_cast<Positions>(index);
}

void CheckPositions(const Options& options, Params& params) {
  if (options.positions == Positions::kLearned && !options.max_seq_len) {
    params.Fail("max_seq_len", "the number of learned positions, a positive integer");
  }
  if (options.positions == Positions::kSinusoidal && options.dim % 2 != 0) {
    params.Fail("dim", "an even number with sinusoidal positions");
  }
  if (options.positions == Positions::kRotary && options.dim_head % 2 != 0) {
    params.Fail(params.Has("dim_head") ? "dim_head" : "dim",
                "heads of an even width with rotary positions; theirs is " +
                    std::to_string(options.dim_head));
  }
}

}  // namespace

Options Options::From(Params& params) {
  Options options;
  options.method = MethodFrom(params);
  options.dim = params.Positive("dim");
  options.depth = params.Depth("depth");
  options.heads = params.Positive("heads", 8);
  if (!params.Has("dim_head") && options.dim % options.heads != 0) {
    params.Fail("dim",
                "a multiple of heads = " + std::to_string(options.heads) + ", or dim_head besides");
  }
  options.dim_head = params.Positive("dim_head", options.dim / options.heads);
  options.ff_mult = params.Positive("ff_mult", 4);
  options.causal = params.Flag("causal", false);
  // These are accepted with every attention, so that one can be swapped for another.
  options.k = params.Positive("k", 256);
  options.seq_len = options.linformer() ? params.Positive("seq_len")
                                        : params.OptionalPositive("seq_len").value_or(0);
  options.num_tokens = params.OptionalPositive("num_tokens");
  options.positions = PositionsFrom(params);
  options.max_seq_len = params.OptionalPositive("max_seq_len");
  CheckPositions(options, params);
  return options;
}

std::string Options::SessionRefusal() const {
  if (linformer()) return "attention \"linformer\" projects the whole input along its length";
  if (!IsLinear(*method)) {
    return "attention \"softmax\" needs every earlier key, so that what a session keeps would grow "
           "with the sequence";
  }
  if (!causal) return "causal is false, and every row attends to those after it";
  return "";
}

}  // namespace linserve::encoder
