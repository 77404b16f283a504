// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/client-go/kubernetes/scheme"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/fleet"
)

// witness follows every write to the workload objects of a namespace in an application cluster, and records those that change
// more than marks of ownership. It reads etcd, and so misses no write while a test stops the API server.
type witness struct {
	cluster   *fleet.Cluster
	namespace string

	mu     sync.Mutex
	seen   map[string]int64 // revision of the last write, by key of each object that exists
	writes int
	moved  []string
}

// witnessed lists the prefixes of the keys under which API servers store these objects.
func (w *witness) witnessed() []string {
	var out []string
	for _, kind := range []string{"pods", "endpointslices", "services/specs", "deployments", "replicasets", "configmaps"} {
		out = append(out, kind+"/"+w.namespace+"/")
	}
	return out
}

// there returns the revisions of the last write of the stored objects, by key.
func (w *witness) there(ctx context.Context) (map[string]int64, error) {
	all, err := w.cluster.Stored(ctx)
	maps.DeleteFunc(all, func(key string, _ int64) bool {
		return !slices.ContainsFunc(w.witnessed(), func(prefix string) bool { return strings.HasPrefix(key, prefix) })
	})
	return all, err
}

// newWitness follows the writes until ctx ends.
func newWitness(ctx context.Context, cluster *fleet.Cluster, namespace string) (*witness, error) {
	w := &witness{cluster: cluster, namespace: namespace}
	since, err := cluster.Revision(ctx)
	if err != nil {
		return nil, fmt.Errorf("looking at %s: %w", cluster.Name, err)
	}
	if w.seen, err = w.there(ctx); err != nil {
		return nil, fmt.Errorf("looking at %s: %w", cluster.Name, err)
	}
	go func() {
		err := cluster.Follow(ctx, since, w.witnessed(), w.take)
		w.mu.Lock()
		defer w.mu.Unlock()
		w.moved = append(w.moved, fmt.Sprintf("%s: not every write was seen: %v", cluster.Name, err))
	}()
	return w, nil
}

func (w *witness) take(change fleet.Change) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.writes++
	if w.seen[change.Key] = change.Revision; len(change.After) == 0 {
		delete(w.seen, change.Key)
	}
	if diff := cmp.Diff(moving(change.Before), moving(change.After)); diff != "" {
		w.moved = append(w.moved, w.cluster.Name+": "+change.Key+" (-before +after)\n"+diff)
	}
}

// moving returns the fields of a stored object that matter to users; nil if there is no object.
func moving(stored []byte) map[string]any {
	if len(stored) == 0 {
		return nil
	}
	o, _, err := scheme.Codecs.UniversalDeserializer().Decode(stored, nil, nil)
	if err != nil {
		return map[string]any{"unreadable": fmt.Sprintf("%v: %q", err, stored)}
	}
	out, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return map[string]any{"unreadable": err.Error()}
	}
	for _, bookkeeping := range [][]string{
		{"metadata", "resourceVersion"}, {"metadata", "managedFields"}, {"metadata", "ownerReferences"},
		{"metadata", "annotations", shipper.InstalledDigestAnnotation},
		{"metadata", "generation"}, {"status", "observedGeneration"}, // annotating a Deployment increments its generation
	} {
		unstructured.RemoveNestedField(out, bookkeeping...)
	}
	if out["kind"] == "Deployment" { // Progressing turns False by itself after ten minutes; the numbers of Pods stay
		unstructured.RemoveNestedField(out, "status", "conditions")
	}
	if turns, _, _ := unstructured.NestedString(out, "metadata", "labels", shipper.LBLabel); turns != "" && out["kind"] == "Service" {
		unstructured.RemoveNestedField(out, "spec", "selector") // the EndpointSlices show which Pods serve
	}
	if proof, _, _ := unstructured.NestedString(out, "metadata", "labels", shipper.ProofLabel); proof != "" {
		return nil // no client uses this Service
	}
	if annotations, _, _ := unstructured.NestedMap(out, "metadata", "annotations"); len(annotations) == 0 {
		unstructured.RemoveNestedField(out, "metadata", "annotations")
	}
	if _, anchor, _ := unstructured.NestedString(out, "data", shipper.AnchorTargetUIDKey); anchor {
		unstructured.RemoveNestedField(out, "data")
		unstructured.RemoveNestedField(out, "metadata", "labels")
		unstructured.RemoveNestedField(out, "metadata", "finalizers")
	}
	return out
}

// comesToRest waits until the cluster's controllers have caught up: the witness would count their later writes.
func (s *fixture) comesToRest() {
	s.Helper()
	for _, c := range world.Fleet.Applications {
		s.Eventually("what is left to do in "+c.Name, "", func() (string, error) {
			behind, err := c.Behind(s.Ctx, s.Namespace)
			return strings.Join(behind, "\n"), err
		})
	}
}

// movements waits until the witness has seen every write, and returns the recorded ones.
func (s *fixture) movements(w *witness) []string {
	s.Helper()
	s.Eventually("what the witness of "+w.cluster.Name+" has not seen", "", func() (string, error) {
		there, err := w.there(s.Ctx)
		w.mu.Lock()
		defer w.mu.Unlock()
		return cmp.Diff(w.seen, there), err
	})
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.moved)
}

// happened counts all writes, recorded or not.
func (w *witness) happened() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.writes
}

// written lists the writes of an account to a namespace of a cluster, each once.
func (s *fixture) written(c *fleet.Cluster, user, namespace string) []string {
	s.Helper()
	file, err := os.Open(c.AuditLog)
	s.Must("opening the audit log", err)
	defer file.Close()
	all := map[string]bool{}
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var e auditv1.Event
		if json.Unmarshal(lines.Bytes(), &e) != nil || e.User.Username != user || e.ObjectRef == nil || e.ObjectRef.Namespace != namespace {
			continue
		}
		if !slices.Contains([]string{"get", "list", "watch"}, e.Verb) {
			all[e.Verb+" "+e.ObjectRef.Resource+" "+e.ObjectRef.Name] = true
		}
	}
	s.Must("reading the audit log", lines.Err())
	return slices.Sorted(maps.Keys(all))
}
