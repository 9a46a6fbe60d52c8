#include "cuda/graph.h"

#include <ATen/core/CachingHostAllocator.h>
#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGuard.h>

#include <optional>
#include <utility>

#include "core/threads/mutex.h"

namespace linserve {
namespace {

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

}  // namespace

std::unique_ptr<DeviceGraph> CaptureGraph(const std::function<void()>& work,
                                          const DeviceGraph* neighbour) {
  auto graph = std::make_unique<Graph>();
  graph->Capture(work, static_cast<const Graph*>(neighbour));
  return graph;
}

}  // namespace linserve
