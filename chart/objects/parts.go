// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
)

// Bounds of the content of one snapshot.
const (
	// MaxObjects bounds the objects of a snapshot.
	MaxObjects = 2000
	// MaxBytes bounds the canonical bytes of a snapshot.
	MaxBytes = 8 << 20
	// MaxPartBytes bounds the data of a part, counted as a JSON string: etcd takes 1.5 MiB for each object, metadata included.
	MaxPartBytes = 768 << 10
	// largest is how many objects a TooLarge names.
	largest = 5
)

// Part is some of the content of a snapshot. Its fields but Secret are those of ResourceSnapshot.spec.
type Part struct {
	// Digest is that of the whole content, in all parts.
	Digest string
	// Objects and Bytes are the number of objects in all parts, and the sum of their canonical bytes.
	Objects, Bytes int
	// Parts is the number of parts, Part the number of this one, from 0.
	Parts, Part int
	// Secret is true if Data has Secrets: it must be stored in a Secret. It is false if Data has other objects.
	Secret bool
	// Data is a sequence of canonical lines. An object that is larger than a part continues in the next one.
	Data string
}

// TooLarge is the error of content that is over the bounds of a snapshot.
type TooLarge struct {
	Objects, Bytes int
	// Largest are the five largest objects, largest first.
	Largest []Sized
	// Partial is true if there are more objects, which were not read.
	Partial bool
}

// Sized is an object with its canonical bytes.
type Sized struct {
	Key
	Bytes int
}

// Error names the bounds and the largest objects.
func (e *TooLarge) Error() string {
	names := make([]string, len(e.Largest))
	for i, o := range e.Largest {
		names[i] = fmt.Sprintf("%s (%s)", o.Key, formatBytes(o.Bytes))
	}
	atLeast := ""
	if e.Partial {
		atLeast = "at least "
	}
	return fmt.Sprintf("%s%d objects with %s together: at most %d objects with %s can be placed; the largest are %s",
		atLeast, e.Objects, formatBytes(e.Bytes), MaxObjects, formatBytes(MaxBytes), strings.Join(names, ", "))
}

// formatBytes formats a size as 512 B, 1.5 KiB or 8 MiB.
func formatBytes(n int) string {
	trim := func(v float64, unit string) string {
		return strings.TrimSuffix(fmt.Sprintf("%.1f", v), ".0") + " " + unit
	}
	switch {
	case n >= 1<<20:
		return trim(float64(n)/(1<<20), "MiB")
	case n >= 1<<10:
		return trim(float64(n)/(1<<10), "KiB")
	default:
		return fmt.Sprintf("%d B", n)
	}
}

// Split distributes objects to parts, Secrets apart from the rest. The first part is not secret, and is there without objects too. The
// error is a *TooLarge, or names an object that is there twice.
func Split(objects []unstructured.Unstructured) ([]Part, error) { return split(objects, MaxPartBytes) }

// split is Split with another bound for a part.
func split(objects []unstructured.Unstructured, most int) ([]Part, error) {
	lines, err := canonicalLines(objects)
	if err != nil {
		return nil, err
	}
	size := 0
	for i, l := range lines {
		if size += len(l.text); i > 0 && l.key == lines[i-1].key {
			return nil, fmt.Errorf("%s is there twice", l.key)
		}
	}
	if len(lines) > MaxObjects || size > MaxBytes {
		return nil, tooLarge(lines, size)
	}
	plain, secrets := &packer{most: most}, &packer{most: most}
	for _, l := range lines {
		if l.key.GroupKind() == secret {
			secrets.add(string(l.text))
		} else {
			plain.add(string(l.text))
		}
	}
	plain.close()
	if len(plain.out) == 0 {
		plain.out = []string{""}
	}
	secrets.close()
	all := slices.Concat(plain.out, secrets.out)
	digest, parts := digestOf(lines), make([]Part, len(all))
	for i, data := range all {
		parts[i] = Part{
			Digest: digest, Objects: len(lines), Bytes: size, Parts: len(all), Part: i, Secret: i >= len(plain.out), Data: data,
		}
	}
	return parts, nil
}

