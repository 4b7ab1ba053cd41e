// A cache belongs to a thread by a pthread key. The C library calls on_thread_end() with the key's
// value when the thread ends, and has set the value to null by then. So a later destructor of the
// same thread that frees never uses the old cache; it gets a new one, or none. Where there is no
// key, or no value can be set, the thread works without a cache, under the allocator's lock.
#include "csrc/alloc/caches/thread_caches.h"

#include <vector>

#include "csrc/base/mutex.h"

namespace gpushare::alloc {

ThreadCaches::ThreadCaches(Home& home)
    : home_(home), has_key_(::pthread_key_create(&key_, &ThreadCaches::on_thread_end) == 0) {}

ThreadCaches::~ThreadCaches() {
  if (has_key_) ::pthread_key_delete(key_);
}

// Called by the C library on the thread that ends.
void ThreadCaches::on_thread_end(void* entry) {
  auto* const ending = static_cast<Entry*>(entry);
  ending->home.on_thread_end(ending->cache);
}

// Null where the C library has no place for one more value of this thread.
ThreadCache* ThreadCaches::add_mine(std::optional<Route> arena) {
  if (!has_key_) return nullptr;
  auto entry = std::make_unique<Entry>(home_, arena);
  if (::pthread_setspecific(key_, entry.get()) != 0) return nullptr;
  entries_.push_back(std::move(entry));
  return &entries_.back()->cache;
}

void ThreadCaches::remove(const ThreadCache& cache) {
  std::erase_if(entries_, [&](const auto& entry) { return &entry->cache == &cache; });
}

// In the order of the list, with the allocator's lock held, so two threads cannot block each other
// here. The analysis cannot follow so many locks.
void ThreadCaches::lock_all() GS_NO_THREAD_SAFETY_ANALYSIS {
  for (const auto& entry : entries_)
    entry->cache.lock.lock();
}

void ThreadCaches::unlock_all() GS_NO_THREAD_SAFETY_ANALYSIS {
  for (const auto& entry : entries_)
    entry->cache.lock.unlock();
}

}  // namespace gpushare::alloc
