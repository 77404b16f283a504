// SPDX-License-Identifier: Apache-2.0

package values

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart"
)

// MaxHeldBytes bounds all ConfigMaps and Secrets of one Release together: Shipper keeps them in one Secret.
const MaxHeldBytes = corev1.MaxSecretSize

// Pinned are the ConfigMaps and Secrets with values of an Application's Release, and the digests of their content.
type Pinned struct {
	Namespace, App, Release string
	From                    []shipper.ValuesSource
	Digests                 map[string]string
}

// PinnedOf is the Pinned of a Release.
func PinnedOf(rel *shipper.Release) Pinned {
	return Pinned{
		Namespace: rel.Namespace, App: rel.Labels[shipper.AppLabel], Release: rel.Name,
		From: rel.Spec.Environment.ValuesFrom, Digests: rel.Spec.Environment.ValuesDigests,
	}
}

// Held is the content of ConfigMaps and Secrets, by ValuesSource.String. Missing optional ones are not in it.
type Held map[string][]byte

// SourceError is a problem with one entry of ValuesFrom.
type SourceError struct {
	Index int
	// Key reports whether the problem is with the key or with the object.
	Key bool
	// Forbidden is set when Shipper may not read it.
	Forbidden bool
	// Message is a phrase about the source, without its content.
	Message string
}

// Error is the message.
func (e *SourceError) Error() string { return e.Message }

// ReadSources reads the present content of sources. reader must not cache it. Errors are *chart.Error, and wrap a *SourceError if one
// source is the cause; they do not quote content.
func ReadSources(ctx context.Context, reader client.Reader, namespace string, from []shipper.ValuesSource) (Held, error) {
	held, size := Held{}, 0
	for i, source := range from {
		content, there, err := readSource(ctx, reader, namespace, source, i)
		if err != nil {
			return nil, err
		}
		if !there {
			continue
		}
		if size += len(content); size > MaxHeldBytes {
			return nil, blame(i, true, "all of valuesFrom hold more than %s together; put large files into the chart", chart.Mebibytes(MaxHeldBytes))
		}
		if _, why := parseValues(content); why != "" {
			return nil, blame(i, true, "%s of %s %s", source.Ref().Key, where(namespace, source), why)
		}
		held[source.String()] = content
	}
	return held, nil
}

func readSource(
	ctx context.Context, reader client.Reader, namespace string, source shipper.ValuesSource, i int,
) (content []byte, there bool, err error) {
	ref, key := source.Ref(), client.ObjectKey{Namespace: namespace, Name: source.Ref().Name}
	if source.Secret() {
		var secret corev1.Secret
		err = reader.Get(ctx, key, &secret)
		content, there = secret.Data[ref.Key]
	} else {
		var cm corev1.ConfigMap
		err = reader.Get(ctx, key, &cm)
		if content, there = cm.BinaryData[ref.Key]; !there {
			var text string
			text, there = cm.Data[ref.Key]
			content = []byte(text)
		}
	}
	switch {
	case apierrors.IsNotFound(err) && ref.Optional:
		return nil, false, nil
	case apierrors.IsNotFound(err):
		return nil, false, blame(i, false, "there is no %s", where(namespace, source))
	case apierrors.IsForbidden(err):
		failure := blame(i, false, "Shipper may not read %s; %s", where(namespace, source), PermissionHint(namespace))
		failure.Cause = &SourceError{Index: i, Forbidden: true, Message: failure.Message}
		return nil, false, failure
	case err != nil:
		return nil, false, &chart.Error{Reason: shipper.ValuesFetchFailure, Retry: true, Cause: err,
			Message: fmt.Sprintf("reading %s: %s", where(namespace, source), err)}
	case !there && !ref.Optional:
		return nil, false, blame(i, true, "%s has no key %s", where(namespace, source), ref.Key)
	}
	return content, there, nil
}

// PermissionHint explains how to permit Shipper to read what Applications of a namespace name, and to keep it.
func PermissionHint(namespace string) string {
	return fmt.Sprintf("who owns the namespace may let it read the Secrets and ConfigMaps there, and keep values in Secrets of its own: "+
		"%s", shipper.BindCommand(shipper.ValuesKeeper, namespace))
}

