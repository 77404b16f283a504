// SPDX-License-Identifier: Apache-2.0

// Package response turns a judgement into what the API server, the user, the auditor and the operator are told: a status
// with one cause per field or the block that stops a rollout, warnings, a precise patch, audit annotations and metrics.
package response

import (
	"fmt"
	"strings"
	"unicode"

	"gomodules.xyz/jsonpatch/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Audit annotations. The API server puts the name of the webhook in front of them.
const (
	// AuditDecision is one of the Decision constants.
	AuditDecision = "decision"
	// AuditBlocksMet lists the RolloutBlocks in effect on the object: `namespace/name`, comma-separated.
	AuditBlocksMet = "blocks-met"
	// AuditBlocksOverridden lists the RolloutBlocks that the object overrides.
	AuditBlocksOverridden = "blocks-overridden"
	// AuditBlocksWarned lists the RolloutBlocks that only warn, AuditBlocksAudited those that only note.
	AuditBlocksWarned  = "blocks-warned"
	AuditBlocksAudited = "blocks-audited"
	// AuditOverride lists the RolloutBlocks that this request begins to override, AuditOverrideReason says why.
	AuditOverride       = "override"
	AuditOverrideReason = "override-reason"
	// AuditReleaseStamped names the Release that the edit of an Application makes.
	AuditReleaseStamped = "release-stamped"
	// AuditChartPinned is the chart's name and the exact version it was resolved to.
	AuditChartPinned = "chart-pinned"
	// AuditBlockLifted names the RolloutBlock whose deletion was let through.
	AuditBlockLifted = "block-lifted"
	// AuditBlockWeakened names the RolloutBlock that was made to stop less, and the fields by which.
	AuditBlockWeakened = "block-weakened"
)

// Response gathers, while a request is judged, what is said besides yes or no. It belongs to one request.
type Response struct {
	warnings []string
	audit    map[string]string
	patch    []jsonpatch.JsonPatchOperation
}

// Warn tells the user something that does not keep the request from passing. kubectl prints it as one line.
func (a *Response) Warn(format string, args ...any) {
	a.warnings = append(a.warnings, oneLine(fmt.Sprintf(format, args...)))
}

// Audit leaves value under one of the Audit keys in the API server's audit log.
func (a *Response) Audit(key, value string) {
	if a.audit == nil {
		a.audit = map[string]string{}
	}
	a.audit[key] = value
}

// Warnings are those given so far.
func (a *Response) Warnings() []string { return a.warnings }

// Patch is what was set and removed so far.
func (a *Response) Patch() []jsonpatch.JsonPatchOperation { return a.patch }

// AuditAnnotations are those left so far.
func (a *Response) AuditAnnotations() map[string]string { return a.audit }

// Set patches the field at path, whose parent must exist, to value. Fields beside it are not touched.
func (a *Response) Set(value any, path ...string) {
	a.patch = append(a.patch, jsonpatch.NewOperation("add", pointer(path), value))
}

// Remove patches the field at path away, which must be there.
func (a *Response) Remove(path ...string) {
	a.patch = append(a.patch, jsonpatch.NewOperation("remove", pointer(path), nil))
}

// Annotate patches one annotation, and sets it on meta too, which must be that of the object as it was sent.
func (a *Response) Annotate(meta *metav1.ObjectMeta, key, value string) {
	if meta.Annotations == nil {
		meta.Annotations = map[string]string{}
		a.Set(map[string]string{}, "metadata", "annotations")
	}
	meta.Annotations[key] = value
	a.Set(value, "metadata", "annotations", key)
}

// Unannotate patches one annotation away, and removes it from meta. An annotation that is not there stays so.
func (a *Response) Unannotate(meta *metav1.ObjectMeta, key string) {
	if _, there := meta.Annotations[key]; !there {
		return
	}
	delete(meta.Annotations, key)
	a.patch = append(a.patch, jsonpatch.NewOperation("remove", pointer([]string{"metadata", "annotations", key}), nil))
}

// Label patches one label, and sets it on meta too.
func (a *Response) Label(meta *metav1.ObjectMeta, key, value string) {
	if meta.Labels == nil {
		meta.Labels = map[string]string{}
		a.Set(map[string]string{}, "metadata", "labels")
	}
	meta.Labels[key] = value
	a.Set(value, "metadata", "labels", key)
}

// pointer writes path as a JSON pointer.
func pointer(path []string) string {
	escape := strings.NewReplacer("~", "~0", "/", "~1")
	var b strings.Builder
	for _, p := range path {
		b.WriteByte('/')
		b.WriteString(escape.Replace(p))
	}
	return b.String()
}

// oneLine keeps what users wrote from breaking the line it is quoted in, and from commanding the terminal it is shown on:
// what does not print, controls of the direction of writing included, becomes a space.
func oneLine(s string) string {
	printable := strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, s)
	return strings.Join(strings.Fields(printable), " ")
}
