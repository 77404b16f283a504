// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart/objects"
	"shipper.dev/shipper/reconciler/retry"
)

const (
	// maxEnvelopeBytes bounds the Envelopes of a pass. It is more than their manifests may have: equal manifests count once.
	maxEnvelopeBytes = 2 * objects.MaxBytes
	// maxLargest is how many objects a SelectionTooLarge names.
	maxLargest = 5
)

// budget bounds the objects that a pass keeps in memory. It has each object once, as it was read first.
type budget struct {
	read map[objects.Key]unstructured.Unstructured
	// count and bytes are of objects that are not Envelopes: each of them is in the content.
	count, bytes             int
	envelopes, envelopeBytes int
	// largest are the largest objects, largest first.
	largest []objects.Sized
}

// add normalises a live object. The error is a *Problem with reason SelectionTooLarge once the bounds are passed.
func (b *budget) add(o *unstructured.Unstructured) (unstructured.Unstructured, error) {
	key := objects.KeyOf(o)
	if before, twice := b.read[key]; twice {
		return before, nil
	}
	is := objects.Normalise(o)
	text, err := objects.Canonical(is)
	if err != nil {
		return unstructured.Unstructured{}, err
	}
	if objects.IsEnvelope(key.GroupKind()) {
		b.envelopes, b.envelopeBytes = b.envelopes+1, b.envelopeBytes+len(text)
	} else {
		b.count, b.bytes = b.count+1, b.bytes+len(text)
	}
	b.largest = append(b.largest, objects.Sized{Key: key, Bytes: len(text)})
	slices.SortStableFunc(b.largest, func(x, y objects.Sized) int { return cmp.Compare(y.Bytes, x.Bytes) })
	b.largest = b.largest[:min(len(b.largest), maxLargest)]
	if max(b.count, b.envelopes) > objects.MaxObjects || b.bytes > objects.MaxBytes || b.envelopeBytes > maxEnvelopeBytes {
		return unstructured.Unstructured{}, b.tooLarge()
	}
	if b.read == nil {
		b.read = map[objects.Key]unstructured.Unstructured{}
	}
	b.read[key] = *is
	return *is, nil
}

// tooLarge says how much was read. The next pass comes without an event, since no watch has the objects that were not read.
func (b *budget) tooLarge() *Problem {
	large := &objects.TooLarge{Objects: b.count + b.envelopes, Bytes: b.bytes + b.envelopeBytes, Largest: b.largest, Partial: true}
	return &Problem{Reason: shipper.SelectionTooLarge, Message: large.Error(), action: retry.Recheck, cause: large}
}

// dropContent replaces objects by their names, which is all that watches need.
func dropContent(all []found) []found {
	for _, f := range all {
		for i := range f.objects {
			name := unstructured.Unstructured{}
			name.SetName(f.objects[i].GetName())
			f.objects[i] = name
		}
	}
	return all
}
