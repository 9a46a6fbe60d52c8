#include "simulated_device.h"

#include <ATen/ATen.h>
#include <ATen/EmptyTensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/unfold_native.h>
#include <ATen/ops/view_native.h>
#include <torch/library.h>

#include <atomic>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "arena.h"
#include "guard.h"

namespace linserve {
namespace {

// Records what a thread computes while a graph is captured, to be computed again.
struct Recording {
  std::vector<std::function<void()>> calls;
  std::vector<at::Tensor> kept;  // the calls use their memory
};
thread_local Recording* recording = nullptr;

std::atomic<int64_t> launches = 0;

bool IsOnDevice(const at::Tensor& tensor) { return tensor.device().type() == kType; }

// Returns the tensor's memory as a tensor of the CPU, which may be used as long as it is open.
at::Tensor HostView(const at::Tensor& tensor, Arena::Opened& opened) {
  CheckAlive(tensor.device().index());
  opened.Add(tensor.const_data_ptr());
  if (recording != nullptr) recording->kept.push_back(tensor);
  auto* data = const_cast<void*>(tensor.const_data_ptr());
  return at::from_blob(data, tensor.sizes(), tensor.strides(),
                       at::TensorOptions().dtype(tensor.dtype()));
}

// Keeps a tensor that a graph uses, so that its memory is not given away to others.
at::Tensor Kept(const at::Tensor& tensor) {
  if (recording != nullptr) recording->kept.push_back(tensor);
  return tensor;
}

at::Tensor Empty(c10::IntArrayRef size, std::optional<at::ScalarType> dtype,
                 std::optional<at::Layout> /*layout*/, std::optional<at::Device> device,
                 std::optional<bool> /*pin_memory*/, std::optional<at::MemoryFormat> format) {
  const c10::OptionalDeviceGuard guard(device);
  return Kept(at::detail::empty_generic(size, &Arena::Get(),
                                        c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
                                        dtype.value_or(at::kFloat), format));
}

at::Tensor EmptyStrided(c10::IntArrayRef size, c10::IntArrayRef stride,
                        std::optional<at::ScalarType> dtype, std::optional<at::Layout> /*layout*/,
                        std::optional<at::Device> device, std::optional<bool> /*pin_memory*/) {
  const c10::OptionalDeviceGuard guard(device);
  return Kept(at::detail::empty_strided_generic(size, stride, &Arena::Get(),
                                                c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
                                                dtype.value_or(at::kFloat)));
}

at::Tensor ToDevice(const at::Tensor& host) {
  const at::Tensor tensor =
      EmptyStrided(host.sizes(), host.strides(), host.scalar_type(), {}, {}, {});
  Arena::Opened opened;
  HostView(tensor, opened).copy_(host);
  return tensor;
}

// Holds the arguments of one call as the host sees them, and the way back for its results.
class Arguments {
 public:
  explicit Arguments(const c10::OperatorHandle& op) : op_(op) {}

  c10::IValue Host(const c10::IValue& value) {
    if (value.isTensor()) return HostOf(value.toTensor());
    if (value.isTensorList()) {
      c10::List<at::Tensor> list;
      for (const at::Tensor& tensor : value.toTensorVector()) list.push_back(HostOf(tensor));
      return list;
    }
    if (value.isOptionalTensorList()) {
      c10::List<std::optional<at::Tensor>> list;
      for (const std::optional<at::Tensor>& tensor : value.toOptionalTensorVector()) {
        list.push_back(tensor ? std::optional(HostOf(*tensor)) : tensor);
      }
      return list;
    }
    if (value.isDevice() && value.toDevice().type() == kType) return c10::Device(at::kCPU);
    return value;
  }

  // Returns a result as the device sees it: one that is an argument becomes that argument, any
  // other a tensor of its own.
  at::Tensor Device(const at::Tensor& result) {
    for (const auto& [host, device] : tensors_) {
      if (result.is_same(host)) {
        if (result.sizes() != device.sizes()) Replace(device, ToDevice(result));
        return device;
      }
    }
    TORCH_CHECK(!result.numel() || !Arena::Get().Holds(result.const_data_ptr()),
                "simulated device: ", Name(), " gives a view, and has no kernel here");
    at::Tensor made = ToDevice(result);
    made_.push_back(HostView(made, opened_));
    return made;
  }

  std::vector<at::Tensor> TakeMade() { return std::move(made_); }

 private:
  std::string Name() const { return op_.schema().operator_name().name; }

