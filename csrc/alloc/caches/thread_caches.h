// The caches of all threads that use one allocator, found by the thread, and locked as one.
//
// A thread gets its cache with its first call that needs the allocator's lock, and loses it when it
// ends: then its home is told, which puts the blocks back. The main thread's cache stays until the
// process is gone, so a tensor may be freed in any exit handler.
//
// A pthread key holds the cache, not a thread_local object: each allocator has caches of its own,
// and the key's value is never used after its destruction. A thread that frees in a later
// destructor of its own gets a new cache, or none.
//
// threads: mine() any; all else under the allocator's lock.
#pragma once

#include <pthread.h>

#include <climits>
#include <memory>
#include <optional>
#include <vector>

#include "csrc/alloc/blocks/route.h"
#include "csrc/alloc/caches/thread_cache.h"

namespace gpushare::alloc {

class ThreadCaches {
 public:
  class Home {
   public:
    virtual ~Home() = default;
    // The cache's thread ends: empty it and remove() it. On that thread, without any lock.
    virtual void on_thread_end(ThreadCache& cache) = 0;
  };

  // `home` must outlive it. Where the system has no key left there are no caches.
  explicit ThreadCaches(Home& home);
  // pre: no thread that has a cache here ends meanwhile.
  ~ThreadCaches();
  ThreadCaches(const ThreadCaches&) = delete;
  ThreadCaches& operator=(const ThreadCaches&) = delete;

  // The calling thread's; null if it has none yet.
  [[nodiscard]] ThreadCache* mine() const {
    auto* const entry = static_cast<Entry*>(::pthread_getspecific(key_));
    return entry == nullptr ? nullptr : &entry->cache;
  }
  // pre: the calling thread has none. Null if it can have none.
  ThreadCache* add_mine(std::optional<Route> arena);
  void remove(const ThreadCache& cache);

  // With all of them locked nothing is handed out or kept, whoever asks.
  void lock_all();
  void unlock_all();
  // pre, for `body` to use them: lock_all().
  template <typename Body>
  void for_each(Body body) {
    for (const auto& entry : entries_)
      body(entry->cache);
  }

 private:
  // On cache lines of its own, since its thread writes to it all the time.
  struct alignas(64) Entry {
    Entry(Home& to, std::optional<Route> arena) : home(to), cache(arena) {}
    Home& home;
    ThreadCache cache;
  };
  static void on_thread_end(void* entry);

  Home& home_;
  pthread_key_t key_ = PTHREAD_KEYS_MAX;  // no key has this number: mine() finds nothing
  const bool has_key_;                    // after key_, which it makes
  std::vector<std::unique_ptr<Entry>> entries_;
};

class AllCachesLock {
 public:
  explicit AllCachesLock(ThreadCaches& caches) : caches_(caches) { caches_.lock_all(); }
  ~AllCachesLock() { caches_.unlock_all(); }
  AllCachesLock(const AllCachesLock&) = delete;
  AllCachesLock& operator=(const AllCachesLock&) = delete;

 private:
  ThreadCaches& caches_;
};

}  // namespace gpushare::alloc
