// SPDX-License-Identifier: Apache-2.0

package artifact

import (
	"context"
	"fmt"

	"golang.org/x/sync/singleflight"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart"
	"shipper.dev/shipper/chart/lru"
	"shipper.dev/shipper/chart/objects"
	"shipper.dev/shipper/chart/values"
)

const (
	// maxMemory bounds the memory for content that was read.
	maxMemory = 32 << 20
	// memoryPerByte is how much memory decoded objects take for each byte of their JSON, by measurement of typical manifests.
	memoryPerByte = 4
	// maxParts bounds the parts of a snapshot that is read. More than 8 MiB of content never has.
	maxParts = 64
)

// Resources store and read the content of resources. They are safe for concurrent use.
type Resources struct {
	set
	reader client.Reader
	memory *lru.Cache[client.ObjectKey, []unstructured.Unstructured]
	reads  singleflight.Group
}

// NewResources returns Resources. The cache of c has the metadata of ResourceSnapshots, and Releases. reader reads from the API server,
// and must not keep ResourceSnapshots or Secrets in memory.
func NewResources(c client.Client, reader client.Reader) *Resources {
	return &Resources{
		set: set{resourceSnapshot, c}, reader: reader, memory: lru.New[client.ObjectKey, []unstructured.Unstructured](maxMemory),
	}
}

// Content is what is kept in a namespace with a digest, Secrets included, sorted by objects.Key. The caller may change it. Errors about the
// snapshot are *chart.Error with the reason SelectionNotReadable; they wrap chart.ErrNotKept when a part is missing.
func (s *Resources) Content(ctx context.Context, namespace, digest string) ([]unstructured.Unstructured, error) {
	key := client.ObjectKey{Namespace: namespace, Name: digest}
	// All clusters of a new Release ask at the same time: one of them reads.
	shared, err, _ := s.reads.Do(key.String(), func() (any, error) { return s.read(ctx, key) })
	content, ok := shared.([]unstructured.Unstructured)
	if err != nil || !ok {
		return nil, err
	}
	out := make([]unstructured.Unstructured, len(content))
	for i := range content {
		content[i].DeepCopyInto(&out[i])
	}
	return out, nil
}

// read returns content from memory, or from the API server.
func (s *Resources) read(ctx context.Context, key client.ObjectKey) ([]unstructured.Unstructured, error) {
	if content, ok := s.memory.Get(key); ok {
		return content, nil
	}
	parts, err := s.parts(ctx, key.Namespace, key.Name)
	if err != nil {
		return nil, err
	}
	content, err := objects.Join(parts)
	if err != nil {
		return nil, noContent(err, "the content with the digest %.12s in namespace %s is damaged: %s", key.Name, key.Namespace, err)
	}
	s.memory.Put(key, content, int64(parts[0].Bytes)*memoryPerByte)
	return content, nil
}

// parts reads all parts from the API server. Their number is that of the head.
func (s *Resources) parts(ctx context.Context, namespace, digest string) ([]objects.Part, error) {
	var out []objects.Part
	var head shipper.ResourceSnapshotSpec
	for n := int32(1); n == 1 || n <= head.Parts; n++ {
		var part shipper.ResourceSnapshot
		key := client.ObjectKey{Namespace: namespace, Name: shipper.ResourceSnapshotName(digest, n)}
		if err := s.reader.Get(ctx, key, &part); err != nil {
			return nil, unread(resourceSnapshot, key, err)
		}
		if n == 1 {
			head = part.Spec
			if head.Digest != digest || head.Parts > maxParts || head.Secrets > maxParts {
				return nil, noContent(nil, "ResourceSnapshot %s was not made by Shipper: delete it", key)
			}
		}
		out = append(out, partOfSnapshot(part.Spec))
	}
	for n := int32(1); n <= head.Secrets; n++ {
		secret := &corev1.Secret{}
		key := client.ObjectKey{Namespace: namespace, Name: shipper.ResourceSnapshotName(digest, n)}
		if err := s.reader.Get(ctx, key, secret); err != nil {
			return nil, unread("Secret", key, err)
		}
		part, err := partOfSecret(secret)
		if err != nil {
			return nil, noContent(err, "Secret %s was not made by Shipper: delete it", key)
		}
		out = append(out, part)
	}
	return out, nil
}

// unread describes an error of reading a part.
func unread(kind string, key client.ObjectKey, err error) error {
	switch {
	case apierrors.IsNotFound(err):
		return noContent(fmt.Errorf("%s %s: %w", kind, key, chart.ErrNotKept), "%s %s with content of the Release does not exist", kind, key)
	case apierrors.IsForbidden(err) && kind == "Secret":
		return noContent(err, "Shipper may not read Secret %s; %s", key, values.PermissionHint(key.Namespace))
	default:
		return fmt.Errorf("reading %s %s: %w", kind, key, err)
	}
}

// noContent is why there is no content, or why it cannot be stored.
func noContent(cause error, format string, args ...any) error {
	return failed(shipper.SelectionNotReadable, cause, fmt.Sprintf(format, args...))
}
