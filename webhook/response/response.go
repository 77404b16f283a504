// SPDX-License-Identifier: Apache-2.0

// Package response turns a judgement into an admission response: a status with one cause per field or the block that stops a
// rollout, warnings, a minimal patch, audit annotations and metrics.
package response

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"gomodules.xyz/jsonpatch/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"shipper.dev/shipper/apis/rules/printable"
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
	// AuditStrategyTaken is the Strategy that an Application took, with its resourceVersion and digest.
	AuditStrategyTaken = "strategy-taken"
	// AuditBlockLifted names the RolloutBlock whose deletion was admitted.
	AuditBlockLifted = "block-lifted"
	// AuditBlockWeakened names the RolloutBlock that now stops less, and the changed fields.
	AuditBlockWeakened = "block-weakened"
	// AuditRunStarted names the stage, sequence, Shipyard, service and version of a run that a user started.
	AuditRunStarted = "run-started"
	// AuditRunOverridden is the reason for which a run skips what its stage requires, and what that is.
	AuditRunOverridden = "run-overridden"
)

// Response collects the warnings, the audit annotations and the completed object of one request.
type Response struct {
	warnings []string
	audit    map[string]string
	// object is completed in place; nil if there is none. raw is its JSON as it was sent, and decoded as its type has it.
	object       any
	raw, decoded []byte
}

// Warn adds a warning for the user. kubectl prints it as one line.
func (a *Response) Warn(format string, args ...any) {
	a.warnings = append(a.warnings, printable.OneLine(fmt.Sprintf(format, args...)))
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

// Complete notes that object, decoded from raw, is changed in place: the patch is the difference from now on.
func (a *Response) Complete(raw []byte, object any) error {
	decoded, err := json.Marshal(object)
	if err != nil {
		return fmt.Errorf("encoding the object: %w", err)
	}
	a.object, a.raw, a.decoded = object, raw, decoded
	return nil
}

// Patch is the difference that completing the object has made so far. It applies to what was sent, whose fields may be absent where the
// type has empty ones, and may be unknown to the type: these stay.
func (a *Response) Patch() ([]jsonpatch.JsonPatchOperation, error) {
	if a.object == nil {
		return nil, nil
	}
	completed, err := json.Marshal(a.object)
	if err != nil {
		return nil, fmt.Errorf("encoding the completed object: %w", err)
	}
	if bytes.Equal(completed, a.decoded) {
		return nil, nil
	}
	sent, err1 := fields(a.raw)
	before, err2 := fields(a.decoded)
	after, err3 := fields(completed)
	if err := errors.Join(err1, err2, err3); err != nil {
		return nil, fmt.Errorf("comparing the object with what was sent: %w", err)
	}
	change(sent, before, after)
	if completed, err = json.Marshal(sent); err != nil {
		return nil, fmt.Errorf("encoding the completed object: %w", err)
	}
	patch, err := jsonpatch.CreatePatch(a.raw, completed)
	if err != nil {
		return nil, fmt.Errorf("comparing the object with what was sent: %w", err)
	}
	return patch, nil
}

// fields are those of an object, with numbers as they are written.
func fields(text []byte) (out map[string]any, err error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	return out, decoder.Decode(&out)
}

// change makes in sent what differs between before and after. Lists are replaced as a whole.
func change(sent, before, after map[string]any) {
	for key := range before {
		if _, stays := after[key]; !stays {
			delete(sent, key)
		}
	}
	for key, value := range after {
		was, there := before[key]
		if there && reflect.DeepEqual(was, value) {
			continue
		}
		inSent, ok1 := sent[key].(map[string]any)
		inBefore, ok2 := was.(map[string]any)
		inAfter, ok3 := value.(map[string]any)
		if ok1 && ok2 && ok3 {
			change(inSent, inBefore, inAfter)
		} else {
			sent[key] = value
		}
	}
}

// AuditAnnotations are the audit annotations so far.
func (a *Response) AuditAnnotations() map[string]string { return a.audit }

// Annotate sets an annotation of meta.
func Annotate(meta *metav1.ObjectMeta, key, value string) {
	if meta.Annotations == nil {
		meta.Annotations = map[string]string{}
	}
	meta.Annotations[key] = value
}

// Label sets a label of meta.
func Label(meta *metav1.ObjectMeta, key, value string) {
	if meta.Labels == nil {
		meta.Labels = map[string]string{}
	}
	meta.Labels[key] = value
}
