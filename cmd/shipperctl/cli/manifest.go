// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// ReadManifest reads the Applications in a file, or in standard input when it is named -; there must be one. Those without a
// namespace are given one.
func ReadManifest(in io.Reader, file, namespace string) ([]*unstructured.Unstructured, error) {
	var raw []byte
	var err error
	if file == "-" {
		raw, err = io.ReadAll(in)
	} else {
		raw, err = os.ReadFile(file)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the manifest: %w", err)
	}
	found, err := applications(raw)
	for _, app := range found {
		if app.GetNamespace() == "" {
			app.SetNamespace(namespace)
		}
	}
	return found, err
}

func applications(raw []byte) ([]*unstructured.Unstructured, error) {
	decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(raw), 4096)
	var out []*unstructured.Unstructured
	for {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(&object.Object)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("reading the manifest: %w", err)
		}
		if object.GroupVersionKind() == shipper.GroupVersion.WithKind("Application") {
			out = append(out, object)
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("there is no Application of %s in the manifest", shipper.GroupVersion)
	}
	return out, nil
}
