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

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart/objects"
	"shipper.dev/shipper/reconciler/retry"
)

// maxCauses bounds the errors of Envelopes in a message.
const maxCauses = 5

// content is what one pass takes.
type content struct {
	digest string
	parts  []objects.Part
	// summary counts the objects, for messages.
	summary string
	// notes name objects that are selected by name and not taken.
	notes []string
}

// planContent is pure: it makes content of what was read. Errors are *problem.
func planContent(all []found, policy objects.Policy, scope objects.Scope) (*content, error) {
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
		return nil, &problem{reason: shipper.SelectionTooLarge, message: large.Error(), action: retry.Wait, cause: err}
	}
	if err != nil {
		return nil, problemf(shipper.SelectionInvalid, retry.Wait, "%s", err)
	}
	return &content{parts[0].Digest, parts, objects.Summarise(c.objects), notes}, nil
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

// takenOf is what the pin of an Application was last set for; without a digest if that is not known.
func takenOf(app *shipper.Application) shipper.TakenResources {
	var out shipper.TakenResources
	if json.Unmarshal([]byte(app.Annotations[shipper.AppResourcesTakenAnnotation]), &out) != nil {
		return shipper.TakenResources{} // a user wrote it
	}
	return out
}

// wanted is what a pin would be set for now, but for the digest.
func wanted(app *shipper.Application) (shipper.TakenResources, error) {
	out := shipper.TakenResources{Refresh: app.Annotations[shipper.AppResourcesRefreshAnnotation]}
	if app.Spec.Template.Resources.Follow != shipper.FollowOnRefresh {
		return out, nil
	}
	template := app.Spec.Template.DeepCopy()
	template.Pins = nil
	var err error
	out.Template, err = sum(template)
	return out, err
}

// sum is a short hash of a value as JSON.
func sum(value any) (string, error) {
	hash := fnv.New128a()
	if err := json.NewEncoder(hash).Encode(value); err != nil {
		return "", fmt.Errorf("hashing a template: %w", err)
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}

// asks reports whether content is to be taken whatever it is: there is none, a user asks for it, or follow is OnRefresh and a user has
// edited the template. After a rollback or an abort the pin is not what was taken last, and the template that has come back is no edit.
func asks(pin string, was, is shipper.TakenResources) bool {
	return pin == "" || was.Digest == "" || was.Refresh != is.Refresh || was.Template != is.Template && was.Digest == pin
}

// follows reports whether a pass has to read the selected objects.
func follows(app *shipper.Application, is shipper.TakenResources) bool {
	return app.Spec.Template.Resources.Follow != shipper.FollowOnRefresh || asks(app.Spec.Template.Pins.Digest(), takenOf(app), is)
}

// planPin is pure: it returns the Application with its template pinned to a digest; nil if the template stays as it is. With follow Always
// content is taken when it differs from what was taken last: a rollback or an abort stays until then.
func planPin(app *shipper.Application, digest string, is shipper.TakenResources) (*shipper.Application, error) {
	was := takenOf(app)
	is.Digest = digest
	if !asks(app.Spec.Template.Pins.Digest(), was, is) && was.Digest == digest {
		return nil, nil
	}
	if was == is && app.Spec.Template.Pins.Digest() == digest {
		return nil, nil
	}
	text, err := json.Marshal(is)
	if err != nil {
		return nil, fmt.Errorf("encoding what was taken: %w", err)
	}
	out := app.DeepCopy()
	if out.Annotations == nil {
		out.Annotations = map[string]string{}
	}
	out.Annotations[shipper.AppResourcesTakenAnnotation] = string(text)
	if out.Spec.Template.Pins == nil {
		out.Spec.Template.Pins = &shipper.Pins{}
	}
	out.Spec.Template.Pins.Resources = digest
	return out, nil
}
