#include "serving/stream_registry.h"

#include <utility>

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
  for (const auto& stream : Open()) stream->Drain();
}

void StreamRegistry::LookUpAll() {
  for (const auto& stream : Open()) stream->LookUp();
}

std::vector<std::shared_ptr<OpenStream>> StreamRegistry::Open() {
  std::vector<std::shared_ptr<OpenStream>> streams;
  MutexLock lock(mutex_);
  for (const auto& [address, stream] : streams_) {
    if (auto alive = stream.lock()) streams.push_back(std::move(alive));
  }
  return streams;
}

}  // namespace linserve
