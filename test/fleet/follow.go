// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
)

// Change is one write to a cluster's etcd.
type Change struct {
	// Key is without the cluster's prefix, as in Cluster.Stored.
	Key string
	// Revision is that of the write, which API servers return as the object's resource version.
	Revision int64
	// Before and After are the stored values, empty if there was or is none.
	Before, After []byte
}

// Revision returns the revision of the last write to the cluster's etcd.
func (c *Cluster) Revision(ctx context.Context) (int64, error) {
	var found struct {
		Header struct {
			Revision int64 `json:"revision,string"`
		} `json:"header"`
	}
	err := c.ask(ctx, "/v3/kv/range", map[string]any{"key": []byte("/"), "count_only": true}, &found)
	return found.Header.Revision, err
}

// followed is a message of etcd's watch.
type followed struct {
	Result struct {
		Canceled bool   `json:"canceled"`
		Reason   string `json:"cancel_reason"`
		Events   []struct {
			KV     stored `json:"kv"`
			PrevKV stored `json:"prev_kv"`
		} `json:"events"`
	} `json:"result"`
	Error json.RawMessage `json:"error"`
}

// stored is a value with its key and revision.
type stored struct {
	Key         []byte `json:"key"`
	ModRevision int64  `json:"mod_revision,string"`
	Value       []byte `json:"value"`
}

// Follow calls take for every change after a revision under some prefixes of keys, in order for each prefix, one call at a time.
// It misses no change, as it does not depend on the API server. It returns when ctx ends or etcd exits, always with an error.
func (c *Cluster) Follow(ctx context.Context, after int64, prefixes []string, take func(Change)) error {
	var one sync.Mutex
	watches, ctx := errgroup.WithContext(ctx)
	for _, prefix := range prefixes { // a request each: etcd stops reading a request when it begins to answer
		watches.Go(func() error {
			return c.follow(ctx, after, prefix, func(change Change) {
				one.Lock()
				defer one.Unlock()
				take(change)
			})
		})
	}
	return watches.Wait()
}

func (c *Cluster) follow(ctx context.Context, after int64, prefix string, take func(Change)) error {
	first, end := c.keys(prefix)
	watch := map[string]any{"key": first, "range_end": end, "start_revision": after + 1, "prev_kv": true}
	request, err := json.Marshal(map[string]any{"create_request": watch})
	if err != nil {
		return fmt.Errorf("asking etcd: %w", err)
	}
	answers, err := c.post(ctx, "/v3/watch", bytes.NewReader(request))
	if err != nil {
		return err
	}
	defer answers.Close()
	for decoder := json.NewDecoder(answers); ; {
		said := followed{}
		if err := decoder.Decode(&said); err != nil {
			return fmt.Errorf("following etcd: %w", errors.Join(context.Cause(ctx), err))
		}
		if said.Result.Canceled || said.Error != nil {
			return fmt.Errorf("following etcd: it ends that: %s%s", said.Result.Reason, said.Error)
		}
		for _, e := range said.Result.Events {
			key := strings.TrimPrefix(string(e.KV.Key), "/"+c.Name+"/")
			take(Change{Key: key, Revision: e.KV.ModRevision, Before: e.PrevKV.Value, After: e.KV.Value})
		}
	}
}
