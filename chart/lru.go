// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"container/list"
	"sync"
)

// lru is a cache bounded by total cost, which removes the least recently used first. It is safe for concurrent use.
type lru[K comparable, V any] struct {
	most int64

	mu    sync.Mutex
	cost  int64
	order *list.List
	items map[K]*list.Element
}

// lruItem is an element of the list.
type lruItem[K comparable, V any] struct {
	key   K
	value V
	cost  int64
}

func newLRU[K comparable, V any](most int64) *lru[K, V] {
	return &lru[K, V]{most: most, order: list.New(), items: map[K]*list.Element{}}
}

// get returns the value and makes it the most recently used.
func (l *lru[K, V]) get(key K) (value V, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	at, ok := l.items[key]
	if !ok {
		return value, false
	}
	l.order.MoveToFront(at)
	return at.Value.(*lruItem[K, V]).value, true
}

// put stores the value and returns the removed keys; the value's own key if its cost alone exceeds the bound.
func (l *lru[K, V]) put(key K, value V, cost int64) (forgotten []K) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.remove(key)
	if cost > l.most {
		return []K{key}
	}
	l.items[key] = l.order.PushFront(&lruItem[K, V]{key: key, value: value, cost: cost})
	l.cost += cost
	for l.cost > l.most {
		last := l.order.Back().Value.(*lruItem[K, V]).key
		l.remove(last)
		forgotten = append(forgotten, last)
	}
	return forgotten
}

// drop removes one value.
func (l *lru[K, V]) drop(key K) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.remove(key)
}

func (l *lru[K, V]) remove(key K) {
	at, ok := l.items[key]
	if !ok {
		return
	}
	l.cost -= at.Value.(*lruItem[K, V]).cost
	l.order.Remove(at)
	delete(l.items, key)
}
