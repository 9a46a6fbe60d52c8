#include <ATen/Context.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "attention/device/device_plugin.h"
#include "core/threads/mutex.h"
#include "cuda/gpu_kernels.h"
#include "cuda/graph.h"
#include "cuda/properties.h"

namespace linserve {
namespace {

c10::DeviceIndex Index(int64_t index) { return static_cast<c10::DeviceIndex>(index); }

absl::StatusOr<int64_t> Count() {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error == cudaErrorInsufficientDriver) {
    int driver = 0;
    C10_CUDA_IGNORE_ERROR(cudaDriverGetVersion(&driver));
    const std::string needed = std::to_string(CUDART_VERSION / 1000);
    if (driver == 0) return absl::UnavailableError("this machine has no NVIDIA driver");
    return absl::UnavailableError("the NVIDIA driver is for CUDA " + std::to_string(driver / 1000) +
                                  "." + std::to_string(driver % 1000 / 10) + ", and CUDA " +
                                  needed + " is needed; update the driver");
  }
  if (error != cudaSuccess) {
    return absl::UnavailableError(std::string("no NVIDIA GPU can be used: ") +
                                  cudaGetErrorString(error));
  }
  if (count == 0) return absl::UnavailableError("this machine has no NVIDIA GPU");
  return count;
}

std::string Describe(int64_t index) {
  const cudaDeviceProp& properties = PropertiesOf(index);
  char text[320];
  std::snprintf(text, sizeof(text), "%s, %.1f GiB, sm_%d%d", properties.name,
                static_cast<double>(properties.totalGlobalMem) / (1 << 30), properties.major,
                properties.minor);
  return text;
}

// LibTorch has no code for GPUs before Turing, nor have we.
absl::Status Usable(int64_t index) {
  const cudaDeviceProp& properties = PropertiesOf(index);
  if (10 * properties.major + properties.minor >= 75) return absl::OkStatus();
  return absl::UnavailableError(Describe(index) + " is too old: sm_75 (Turing) is the least");
}

// Turing, whose major version is 7, has tensor cores for F16 alone.
bool HasBfloat16(int64_t index) { return PropertiesOf(index).major >= 8; }

size_t TotalMemory(int64_t index) { return PropertiesOf(index).totalGlobalMem; }

// All devices copy from and to what is portable.
void* Pin(size_t bytes) {
  void* memory = nullptr;
  C10_CUDA_CHECK(cudaHostAlloc(&memory, bytes, cudaHostAllocPortable));
  return memory;
}

// LibTorch's pool exists once its CUDA part is used.
void PreparePool() { at::globalContext().lazyInitDevice(c10::DeviceType::CUDA); }

DeviceMemory Memory(int64_t index) {
  PreparePool();
  constexpr auto kAll = static_cast<size_t>(c10::CachingAllocator::StatType::AGGREGATE);
  const auto stats = c10::cuda::CUDACachingAllocator::getDeviceStats(Index(index));
  const double fraction = c10::cuda::CUDACachingAllocator::getMemoryFraction(Index(index));
  return {.used = stats.allocated_bytes[kAll].current,
          .reserved = stats.reserved_bytes[kAll].current,
          .limit = static_cast<int64_t>(fraction * static_cast<double>(TotalMemory(index)))};
}

void LimitMemory(int64_t index, int64_t bytes) {
  PreparePool();
  const double fraction = static_cast<double>(bytes) / static_cast<double>(TotalMemory(index));
  c10::cuda::CUDACachingAllocator::setMemoryFraction(std::min(fraction, 1.0), Index(index));
}

// LibTorch's own pool has 32 streams, which it gives to several at once.
class Streams {
 public:
  c10::Stream Take(int64_t index) {
    MutexLock lock(mutex_);
    std::vector<c10::Stream>& free = free_[index];
    if (free.empty()) {
      const c10::cuda::CUDAGuard guard(Index(index));
      cudaStream_t stream = nullptr;
      C10_CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
      return c10::cuda::getStreamFromExternal(stream, Index(index)).unwrap();
    }
    const c10::Stream stream = free.back();
    free.pop_back();
    return stream;
  }

  void Give(const c10::Stream& stream) {
    MutexLock lock(mutex_);
    free_[stream.device_index()].push_back(stream);
  }

  static Streams& Get() {
    static auto* streams = new Streams;  // outlives whatever still uses one of them
    return *streams;
  }

 private:
  Mutex mutex_;
  std::map<int64_t, std::vector<c10::Stream>> free_ ABSL_GUARDED_BY(mutex_);  // by device
};

c10::Stream TakeStream(int64_t index) { return Streams::Get().Take(index); }
void GiveStream(const c10::Stream& stream) { Streams::Get().Give(stream); }

DevicePlugin Plugin() {
  // cuDNN would make a plan for each shape that it meets, and each batch has another one.
  at::globalContext().setSDPUseCuDNN(false);
  DevicePlugin plugin;
  plugin.type = c10::DeviceType::CUDA;
  plugin.count = Count;
  plugin.describe = Describe;
  plugin.usable = Usable;
  plugin.has_bfloat16 = HasBfloat16;
  plugin.memory = Memory;
  plugin.pin = Pin;
  plugin.limit_memory = LimitMemory;
  plugin.take_stream = TakeStream;
  plugin.give_stream = GiveStream;
  plugin.capture = CaptureGraph;
  plugin.kernels = GpuKernels();
  return plugin;
}

}  // namespace
}  // namespace linserve

extern "C" __attribute__((visibility("default"))) const linserve::DevicePlugin*
linserve_device_plugin() {
  static const linserve::DevicePlugin plugin = linserve::Plugin();
  return &plugin;
}