  at::Tensor HostOf(const at::Tensor& tensor) {
    if (!tensor.defined()) return tensor;
    if (!IsOnDevice(tensor)) {
      TORCH_CHECK(tensor.dim() == 0, "simulated device: ", Name(), " was given a tensor of ",
                  tensor.device());
      return tensor;
    }
    // An empty tensor may be for a result, which then sets its size.
    tensors_.emplace_back(tensor.numel() > 0 ? HostView(tensor, opened_)
                                             : at::empty(tensor.sizes(), tensor.scalar_type()),
                          tensor);
    return tensors_.back().first;
  }

  void Replace(const at::Tensor& tensor, const at::Tensor& made) {
    tensor.unsafeGetTensorImpl()->set_storage_keep_dtype(made.storage());
    tensor.unsafeGetTensorImpl()->set_sizes_and_strides(made.sizes(), made.strides());
    made_.push_back(HostView(made, opened_));
  }

  const c10::OperatorHandle& op_;
  Arena::Opened opened_;
  std::vector<std::pair<at::Tensor, at::Tensor>> tensors_;  // as host and device see them
  std::vector<at::Tensor> made_;
};

// Copies what an operator makes anew to where it was when the graph was captured.
void CopyResults(const c10::IValue& value, const std::vector<at::Tensor>& made, size_t& next) {
  if (value.isTensorList()) {
    for (const at::Tensor& tensor : value.toTensorVector()) CopyResults(tensor, made, next);
  } else if (value.isTensor() && value.toTensor().defined() &&
             !Arena::Get().Holds(value.toTensor().const_data_ptr())) {
    made[next++].copy_(value.toTensor());
  }
}

// Computes what a GPU's library does, whose GELU is the one by tanh. On the host the operator's is
// the exact one.
at::Tensor& AddmmActivation(const at::Tensor& self, const at::Tensor& a, const at::Tensor& b,
                            const at::Scalar& beta, const at::Scalar& alpha, bool use_gelu,
                            at::Tensor& out) {
  at::addmm_out(out, self, a, b, beta, alpha);
  return use_gelu ? at::gelu_(out, "tanh") : at::relu_(out);
}

// Returns the operator that does on the host what `op` does here.
c10::OperatorHandle OnHost(const c10::OperatorHandle& op) {
  // The first is LibTorch's hook for the convolutions of devices like this one.
  static const std::map<std::string, std::string> others = {
      {"aten::convolution_overrideable", "aten::convolution"},
      {"aten::_addmm_activation.out", "linserve_simulated::addmm_activation"}};
  const auto found = others.find(c10::toString(op.operator_name()));
  return found == others.end()
             ? op
             : c10::Dispatcher::singleton().findSchemaOrThrow(found->second.c_str(), "");
}

// Refuses what a GPU refuses, and the host makes infinite: to fill a tensor with a number that its
// type cannot hold.
void CheckFilling(const c10::OperatorHandle& op, c10::ArrayRef<c10::IValue> arguments) {
  if (op.schema().name().find("fill") == std::string::npos) return;
  const at::Tensor& filled = arguments.front().toTensor();
  const c10::IValue& value = arguments.back();
  if (filled.scalar_type() == at::kHalf && value.isScalar()) value.toScalar().to<at::Half>();
}

// What the host learns of the device it waits for.
void CheckWaits() {
  TORCH_CHECK(recording == nullptr,
              "simulated device: a number is read back while a graph is captured");
  TORCH_CHECK(!IsStalled(), "simulated device: who reads a number back waits for all before it");
}

void Compute(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  ++launches;
  // How many places are not zero decides the shape of the result.
  if (op.schema().name() == "aten::nonzero") CheckWaits();
  Arguments arguments(op);
  const size_t count = op.schema().arguments().size();
  CheckFilling(op, torch::jit::last(*stack, count));
  torch::jit::Stack host;
  for (const c10::IValue& value : torch::jit::last(*stack, count)) {
    host.push_back(arguments.Host(value));
  }
  torch::jit::drop(*stack, count);
  const c10::OperatorHandle host_op = OnHost(op);
  const torch::jit::Stack again = host;
  host_op.callBoxed(&host);
  for (const c10::IValue& value : host) {
    if (value.isTensor()) {
      const at::Tensor& result = value.toTensor();
      stack->push_back(result.defined() ? arguments.Device(result) : result);
    } else if (value.isTensorList()) {
      c10::List<at::Tensor> list;
      for (const at::Tensor& result : value.toTensorVector()) {
        list.push_back(arguments.Device(result));
      }
      stack->push_back(list);
    } else {
      CheckWaits();
      stack->push_back(value);
    }
  }
  if (recording == nullptr) return;
  recording->calls.emplace_back([host_op, again, made = arguments.TakeMade()] {
    torch::jit::Stack once_more = again;
    host_op.callBoxed(&once_more);
    size_t next = 0;
    for (const c10::IValue& value : once_more) CopyResults(value, made, next);
  });
}

at::Tensor CopyFrom(const at::Tensor& self, const at::Tensor& target, bool non_blocking) {
  Arena::Opened opened;
  const bool within = IsOnDevice(self) && IsOnDevice(target);
  TORCH_CHECK(non_blocking || within || !IsStalled(),
              "simulated device: a copy waits for all that is not done yet");
  TORCH_CHECK(recording == nullptr || within,
              "simulated device: a copy between host and device while a graph is captured");
  if (within) ++launches;
  const at::Tensor source = IsOnDevice(self) ? HostView(self, opened) : self;
  const at::Tensor into = IsOnDevice(target) ? HostView(target, opened) : target;
  into.copy_(source);
  if (recording != nullptr) recording->calls.emplace_back([into, source] { into.copy_(source); });
  return target;
}

at::Scalar ReadScalar(const at::Tensor& self) {
  CheckWaits();
  Arena::Opened opened;
  return at::_local_scalar_dense(HostView(self, opened));
}

void RecordStream(at::Tensor& /*self*/, c10::Stream /*stream*/) {
  TORCH_CHECK(false,
              "simulated device: after record_stream() it is asked when the tensor is freed, ",
              "which ends the process if it is lost by then");
}

class Graph : public DeviceGraph {
 public:
  explicit Graph(Recording recorded) : recorded_(std::move(recorded)) {}

