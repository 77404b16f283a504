// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
)

// Stored is what the cluster's etcd holds: for each key, without the cluster's prefix, the revision of its last write. It
// shows what a request has left behind.
func (c *Cluster) Stored(ctx context.Context) (map[string]int64, error) {
	prefix := []byte("/" + c.Name + "/")
	end := bytes.Clone(prefix)
	end[len(end)-1]++
	body, err := json.Marshal(map[string]any{"key": prefix, "range_end": end, "keys_only": true})
	if err != nil {
		return nil, fmt.Errorf("asking etcd: %w", err)
	}
	url := c.store.url("/v3/kv/range")
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("asking etcd: %w", err)
	}
	answer, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, fmt.Errorf("asking etcd: %w", err)
	}
	defer answer.Body.Close()
	var found struct {
		Kvs []struct {
			Key         []byte `json:"key"`
			ModRevision int64  `json:"mod_revision,string"`
		} `json:"kvs"`
	}
	if err := json.NewDecoder(answer.Body).Decode(&found); err != nil {
		return nil, fmt.Errorf("reading etcd's answer: %w", err)
	}
	out := make(map[string]int64, len(found.Kvs))
	for _, kv := range found.Kvs {
		out[string(bytes.TrimPrefix(kv.Key, prefix))] = kv.ModRevision
	}
	return out, nil
}
