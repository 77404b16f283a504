// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
)

// Put writes a value into the cluster's etcd, under a key without the cluster's prefix, without the API server: a value that
// an old API server stored and a new one would refuse.
func (c *Cluster) Put(ctx context.Context, key string, value []byte) error {
	var answer struct{}
	return c.ask(ctx, "/v3/kv/put", map[string]any{"key": []byte("/" + c.Name + key), "value": value}, &answer)
}

// Stored returns for each key in the cluster's etcd, without the cluster's prefix, the revision of its last write. It shows
// the writes of a request.
func (c *Cluster) Stored(ctx context.Context) (map[string]int64, error) {
	prefix, end := c.keys("")
	var found struct {
		Kvs []struct {
			Key         []byte `json:"key"`
			ModRevision int64  `json:"mod_revision,string"`
		} `json:"kvs"`
	}
	request := map[string]any{"key": prefix, "range_end": end, "keys_only": true}
	if err := c.ask(ctx, "/v3/kv/range", request, &found); err != nil {
		return nil, err
	}
	out := make(map[string]int64, len(found.Kvs))
	for _, kv := range found.Kvs {
		out[string(bytes.TrimPrefix(kv.Key, prefix))] = kv.ModRevision
	}
	return out, nil
}

// keys returns the first key under a prefix, in the cluster's part of etcd, and the one after the last.
func (c *Cluster) keys(prefix string) (first, end []byte) {
	first = []byte("/" + c.Name + "/" + prefix)
	end = bytes.Clone(first)
	end[len(end)-1]++
	return first, end
}

// ask sends a request to etcd and decodes the response.
func (c *Cluster) ask(ctx context.Context, path string, request map[string]any, into any) error {
	body, err := json.Marshal(request)
	if err != nil {
		return fmt.Errorf("asking etcd: %w", err)
	}
	answer, err := c.post(ctx, path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	defer answer.Close()
	if err := json.NewDecoder(answer).Decode(into); err != nil {
		return fmt.Errorf("reading etcd's answer: %w", err)
	}
	return nil
}

// post sends requests to etcd and returns the body of the response, which the caller closes.
func (c *Cluster) post(ctx context.Context, path string, requests io.Reader) (io.ReadCloser, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.store.url(path), requests)
	if err != nil {
		return nil, fmt.Errorf("asking etcd: %w", err)
	}
	answer, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, fmt.Errorf("asking etcd: %w", err)
	}
	if answer.StatusCode != http.StatusOK {
		answer.Body.Close()
		return nil, fmt.Errorf("asking etcd: it answers %s", answer.Status)
	}
	return answer.Body, nil
}
