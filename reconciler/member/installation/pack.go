// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"shipper.dev/shipper/chart"
	"shipper.dev/shipper/chart/render"
)

// packAll is pack, without what the chart rendered where that makes it too large: a rollback to the Release renders again then.
func packAll(all []wanted) ([]byte, error) {
	raw, err := pack(all)
	if err == nil && len(raw) <= mostParts*partBytes {
		return raw, nil
	}
	all = slices.Clone(all)
	for n := range all {
		all[n].given = nil
	}
	return pack(all)
}

// others are the fields of an object as it was given that are others in it as it is written; nil if it was not given.
func others(given, written map[string]any) map[string]any {
	if given == nil {
		return nil
	}
	out := map[string]any{}
	for field, value := range given {
		if is, found := written[field]; !found || !equality.Semantic.DeepEqual(is, value) {
			out[field] = value
		}
	}
	for field := range written {
		if _, found := given[field]; !found {
			out[field] = nil
		}
	}
	return out
}

// givenOf is the reverse of others.
func givenOf(o storedObject) map[string]any {
	if o.Given == nil {
		return nil
	}
	out := maps.Clone(o.Object)
	for field, value := range o.Given {
		if out[field] = value; value == nil {
			delete(out, field)
		}
	}
	return out
}

// pack is the content of these Secrets.
func pack(all []wanted) ([]byte, error) {
	list := make([]storedObject, 0, len(all))
	for _, w := range all {
		list = append(list, storedObject{w.digest, w.content.Object, others(w.given, w.content.Object)})
	}
	raw, err := utiljson.Marshal(list)
	if err != nil {
		return nil, fmt.Errorf("storing what was rendered: %w", err)
	}
	if len(raw) > mostStoredBytes {
		return nil, broken("what the chart renders to takes more than the %s of JSON that can be stored", chart.Mebibytes(mostStoredBytes))
	}
	var out bytes.Buffer
	packer := gzip.NewWriter(&out)
	if _, err := packer.Write(raw); err != nil {
		return nil, fmt.Errorf("storing what was rendered: %w", err)
	}
	if err := packer.Close(); err != nil {
		return nil, fmt.Errorf("storing what was rendered: %w", err)
	}
	return out.Bytes(), nil
}

// unpack is the reverse of pack.
func unpack(packed []byte) ([]wanted, error) {
	unpacker, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	raw, err := io.ReadAll(io.LimitReader(unpacker, mostStoredBytes))
	if err != nil {
		return nil, err
	}
	var list []storedObject
	if err := utiljson.Unmarshal(raw, &list); err != nil {
		return nil, err
	}
	out := make([]wanted, 0, len(list))
	for _, o := range list {
		content := &unstructured.Unstructured{Object: o.Object}
		hook, err := render.HookOf(content)
		if err != nil {
			return nil, err
		}
		out = append(out, wanted{content: content, digest: o.Digest, hook: hook, given: givenOf(o)})
	}
	return out, nil
}
