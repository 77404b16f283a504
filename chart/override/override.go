// SPDX-License-Identifier: Apache-2.0

// Package override applies the changes of ResourceOverrides to objects, those of a chart and those that are placed. Which changes there are
// is decided by package override of apis/rules.
package override

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sort"
	"strings"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"

	rules "shipper.dev/shipper/apis/rules/override"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart"
)

// maxBytes bounds an object after all patches, and what their operations copy together: an API server stores no larger one.
const maxBytes = 3 << 20

// Apply returns an object with the changes that concern it. It returns o itself if there are none, and nil if one deletes it. namespace is
// the one that the object is written to; empty for an object without one. o is not changed. The error is a *chart.Error, or that of ctx.
func Apply(
	ctx context.Context, o *unstructured.Unstructured, namespace string, changes []rules.Change,
) (*unstructured.Unstructured, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	gk := o.GroupVersionKind().GroupKind()
	about := rules.Object{Group: gk.Group, Kind: gk.Kind, Namespace: namespace, Name: o.GetName(), Labels: o.GetLabels()}
	var made []*rules.Change
	for i := range changes {
		c := &changes[i]
		if !c.Concerns(about) {
			continue
		}
		if made = append(made, c); c.Failed != "" || c.Delete {
			break
		}
	}
	if len(made) == 0 {
		return o, nil
	}
	document, err := patch(ctx, o, made)
	if err != nil || made[len(made)-1].Delete {
		return nil, err
	}
	return decode(o, document, made)
}

// operation is one of a change's patch.
type operation struct {
	change *rules.Change
	index  int
}

// patch returns the JSON of an object with the patches of changes. All are applied at once: what their operations copy counts together. A
// change that cannot be made is the last one.
func patch(ctx context.Context, o *unstructured.Unstructured, made []*rules.Change) ([]byte, error) {
	document, err := json.Marshal(o.Object)
	if err != nil {
		return nil, failed(o, "the object is not JSON")
	}
	var of []operation
	var all []shipper.PatchOperation
	for _, c := range made {
		for i := range c.Patch {
			if c.Failed == "" {
				of, all = append(of, operation{c, i}), append(all, c.Patch[i])
			}
		}
	}
	if len(all) > 0 {
		if document, err = patched(ctx, o, document, of, all); err != nil {
			return nil, err
		}
	}
	if last := made[len(made)-1]; last.Failed != "" {
		return nil, failed(o, "%s: %s", nameOf(last), last.Failed)
	}
	return document, nil
}

// patched returns a document with operations; of says whose each is.
func patched(
	ctx context.Context, o *unstructured.Unstructured, document []byte, of []operation, all []shipper.PatchOperation,
) ([]byte, error) {
	text, err := json.Marshal(all)
	if err != nil {
		return nil, failed(o, "a patch is not JSON")
	}
	operations, err := jsonpatch.DecodePatch(text)
	if err != nil {
		return nil, failed(o, "%s: patch is no JSON patch (RFC 6902)", nameOf(of[0].change))
	}
	how := jsonpatch.NewApplyOptions()
	how.EscapeHTML, how.AccumulatedCopySizeLimit = false, maxBytes
	out, err := operations.ApplyWithOptions(document, how)
	if err != nil {
		// Operations apply in order, so the last one of the shortest prefix that fails is the one to name.
		bad := sort.Search(len(operations)-1, func(n int) bool {
			if ctx.Err() != nil {
				return true
			}
			_, err := operations[:n+1].ApplyWithOptions(document, how)
			return err != nil
		})
		if ended := ctx.Err(); ended != nil {
			return nil, ended
		}
		return nil, failed(o, "%s.patch[%d] %s", nameOf(of[bad].change), of[bad].index, whyNot(all[bad], err))
	}
	if len(out) > maxBytes {
		return nil, failed(o, "%s makes it larger than %s", nameOf(of[len(of)-1].change), chart.Mebibytes(maxBytes))
	}
	return out, nil
}

// whyNot is why an operation does not apply. It does not use the library's messages, which may quote values.
func whyNot(operation shipper.PatchOperation, err error) string {
	path, _ := operation["path"].(string)
	if errors.Is(err, jsonpatch.ErrTestFailed) {
		return fmt.Sprintf("(test %s) fails: the object has another value there", chart.Shorten(path))
	}
	if _, ok := errors.AsType[*jsonpatch.AccumulatedCopySizeError](err); ok {
		return fmt.Sprintf("(copy %s) does not apply: the operations on one object may copy %s together", chart.Shorten(path),
			chart.Mebibytes(maxBytes))
	}
	where := chart.Shorten(path)
	if from, ok := operation["from"].(string); ok {
		where = "from " + chart.Shorten(from) + " to " + chart.Shorten(path)
	}
	return fmt.Sprintf("(%v %s) does not apply: the object has no such path; correct it, or add first what contains it",
		operation["op"], where)
}

// decode returns the patched object, unless it is another one than before, or none.
func decode(o *unstructured.Unstructured, document []byte, made []*rules.Change) (*unstructured.Unstructured, error) {
	var names []string
	for _, c := range made {
		names = append(names, nameOf(c))
	}
	by := strings.Join(names, ", ")
	content := map[string]any{}
	if err := json.Unmarshal(document, &content); err != nil || content == nil {
		return nil, failed(o, "%s: the patch makes it something else than an object", by)
	}
	if key := changed(rules.Kept(o.Object), rules.Kept(content)); key != "" {
		return nil, failed(o, "%s: the patch changes %s, which no override may change", by, key)
	}
	for _, field := range []string{"labels", "annotations"} {
		if _, _, err := unstructured.NestedStringMap(content, "metadata", field); err != nil {
			return nil, failed(o, "%s: the patch makes a value of metadata.%s something else than a text: quote numbers and booleans", by, field)
		}
	}
	return &unstructured.Unstructured{Object: content}, nil
}

// changed is the first key that differs; empty if none does.
func changed(before, after map[string][]any) string {
	keys := slices.Sorted(maps.Keys(before))
	for key := range after {
		if _, there := before[key]; !there {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	for _, key := range keys {
		if !equality.Semantic.DeepEqual(before[key], after[key]) {
			return key
		}
	}
	return ""
}

// nameOf names a rule for messages.
func nameOf(c *rules.Change) string {
	return fmt.Sprintf("ResourceOverride %s rules[%d]", c.Override, c.Rule)
}

// failed is the error of changes that cannot be made. It quotes nothing of the object but its name.
func failed(o *unstructured.Unstructured, format string, args ...any) *chart.Error {
	return &chart.Error{Reason: shipper.OverrideFailed, Message: fmt.Sprintf("%s %q cannot be overridden: %s; correct the ResourceOverride, "+
		"and edit the Application for a Release with it", o.GetKind(), chart.Shorten(o.GetName()), fmt.Sprintf(format, args...))}
}

// Failed reports whether an error is that of changes that cannot be made.
func Failed(err error) bool {
	failure, ok := errors.AsType[*chart.Error](err)
	return ok && failure.Reason == shipper.OverrideFailed
}
