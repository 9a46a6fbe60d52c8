#include <ATen/Context.h>
#include <ATen/core/CachingHostAllocator.h>
#include <ATen/cuda/CUDAGraph.h>
#include <ATen/ops/_flash_attention_forward.h>
#include <c10/core/InferenceMode.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "attention/device/device_plugin.h"
#include "core/threads/mutex.h"
#include "cuda/kernel_calls.h"
#include "cuda/launch.h"
#include "cuda/linear_attention_calls.h"
#include "cuda/row_calls.h"

namespace linserve {
namespace {

c10::DeviceIndex Index(int64_t index) { return static_cast<c10::DeviceIndex>(index); }

// The properties are read once, since that takes a while.
const cudaDeviceProp& PropertiesOf(int64_t index) {
  constexpr size_t kMostDevices = 64;
  static std::array<cudaDeviceProp, kMostDevices> properties;
  static std::array<std::once_flag, kMostDevices> read;
  const auto place = static_cast<size_t>(index);
  std::call_once(read.at(place), [&] {
    C10_CUDA_CHECK(cudaGetDeviceProperties(&properties.at(place), static_cast<int>(index)));
  });
  return properties.at(place);
}

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

// Holds LibTorch's graph, on the device that it was captured on.
class Graph : public DeviceGraph {
 public:
  ~Graph() override {
    MutexLock lock(Registration());
    graph_.reset();
  }

  void Capture(const std::function<void()>& work, const Graph* neighbour) {
    MutexLock lock(Registration());
    pool_ = neighbour != nullptr ? neighbour->pool_ : at::cuda::graph_pool_handle();
    try {
      // Other replicas' threads may go on with what a global capture would forbid them.
      graph_->capture_begin(pool_, cudaStreamCaptureModeThreadLocal);
      work();
    } catch (...) {
      EndFailed();
      throw;
    }
    graph_->capture_end();
  }

  void Replay() override {
    const c10::cuda::CUDAGuard guard(device_);
    graph_->replay();
  }

 private:
  // Graphs are registered with the device's generator of random numbers, which LibTorch does not
  // lock.
  static Mutex& Registration() {
    static Mutex mutex;
    return mutex;
  }

  // The stream must leave its capture. Where LibTorch fails to end it, it leaves both pools open
  // that it has opened: of the device's memory, and of the host's pinned memory.
  void EndFailed() {
    try {
      return graph_->capture_end();
    } catch (const c10::Error&) {  // NOLINT(bugprone-empty-catch)
      // What it has not closed is closed below.
    }
    namespace device_pool = c10::cuda::CUDACachingAllocator;
    CloseIfOpen([&] { device_pool::endAllocateToPool(device_, pool_); },
                [&] { device_pool::releasePool(device_, pool_); });
    at::HostAllocator& host_pool = *at::getHostAllocator(at::kCUDA);
    CloseIfOpen([&] { host_pool.end_allocate_to_pool(pool_); },
                [&] { host_pool.release_pool(pool_); });
  }

  template <typename End, typename Release>
  static void CloseIfOpen(const End& end, const Release& release) {
    try {
      end();
    } catch (const c10::Error&) {
      return;  // it was closed, and the graph releases it
    }
    release();
  }

  c10::DeviceIndex device_ = c10::cuda::current_device();
  c10::MempoolId_t pool_;
  std::optional<at::cuda::CUDAGraph> graph_{std::in_place};
};

std::unique_ptr<DeviceGraph> CaptureGraph(const std::function<void()>& work,
                                          const DeviceGraph* neighbour) {
  auto graph = std::make_unique<Graph>();
  graph->Capture(work, static_cast<const Graph*>(neighbour));
  return graph;
}

// Says whether the GPU that the tensor is on has what our kernels are made for.
bool HasOurKernels(const at::Tensor& tensor) {
  return PropertiesOf(tensor.device().index()).major >= 8;
}

int64_t MultiprocessorsOf(const at::Tensor& tensor) {
  return PropertiesOf(tensor.device().index()).multiProcessorCount;
}

at::Tensor ProjectLengthOnGpu(const at::Tensor& rows, const at::Tensor& projection,
                              const LayoutTable& layout) {
  if (!HasOurKernels(rows)) return {};
  return cuda::CallProjectLength(
      rows, projection, layout, MultiprocessorsOf(rows),
      [](const auto& arguments, const cuda::BlockIndex& grid, int64_t elements) {
        cuda::Launch(arguments, grid, elements, c10::cuda::getCurrentCUDAStream());
        C10_CUDA_KERNEL_LAUNCH_CHECK();
      });
}

at::Tensor AttendToSlotsOnGpu(const at::Tensor& queries, const at::Tensor& keys,
                              const at::Tensor& values, int64_t heads, const LayoutTable& layout) {
  if (!HasOurKernels(queries)) return {};
  return cuda::CallAttendToSlots(
      queries, keys, values, heads, layout, MultiprocessorsOf(queries),
      []<int D, typename T>(const cuda::AttendToSlotsArguments<T>& arguments,
                            const cuda::BlockIndex& grid) {
        cuda::Launch<T, D>(arguments, grid, c10::cuda::getCurrentCUDAStream());
        C10_CUDA_KERNEL_LAUNCH_CHECK();
      });
}

struct LinearAttentionKernels {
  template <typename Kernel, typename T>
  void Start(const cuda::LinearAttentionArguments<T>& arguments,
             const cuda::BlockIndex& grid) const {
    cuda::LaunchLinearAttention<Kernel>(arguments, grid, c10::cuda::getCurrentCUDAStream());
    C10_CUDA_KERNEL_LAUNCH_CHECK();
  }

