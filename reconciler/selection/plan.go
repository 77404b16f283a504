// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart/objects"
	"shipper.dev/shipper/reconciler/retry"
)

// maxCauses bounds the errors of Envelopes in a message.
const maxCauses = 5

// Content is what an Application selects.
type Content struct {
	// Digest is that of the whole content.
	Digest string
	// Objects is the number of objects.
	Objects int
	// Message describes the content for users: `14 objects: 1 Namespace, …, digest abcdef012345`.
	Message string
	// parts are nil if an earlier pass has read the content.
	parts []objects.Part
	// first is the time of the change that made the pass; zero if there was none.
	first time.Time
}

// IsNew reports whether the content was read just now, and not by an earlier pass.
func (c *Content) IsNew() bool { return c.parts != nil }

// withoutParts is what stays in memory.
func (c *Content) withoutParts() *Content {
	if c == nil {
		return nil
	}
	out := *c
	out.parts = nil
	return &out
}

// planContent is pure: it makes content of what was read. Errors are *Problem.
func planContent(all []found, policy objects.Policy, scope objects.Scope) (*Content, error) {
	c := &collector{policy: policy, scope: scope, seen: map[objects.Key]int{}}
	var notes []string
	for _, f := range all {
		if f.note != "" {
			notes = append(notes, f.note)
		}
		for i := range f.objects {
			if err := c.add(&f.objects[i]); err != nil {
				return nil, err
			}
		}
	}
	if len(c.causes) > 0 {
		return nil, problemf(shipper.SelectionInvalid, retry.Wait, "%s", c.message())
	}
	if len(c.objects) == 0 {
		message := "no object is selected: check the names, labels and namespaces in select; nothing is removed until the Application is"
		if len(notes) > 0 {
			message += ": " + strings.Join(notes, ", ")
		}
		return nil, problemf(shipper.SelectionEmpty, retry.Wait, "%s", message)
	}
	parts, err := objects.Split(c.objects)
	if large, ok := errors.AsType[*objects.TooLarge](err); ok {
		return nil, &Problem{Reason: shipper.SelectionTooLarge, Message: large.Error(), action: retry.Wait, cause: err}
	}
	if err != nil {
		return nil, problemf(shipper.SelectionInvalid, retry.Wait, "%s", err)
	}
	digest := parts[0].Digest
	return &Content{
		Digest: digest, Objects: len(c.objects), Message: describe(objects.Summarise(c.objects), digest, notes), parts: parts,
	}, nil
}

// collector collects objects, each once.
type collector struct {
	policy  objects.Policy
	scope   objects.Scope
	objects []unstructured.Unstructured
	// from has for each object the Envelope that it is from; empty for live objects.
	from []string
	// seen has the index of each object.
	seen   map[objects.Key]int
	causes []string
}

// add adds a live object or the manifests of an Envelope.
func (c *collector) add(o *unstructured.Unstructured) error {
	key := objects.KeyOf(o)
	if !objects.IsEnvelope(key.GroupKind()) {
		return c.one(o, "")
	}
	if _, twice := c.seen[key]; twice {
		return nil
	}
	c.seen[key] = -1
	manifests, err := manifestsOf(o)
	if err != nil {
		c.causes = append(c.causes, fmt.Sprintf("%s: %s", key, err))
		return nil
	}
	unpacked, causes := c.policy.Unpack(manifests, o.GetNamespace(), c.scope)
	for _, cause := range causes {
		c.causes = append(c.causes, fmt.Sprintf("%s: %s", key, cause))
	}
	for i := range unpacked {
		if err := c.one(&unpacked[i], key.String()); err != nil {
			return err
		}
	}
	return nil
}

// one adds an object that is in content. A live object that is selected twice is taken once, in the version that was read first.
func (c *collector) one(o *unstructured.Unstructured, from string) error {
	key := objects.KeyOf(o)
	at, twice := c.seen[key]
	if !twice {
		c.seen[key] = len(c.objects)
		c.objects, c.from = append(c.objects, *o), append(c.from, from)
		return nil
	}
	if from == c.from[at] {
		return nil
	}
	before, err := objects.Canonical(&c.objects[at])
	if err != nil {
		return fmt.Errorf("comparing %s: %w", key, err)
	}
	after, err := objects.Canonical(o)
	if err != nil {
		return fmt.Errorf("comparing %s: %w", key, err)
	}
	if !bytes.Equal(before, after) {
		c.causes = append(c.causes, fmt.Sprintf("%s is selected twice, with different content: %s and %s", key,
			sourceName(c.from[at]), sourceName(from)))
	}
	return nil
}

func sourceName(envelope string) string {
	if envelope == "" {
		return "the object itself"
	}
	return envelope
}

func (c *collector) message() string {
	causes := c.causes
	if rest := len(causes) - maxCauses; rest > 0 {
		causes = append(causes[:maxCauses:maxCauses], fmt.Sprintf("and %d more", rest))
	}
	return strings.Join(causes, "; ")
}

// manifestsOf are the manifests of an Envelope.
func manifestsOf(o *unstructured.Unstructured) ([]unstructured.Unstructured, error) {
	list, _, err := unstructured.NestedSlice(o.Object, "spec", "manifests")
	if err != nil {
		return nil, err
	}
	out := make([]unstructured.Unstructured, len(list))
	for i, element := range list {
		manifest, ok := element.(map[string]any)
		if !ok {
			return nil, field.TypeInvalid(field.NewPath("spec", "manifests").Index(i), "", "want an object")
		}
		out[i].Object = manifest
	}
	return out, nil
}

// sum is a short hash of a value as JSON.
func sum(value any) (string, error) {
	hash := fnv.New128a()
	if err := json.NewEncoder(hash).Encode(value); err != nil {
		return "", fmt.Errorf("hashing selectors: %w", err)
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}
