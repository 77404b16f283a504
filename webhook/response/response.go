// SPDX-License-Identifier: Apache-2.0

// Package response turns a judgement into an admission response: a status with one cause per field or the block that stops a
// rollout, warnings, a minimal patch, audit annotations and metrics.
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
	// AuditBlocksWarned lists the RolloutBlocks that only warn, AuditBlocksAudited those that only audit.
	AuditBlocksWarned  = "blocks-warned"
	AuditBlocksAudited = "blocks-audited"
	// AuditOverride lists the RolloutBlocks that this request starts to override, AuditOverrideReason the reason.
	AuditOverride       = "override"
	AuditOverrideReason = "override-reason"
	// AuditReleaseStamped names the Release that the edit of an Application creates.
	AuditReleaseStamped = "release-stamped"
	// AuditChartPinned is the chart's name and the exact version it was resolved to.
	AuditChartPinned = "chart-pinned"
	// AuditBlockLifted names the RolloutBlock whose deletion was admitted.
	AuditBlockLifted = "block-lifted"
	// AuditBlockWeakened names the RolloutBlock that now stops less, and the changed fields.
	AuditBlockWeakened = "block-weakened"
)

// Response collects the warnings, audit annotations and patches for one request.
type Response struct {
	warnings []string
	audit    map[string]string
	patch    []jsonpatch.JsonPatchOperation
}

// Warn adds a warning for the user. kubectl prints it as one line.
func (a *Response) Warn(format string, args ...any) {
	a.warnings = append(a.warnings, oneLine(fmt.Sprintf(format, args...)))
}

// Audit adds value under one of the Audit keys to the API server's audit log.
func (a *Response) Audit(key, value string) {
	if a.audit == nil {
		a.audit = map[string]string{}
	}
	a.audit[key] = value
}

// Warnings are the warnings so far.
func (a *Response) Warnings() []string { return a.warnings }

// Patch is the patch so far.
func (a *Response) Patch() []jsonpatch.JsonPatchOperation { return a.patch }

// AuditAnnotations are the audit annotations so far.
func (a *Response) AuditAnnotations() map[string]string { return a.audit }

// Set patches the field at path, whose parent must exist, to value. Other fields are not changed.
func (a *Response) Set(value any, path ...string) {
	a.patch = append(a.patch, jsonpatch.NewOperation("add", pointer(path), value))
}

// Remove patches the field at path away; it must exist.
func (a *Response) Remove(path ...string) {
	a.patch = append(a.patch, jsonpatch.NewOperation("remove", pointer(path), nil))
}

// Annotate patches one annotation, and sets it on meta too, which must be that of the sent object.
func (a *Response) Annotate(meta *metav1.ObjectMeta, key, value string) {
	if meta.Annotations == nil {
		meta.Annotations = map[string]string{}
		a.Set(map[string]string{}, "metadata", "annotations")
	}
	meta.Annotations[key] = value
	a.Set(value, "metadata", "annotations", key)
}

// Unannotate patches one annotation away, and removes it from meta, if it exists.
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

// oneLine replaces characters of user texts that do not print, including those that control the writing direction, by spaces.
// Otherwise a text could break its line or send control sequences to the terminal.
func oneLine(s string) string {
	printable := strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, s)
	return strings.Join(strings.Fields(printable), " ")
}