func where(namespace string, source shipper.ValuesSource) string {
	kind := "ConfigMap"
	if source.Secret() {
		kind = "Secret"
	}
	return fmt.Sprintf("%s %s/%s", kind, namespace, source.Ref().Name)
}

// blame is a problem with the i-th source: with its key, or with the object.
func blame(i int, key bool, format string, args ...any) *chart.Error {
	message := fmt.Sprintf(format, args...)
	cause := &SourceError{Index: i, Key: key, Message: message}
	return &chart.Error{Reason: shipper.ValuesFetchFailure, Retry: true, Message: message, Cause: cause}
}

// line finds the line number in a YAML error. Other parts of the error may quote the text.
var line = regexp.MustCompile(`\bline [0-9]+\b`)

// parseValues parses a values file. why is the error without any content, if it is not valid.
func parseValues(content []byte) (values map[string]any, why string) {
	asJSON, err := yaml.YAMLToJSON(content)
	if err != nil {
		if at := line.FindString(err.Error()); at != "" {
			return nil, "is not YAML, in " + at
		}
		return nil, "is not YAML"
	}
	var read any
	if err := json.Unmarshal(asJSON, &read); err != nil {
		return nil, "is not YAML that JSON can hold"
	}
	switch typed := read.(type) {
	case nil:
		return map[string]any{}, ""
	case map[string]any:
		return typed, ""
	default:
		return nil, "is YAML, but no map of values"
	}
}

// DigestsOf are the digests of the content of an Application's sources. For a ConfigMap it is the sha256; for a Secret it is a
// hash that is slow to guess and differs between Applications.
func (p Pinned) DigestsOf(held Held) (map[string]string, error) {
	out := make(map[string]string, len(p.From))
	for _, source := range p.From {
		content, there := held[source.String()]
		switch {
		case !there:
			out[source.String()] = shipper.ValuesAbsent
		case source.Secret():
			sum, err := slowSum(content, p.Namespace+"/"+p.App+"/"+source.String())
			if err != nil {
				return nil, fmt.Errorf("digesting %s: %w", where(p.Namespace, source), err)
			}
			out[source.String()] = "pbkdf2:" + hex.EncodeToString(sum)
		default:
			sum := sha256.Sum256(content)
			out[source.String()] = "sha256:" + hex.EncodeToString(sum[:])
		}
	}
	return out, nil
}

// Key is a secret key that requires knowledge of all values and is slow to guess. It is used for digests of rendered objects
// that other users can read.
func (p Pinned) Key(values map[string]any) ([]byte, error) {
	text, err := json.Marshal(values)
	if err != nil {
		return nil, fmt.Errorf("making a key of values: %w", err)
	}
	key, err := slowSum(text, p.Namespace+"/"+p.App+"/objects")
	if err != nil {
		return nil, fmt.Errorf("making a key of values: %w", err)
	}
	return key, nil
}

// Differing names the first source whose content is not the pinned one; empty when all are equal.
func (p Pinned) Differing(held Held) (string, error) {
	digests, err := p.DigestsOf(held)
	if err != nil {
		return "", err
	}
	for _, source := range p.From {
		if digests[source.String()] != p.Digests[source.String()] {
			return where(p.Namespace, source), nil
		}
	}
	return "", nil
}

// Merge merges the content of the sources, each over those before it, as Helm merges values files.
func (p Pinned) Merge(held Held) (map[string]any, error) {
	merged := map[string]any{}
	for i, source := range p.From {
		values, why := parseValues(held[source.String()])
		if why != "" {
			return nil, blame(i, true, "%s of %s %s", source.Ref().Key, where(p.Namespace, source), why)
		}
		merged = mergeMaps(merged, values)
	}
	return merged, nil
}

// Secret reports whether some of the values are secret.
func (p Pinned) Secret() bool {
	for _, source := range p.From {
		if source.Secret() {
			return true
		}
	}
	return false
}