  void Replay() override {
    Arena::Opened opened;
    opened.AddAll();
    const c10::InferenceMode no_autograd;
    for (const auto& call : recorded_.calls) call();
  }

 private:
  Recording recorded_;
};

}  // namespace

TORCH_LIBRARY(linserve_simulated, library) {
  library.def(
      "addmm_activation(Tensor self, Tensor a, Tensor b, *, Scalar beta, Scalar alpha, bool "
      "use_gelu, Tensor(c!) out) -> Tensor(c!)",
      TORCH_FN(AddmmActivation));
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("empty.memory_format", TORCH_FN(Empty));
  library.impl("empty_strided", TORCH_FN(EmptyStrided));
  library.impl("_copy_from", TORCH_FN(CopyFrom));
  library.impl("_local_scalar_dense", TORCH_FN(ReadScalar));
  library.impl("convolution_overrideable", torch::CppFunction::makeFromBoxedFunction<&Compute>());
  // Devices without it are given it as several operators, and GPUs have it.
  library.impl("native_layer_norm", torch::CppFunction::makeFromBoxedFunction<&Compute>());
  library.impl("record_stream", TORCH_FN(RecordStream));
  library.impl("as_strided", TORCH_FN(at::native::as_strided_tensorimpl));
  library.impl("view", TORCH_FN(at::native::view));
  library.impl("_reshape_alias", TORCH_FN(at::native::_reshape_alias));
  library.impl("unfold", TORCH_FN(at::native::unfold));
  library.impl("alias", TORCH_FN(at::native::alias));
}

TORCH_LIBRARY_IMPL(_, PrivateUse1, library) {
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&Compute>());
}

void RegisterSimulatedDevice() {
  static const bool once = [] {
    c10::register_privateuse1_backend("simulated");
    c10::SetAllocator(kType, &Arena::Get());
    RegisterGuard();
    return true;
  }();
  static_cast<void>(once);
}

void RunOnSimulated(const std::function<void()>& work) {
  CheckAlive(CurrentDevice());
  ++launches;
  {
    Arena::Opened opened;
    opened.AddAll();
    work();
  }
  if (recording != nullptr) recording->calls.push_back(work);
}

int64_t SimulatedLaunches() { return launches; }

std::unique_ptr<DeviceGraph> CaptureSimulated(const std::function<void()>& work,
                                              const DeviceGraph* /*neighbour*/) {
  Recording recorded;
  recording = &recorded;
  try {
    work();
  } catch (...) {
    recording = nullptr;
    throw;
  }
  recording = nullptr;
  return std::make_unique<Graph>(std::move(recorded));
}

}  // namespace linserve
