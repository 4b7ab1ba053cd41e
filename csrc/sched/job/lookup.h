// Looking up what may be absent, in maps and in lists.
//
// Most maps of the scheduler have no entry for what is 0 or not there, so a look-up has two answers
// everywhere. The two functions say which answer the caller wants, in place of an iterator that is
// compared with the end.
#pragma once

#include <algorithm>

namespace gpushare::sched {

// The value under the key; null: there is none.
template <typename Map, typename Key>
auto* find_in(Map& map, const Key& key) {
  const auto found = map.find(key);
  return found == map.end() ? nullptr : &found->second;
}

// The value under the key, as a copy, or `absent` if there is none.
template <typename Map, typename Key>
typename Map::mapped_type value_or(const Map& map,
                                   const Key& key,
                                   typename Map::mapped_type absent) {
  const auto found = map.find(key);
  return found == map.end() ? absent : found->second;
}

// The first of a list that is so; null: none is.
template <typename List, typename IsSo>
auto* find_first(List& list, const IsSo& is_so) {
  const auto found = std::ranges::find_if(list, is_so);
  return found == list.end() ? nullptr : &*found;
}

}  // namespace gpushare::sched
