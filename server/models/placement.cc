#include "models/placement.h"

#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>

#include "attention/aten.h"
#include "attention/device_plugin.h"
#include "models/tensor_bridge.h"

namespace linserve {
namespace {

c10::Stream NewStream(const at::Device& device) {
  if (device.is_cpu()) return c10::Stream(c10::Stream::DEFAULT, device);
  at::globalContext().lazyInitDevice(device.type());
  return c10::impl::VirtualGuardImpl(device.type()).getNewStream(device);
}

// Whatever `later` does from now on waits for what `earlier` was asked until now.
void Order(const c10::Stream& earlier, const c10::Stream& later) {
  c10::Event event(earlier.device_type());
  event.record(earlier);
  event.block(later);
}

}  // namespace

Placement::Placement(at::Device device)
    : device_(device),
      compute_(NewStream(device)),
      copy_in_(NewStream(device)),
      copy_out_(NewStream(device)) {}

at::Tensor Placement::ToDevice(const at::Tensor& tensor) const {
  if (on_host()) return tensor;
  at::Tensor copy;
  {
    const c10::StreamGuard guard(copy_in_);
    copy = tensor.to(device_, /*non_blocking=*/true);
  }
  Order(copy_in_, compute_);
  copy.record_stream(compute_);
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
  Order(compute_, copy_out_);
  const c10::StreamGuard guard(copy_out_);
  target.copy_(tensor, /*non_blocking=*/true);
  tensor.record_stream(copy_out_);
}

at::Tensor Placement::HostTensor(at::IntArrayRef shape, at::ScalarType type) const {
  return at::empty(shape, at::TensorOptions().dtype(type).pinned_memory(!on_host()));
}

void Placement::AddTable(AxisLayout& layout) const {
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

void Placement::WaitForCopies() const { Order(copy_out_, compute_); }

Placement::Finished::Finished(const Placement& placement) {
  if (placement.on_host()) return;
  Order(placement.compute_, placement.copy_out_);
  event_.emplace(placement.device_.type());
  event_->record(placement.copy_out_);
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
