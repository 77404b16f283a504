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

// Put writes a value into the cluster's etcd, under a key without the cluster's prefix, behind the back of the API server:
// what an API server of years ago left there and today's would not take.
func (c *Cluster) Put(ctx context.Context, key string, value []byte) error {
	var answer struct{}
	return c.ask(ctx, "/v3/kv/put", map[string]any{"key": []byte("/" + c.Name + key), "value": value}, &answer)
}

// Stored is what the cluster's etcd holds: for each key, without the cluster's prefix, the revision of its last write. It
// shows what a request has left behind.
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

// keys are the first of the keys under a prefix, in the cluster's part of etcd, and the one after the last.
func (c *Cluster) keys(prefix string) (first, end []byte) {
	first = []byte("/" + c.Name + "/" + prefix)
	end = bytes.Clone(first)
	end[len(end)-1]++
	return first, end
}

// ask has etcd answer a request.
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

// post sends requests to etcd and returns what it answers, to be closed.
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