  template <int D, typename T>
  void AddParts(const cuda::LinearAttentionArguments<T>& arguments, int64_t elements) const {
    cuda::LaunchAddParts<D>(arguments, elements, c10::cuda::getCurrentCUDAStream());
    C10_CUDA_KERNEL_LAUNCH_CHECK();
  }
};

bool LinearAttentionOnGpu(const PackedLinearAttention& call, const at::Tensor& out) {
  return HasOurKernels(out) &&
         cuda::CallLinearAttention(call, out, MultiprocessorsOf(out), LinearAttentionKernels());
}

at::Tensor SoftmaxAttentionOnGpu(const PackedSoftmaxAttention& call) {
  const LayoutTable& layout = call.layout;
  if (!HasOurKernels(call.queries) || !cuda::TakesSoftmaxAttention(call)) return {};
  const auto heads = [&](const at::Tensor& rows) { return rows.unflatten(1, {call.heads, -1}); };
  const int64_t longest =
      layout.padded ? layout.positions.size(0) / layout.lengths.size(0) : layout.longest;
  const auto lengths = layout.padded ? std::optional(layout.lengths) : std::nullopt;
  return std::get<0>(at::_flash_attention_forward(
                         heads(call.queries), heads(call.keys), heads(call.values), layout.bounds,
                         layout.bounds, longest, longest, /*dropout_p=*/0.0, /*is_causal=*/false,
                         /*return_debug_mask=*/false, /*scale=*/std::nullopt, call.window,
                         call.window, lengths))
      .flatten(1);
}

// These run on GPUs before sm_80, too: they have no use for tensor cores.
bool AddPositionsOnGpu(const at::Tensor& rows, const at::Tensor& table, const at::Tensor& places) {
  return cuda::CallAddPositions(rows, table, places, [](const auto& arguments, int64_t vectors) {
    cuda::LaunchAddPositions(arguments, vectors, c10::cuda::getCurrentCUDAStream());
    C10_CUDA_KERNEL_LAUNCH_CHECK();
  });
}

bool RotateOnGpu(const at::Tensor& rows, int64_t heads, const at::Tensor& table,
                 const at::Tensor& places) {
  return cuda::CallRotate(rows, heads, table, places, [](const auto& arguments, int64_t vectors) {
    cuda::LaunchRotate(arguments, vectors, c10::cuda::getCurrentCUDAStream());
    C10_CUDA_KERNEL_LAUNCH_CHECK();
  });
}

at::Tensor NormOnGpu(const at::Tensor& rows, const RowNorm& norm) {
  return cuda::CallNorm(rows, norm,
                        []<int kReads, typename T>(const cuda::NormRowsArguments<T>& arguments,
                                                   const cuda::BlockIndex& grid) {
                          cuda::LaunchNormRows<T, kReads>(arguments, grid,
                                                          c10::cuda::getCurrentCUDAStream());
                          C10_CUDA_KERNEL_LAUNCH_CHECK();
                        });
}

at::Tensor PoolOnGpu(const at::Tensor& rows, const RowsToPool& which) {
  return cuda::CallPool(rows, which, [](const auto& arguments, const cuda::BlockIndex& grid) {
    cuda::LaunchPoolRows(arguments, grid, c10::cuda::getCurrentCUDAStream());
    C10_CUDA_KERNEL_LAUNCH_CHECK();
  });
}

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
  plugin.kernels.project_length = ProjectLengthOnGpu;
  plugin.kernels.attend_to_slots = AttendToSlotsOnGpu;
  plugin.kernels.linear_attention = LinearAttentionOnGpu;
  plugin.kernels.softmax_attention = SoftmaxAttentionOnGpu;
  plugin.kernels.add_positions = AddPositionsOnGpu;
  plugin.kernels.rotate = RotateOnGpu;
  plugin.kernels.norm = NormOnGpu;
  plugin.kernels.pool = PoolOnGpu;
  return plugin;
}

}  // namespace
}  // namespace linserve

extern "C" __attribute__((visibility("default"))) const linserve::DevicePlugin*
linserve_device_plugin() {
  static const linserve::DevicePlugin plugin = linserve::Plugin();
  return &plugin;
}
