// SPDX-License-Identifier: Apache-2.0

// Package lru is a cache bounded by the total cost of its values.
package lru

import (
	"container/list"
	"sync"
)

// Cache is a cache bounded by total cost, which removes the least recently used first. It is safe for concurrent use.
type Cache[K comparable, V any] struct {
	most int64

	mu    sync.Mutex
	cost  int64
	order *list.List
	items map[K]*list.Element
}

// item is an element of the list.
type item[K comparable, V any] struct {
	key   K
	value V
	cost  int64
}

// New returns a cache whose values may cost at most most in total.
func New[K comparable, V any](most int64) *Cache[K, V] {
	return &Cache[K, V]{most: most, order: list.New(), items: map[K]*list.Element{}}
}

// Get returns the value and makes it the most recently used.
func (l *Cache[K, V]) Get(key K) (value V, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	at, ok := l.items[key]
	if !ok {
		return value, false
	}
	l.order.MoveToFront(at)
	return at.Value.(*item[K, V]).value, true
}

// Put stores the value and returns the removed keys; the value's own key if its cost alone exceeds the bound.
func (l *Cache[K, V]) Put(key K, value V, cost int64) (forgotten []K) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.remove(key)
	if cost > l.most {
		return []K{key}
	}
	l.items[key] = l.order.PushFront(&item[K, V]{key: key, value: value, cost: cost})
	l.cost += cost
	for l.cost > l.most {
		last := l.order.Back().Value.(*item[K, V]).key
		l.remove(last)
		forgotten = append(forgotten, last)
	}
	return forgotten
}

// Drop removes one value.
func (l *Cache[K, V]) Drop(key K) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.remove(key)
}

func (l *Cache[K, V]) remove(key K) {
	at, ok := l.items[key]
	if !ok {
		return
	}
	l.cost -= at.Value.(*item[K, V]).cost
	l.order.Remove(at)
	delete(l.items, key)
}
