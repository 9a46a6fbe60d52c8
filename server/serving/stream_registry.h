#pragma once

#include <map>
#include <memory>
#include <vector>

#include "core/threads/mutex.h"

namespace linserve {

// Represents a call that may idle for as long as its caller likes.
class OpenStream {
 public:
  virtual ~OpenStream() = default;

  // Ends the stream with UNAVAILABLE once what is in flight is answered.
  virtual void Drain() = 0;

  // Lets the stream end what has waited too long. Called about once a second.
  virtual void LookUp() {}
};

// Knows the open streams of a server, so that those that idle can be ended. Thread-safe.
class StreamRegistry {
 public:
  void Add(const std::shared_ptr<OpenStream>& stream);
  void Remove(OpenStream* stream);
  void DrainAll();
  void LookUpAll();

 private:
  std::vector<std::shared_ptr<OpenStream>> Open();

  Mutex mutex_;
  std::map<OpenStream*, std::weak_ptr<OpenStream>> streams_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace linserve
