#include "models/config/activation_param.h"

#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace linserve {
namespace {

struct ActivationName {
  std::string_view name;
  Activation activation;
};

constexpr std::array kActivationNames = {
    ActivationName{"gelu", Activation::kGelu},
    ActivationName{"gelu_python", Activation::kGelu},
    ActivationName{"gelu_new", Activation::kTanhGelu},
    ActivationName{"gelu_fast", Activation::kTanhGelu},
    ActivationName{"gelu_accurate", Activation::kTanhGelu},
    ActivationName{"gelu_pytorch_tanh", Activation::kTanhGelu},
    ActivationName{"gelu_python_tanh", Activation::kTanhGelu},
    ActivationName{"gelu_10", Activation::kGelu10},
    ActivationName{"quick_gelu", Activation::kQuickGelu},
    ActivationName{"relu", Activation::kRelu},
    ActivationName{"relu2", Activation::kRelu2},
    ActivationName{"relu6", Activation::kRelu6},
    ActivationName{"silu", Activation::kSilu},
    ActivationName{"swish", Activation::kSilu},
    ActivationName{"sigmoid", Activation::kSigmoid},
    ActivationName{"tanh", Activation::kTanh},
    ActivationName{"elu", Activation::kElu},
    ActivationName{"leaky_relu", Activation::kLeakyRelu},
    ActivationName{"mish", Activation::kMish},
    ActivationName{"laplace", Activation::kLaplace},
    ActivationName{"exp", Activation::kExp},
    ActivationName{"linear", Activation::kIdentity},
};

}  // namespace

std::vector<std::string> ActivationNames() {
  std::vector<std::string> names;
  for (const ActivationName& one : kActivationNames) names.emplace_back(one.name);
  return names;
}

Activation ActivationParam(Params& params, const char* key, const char* fallback) {
  const std::string name = params.Choice(key, fallback, ActivationNames());
  size_t i = 0;
  while (kActivationNames[i].name != name) ++i;
  return kActivationNames[i].activation;
}

}  // namespace linserve
