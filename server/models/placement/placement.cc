#include "models/placement/placement.h"

#include <c10/core/impl/VirtualGuardImpl.h>

#include <cstdint>
#include <memory>
#include <utility>

#include "attention/device/device_plugin.h"
#include "attention/rows/aten.h"
#include "attention/rows/layout_table.h"
#include "models/placement/pinned_pool.h"
#include "models/placement/tensor_bridge.h"

namespace linserve {
namespace {

c10::Stream NewStream(const at::Device& device) {
  return FindDevicePlugin(device.type())->take_stream(device.index());
}

// Whatever `later` does from now on waits for what `earlier` was asked until now.
void Order(const c10::Stream& earlier, const c10::Stream& later) {
  c10::Event event(earlier.device_type());
  event.record(earlier);
  event.block(later);
}

}  // namespace

Placement::Streams::Streams(const at::Device& device)
    : compute(NewStream(device)), copy_in(NewStream(device)), copy_out(NewStream(device)) {}

Placement::Streams::~Streams() {
  try {
    for (const c10::Stream& stream : {compute, copy_out}) stream.synchronize();
  } catch (const c10::Error&) {  // NOLINT(bugprone-empty-catch)
    // The device is lost, and uses nothing any more.
  }
  const DevicePlugin& plugin = *FindDevicePlugin(compute.device_type());
  for (const c10::Stream& stream : {compute, copy_in, copy_out}) plugin.give_stream(stream);
}

Placement::Placement(at::Device device) : device_(device) {
  if (on_host()) return;
  at::globalContext().lazyInitDevice(device.type());
  streams_ = std::make_shared<Streams>(device);
}

void Placement::CheckDevice() const {
  try {
    c10::impl::VirtualGuardImpl(device_.type()).synchronizeDevice(device_.index());
  } catch (const c10::Error&) {
    *lost_ = true;
  }
}

at::Tensor Placement::ToDevice(const at::Tensor& tensor) const {
  if (on_host()) return tensor;
  streams_->in_use.Drop();
  at::Tensor copy;
  {
    const c10::StreamGuard guard(streams_->copy_in);
    copy = tensor.to(device_, /*non_blocking=*/true);
  }
  Order(streams_->copy_in, streams_->compute);
  streams_->in_use.KeepForOthers(copy, streams_->compute);
  return copy;
}

at::Tensor Placement::ToHost(const at::Tensor& tensor) const {
  if (on_host()) return tensor;
  at::Tensor host = HostTensor(tensor.sizes(), tensor.scalar_type());
  CopyToHost(tensor, host);
  return host;
}

void Placement::CopyToHost(const at::Tensor& tensor, const at::Tensor& target) const {
  if (on_host()) {
    target.copy_(tensor);
    return;
  }
  streams_->in_use.Drop();
  Order(streams_->compute, streams_->copy_out);
  const c10::StreamGuard guard(streams_->copy_out);
  target.copy_(tensor, /*non_blocking=*/true);
  streams_->in_use.Keep(tensor, streams_->copy_out);
}

at::Tensor Placement::Fetch(const std::vector<at::Tensor>& tensors) const {
  int64_t elements = 0;
  for (const at::Tensor& tensor : tensors) elements += tensor.numel();
  at::Tensor host = HostTensor({elements}, tensors.at(0).scalar_type());
  std::optional<c10::StreamGuard> guard;
  // This stream alone waits for nothing that is computed.
  if (!on_host()) guard.emplace(streams_->copy_in);
  int64_t element = 0;
  for (const at::Tensor& tensor : tensors) {
    host.narrow(0, element, tensor.numel())
        .copy_(tensor.contiguous().view({-1}), /*non_blocking=*/true);
    element += tensor.numel();
  }
  if (!on_host()) streams_->copy_in.synchronize();
  return host;
}

at::Tensor Placement::HostTensor(at::IntArrayRef shape, at::ScalarType type) const {
  const auto options = at::TensorOptions().dtype(type);
  if (on_host()) return at::empty(shape, options);
  const auto bytes = static_cast<size_t>(c10::multiply_integers(shape)) * c10::elementSize(type);
  auto memory = PinnedPool::Of(device_).Allocate(bytes, streams_->copy_in, streams_->copy_out);
  void* data = memory.get();
  return at::from_blob(
      data, shape, [memory = std::move(memory)](void*) {}, options);
}

void Placement::AddTable(PlacedLayout& layout) const {
  if (on_host()) return;
  const at::Tensor host = HostTensor({TableSize(layout)}, at::kInt);
  WriteTable(layout, host.mutable_data_ptr<int32_t>());
  layout.table = std::make_shared<const LayoutTable>(TableOf(layout, ToDevice(host)));
}

void Placement::WaitForCopies() const { Order(streams_->copy_out, streams_->compute); }

Placement::Finished::Finished(const Placement& placement) {
  if (placement.on_host()) return;
  Order(placement.streams_->compute, placement.streams_->copy_out);
  event_.emplace(placement.device_.type());
  event_->record(placement.streams_->copy_out);
}

void Placement::Finished::Wait() const {
  if (event_) event_->synchronize();
}

std::pair<Tensor, std::byte*> Placement::Allocate(DType dtype, const Shape& shape) const {
  if (on_host()) return Tensor::AllocateUnfilled(dtype, shape);
  auto pinned = std::make_shared<at::Tensor>(HostTensor(shape, ToScalarType(dtype)));
  auto* bytes = static_cast<std::byte*>(pinned->mutable_data_ptr());
  return {Tensor(dtype, shape, bytes, pinned), bytes};
}

}  // namespace linserve
