#include "models/network/placement.h"

#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>

#include "attention/device/device_plugin.h"
#include "attention/rows/aten.h"
#include "models/network/tensor_bridge.h"

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
  const DevicePlugin& plugin = *FindDevicePlugin(compute.device_type());
  for (const c10::Stream& stream : {compute, copy_in, copy_out}) plugin.give_stream(stream);
}

Placement::Placement(at::Device device) : device_(device) {
  if (on_host()) return;
  at::globalContext().lazyInitDevice(device.type());
  streams_ = std::make_shared<const Streams>(device);
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
  at::Tensor copy;
  {
    const c10::StreamGuard guard(streams_->copy_in);
    copy = tensor.to(device_, /*non_blocking=*/true);
  }
  Order(streams_->copy_in, streams_->compute);
  copy.record_stream(streams_->compute);
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
  Order(streams_->compute, streams_->copy_out);
  const c10::StreamGuard guard(streams_->copy_out);
  target.copy_(tensor, /*non_blocking=*/true);
  tensor.record_stream(streams_->copy_out);
}

at::Tensor Placement::HostTensor(at::IntArrayRef shape, at::ScalarType type) const {
  return at::empty(shape, at::TensorOptions().dtype(type).pinned_memory(!on_host()));
}

void Placement::AddTable(PlacedLayout& layout) const {
  if (on_host()) return;
  const int64_t count = layout.sequences();
  const at::Tensor host = HostTensor({2 * count}, at::kInt);
  auto* starts = host.mutable_data_ptr<int32_t>();
  int32_t* lengths = starts + count;
  auto table = std::make_shared<LayoutTable>();
  for (int64_t i = 0; i < count; ++i) {
    const int64_t start = layout.starts[static_cast<size_t>(i)];
    const int64_t length = layout.lengths[static_cast<size_t>(i)];
    starts[i] = static_cast<int32_t>(start);
    lengths[i] = static_cast<int32_t>(length);
    table->longest = std::max(table->longest, length);
  }
  const at::Tensor device = ToDevice(host);
  table->starts = device.narrow(0, 0, count);
  table->lengths = device.narrow(0, count, count);
  table->padded = layout.padded_length > 0;
  layout.table = std::move(table);
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