func tooLarge(lines []line, size int) *TooLarge {
	sizes := make([]Sized, len(lines))
	for i, l := range lines {
		sizes[i] = Sized{l.key, len(l.text)}
	}
	slices.SortStableFunc(sizes, func(a, b Sized) int { return cmp.Compare(b.Bytes, a.Bytes) })
	return &TooLarge{Objects: len(lines), Bytes: size, Largest: sizes[:min(len(sizes), largest)]}
}

// packer fills texts up to a length, counted as JSON strings.
type packer struct {
	most, used int
	current    strings.Builder
	out        []string
}

// add adds a line to the current text, or else to the next ones.
func (p *packer) add(text string) {
	if n := quotedLen(text); n <= p.most {
		if p.used+n > p.most {
			p.close()
		}
		p.current.WriteString(text)
		p.used += n
		return
	}
	p.close()
	for _, r := range text {
		n := quotedRune(r)
		if p.used+n > p.most {
			p.close()
		}
		p.current.WriteRune(r)
		p.used += n
	}
}

// close ends the current text.
func (p *packer) close() {
	if p.current.Len() > 0 {
		p.out = append(p.out, p.current.String())
	}
	p.current.Reset()
	p.used = 0
}

// quotedLen is the length of a text within a JSON string, as the API server writes it.
func quotedLen(text string) int {
	n := 0
	for _, r := range text {
		n += quotedRune(r)
	}
	return n
}

func quotedRune(r rune) int {
	switch {
	case r == '"', r == '\\', r == '\n', r == '\r', r == '\t', r == '\b', r == '\f':
		return 2
	case r < 0x20, r == '<', r == '>', r == '&', r == '\u2028', r == '\u2029':
		return 6
	default:
		return utf8.RuneLen(r)
	}
}

// Join is the content of the parts of one snapshot, sorted by Key. The order of parts does not matter. It is an error if a part is missing,
// is there twice or belongs to another snapshot, or if the content does not have the digest.
func Join(parts []Part) ([]unstructured.Unstructured, error) {
	if len(parts) == 0 {
		return nil, errors.New("the snapshot has no parts")
	}
	sorted := slices.Clone(parts)
	slices.SortStableFunc(sorted, func(a, b Part) int { return cmp.Compare(a.Part, b.Part) })
	if err := checkParts(sorted); err != nil {
		return nil, err
	}
	var data [2]strings.Builder
	for _, p := range sorted {
		if p.Secret {
			data[1].WriteString(p.Data)
		} else {
			data[0].WriteString(p.Data)
		}
	}
	var objects []unstructured.Unstructured
	var lines []line
	for i := range data {
		for text := range bytes.Lines([]byte(data[i].String())) {
			o := unstructured.Unstructured{}
			if err := json.Unmarshal(text, &o.Object); err != nil {
				return nil, fmt.Errorf("object %d of the snapshot cannot be read: %w", len(objects), err)
			}
			objects, lines = append(objects, o), append(lines, line{KeyOf(&o), text})
		}
	}
	sortLines(lines)
	if got := digestOf(lines); got != sorted[0].Digest || len(objects) != sorted[0].Objects {
		return nil, fmt.Errorf("the snapshot has %d objects with the digest %s, want %d with %s",
			len(objects), got, sorted[0].Objects, sorted[0].Digest)
	}
	Sort(objects)
	return objects, nil
}

// checkParts returns an error unless sorted parts are all parts of one snapshot.
func checkParts(sorted []Part) error {
	first := sorted[0]
	for i, p := range sorted {
		same := p.Digest == first.Digest && p.Objects == first.Objects && p.Bytes == first.Bytes && p.Parts == first.Parts
		switch {
		case !same:
			return fmt.Errorf("parts %d and %d are of different snapshots, with the digests %s and %s",
				first.Part, p.Part, first.Digest, p.Digest)
		case i > 0 && p.Part == sorted[i-1].Part:
			return fmt.Errorf("part %d of the snapshot is there twice", p.Part)
		case p.Part < 0 || p.Part >= p.Parts:
			return fmt.Errorf("part %d of the snapshot is not one of its %d parts", p.Part, p.Parts)
		case p.Part != i:
			return fmt.Errorf("part %d of the snapshot is missing: it has %d parts", i, p.Parts)
		}
	}
	if len(sorted) != first.Parts {
		return fmt.Errorf("part %d of the snapshot is missing: it has %d parts", len(sorted), first.Parts)
	}
	return nil
}
