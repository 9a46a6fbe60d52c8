#include "rpc/stream_registry.h"

#include <vector>

namespace linserve {

void StreamRegistry::Add(const std::shared_ptr<OpenStream>& stream) {
  MutexLock lock(mutex_);
  streams_[stream.get()] = stream;
}

void StreamRegistry::Remove(OpenStream* stream) {
  MutexLock lock(mutex_);
  streams_.erase(stream);
}

void StreamRegistry::DrainAll() {
  std::vector<std::shared_ptr<OpenStream>> streams;
  {
    MutexLock lock(mutex_);
    for (const auto& [address, stream] : streams_) {
      if (auto alive = stream.lock()) streams.push_back(std::move(alive));
    }
  }
  for (const auto& stream : streams) stream->Drain();
}

}  // namespace linserve
