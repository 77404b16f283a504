// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	restclient "k8s.io/client-go/rest"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/pod"
)

// as returns a fixture that writes as a user who may edit Applications and Releases in the namespace, and has the rights of
// more.
func (s *fixture) as(name string, more ...rbacv1.PolicyRule) (*fixture, *warnings) {
	s.Helper()
	rules := append([]rbacv1.PolicyRule{{
		APIGroups: []string{shipper.GroupName}, Resources: []string{"applications", "releases", "approvals"},
		Verbs: []string{"get", "list", "create", "update", "patch", "delete"},
	}}, more...)
	meta := metav1.ObjectMeta{Namespace: s.Namespace, Name: name}
	s.Must("creating a role", world.Management.Create(s.Ctx, &rbacv1.Role{ObjectMeta: meta, Rules: rules}))
	s.Must("binding the role", world.Management.Create(s.Ctx, &rbacv1.RoleBinding{
		ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: name}},
	}))
	for _, rule := range rules {
		s.may(name, rule)
	}
	heard := &warnings{}
	config := restclient.CopyConfig(world.Fleet.Management.Config)
	config.Impersonate = restclient.ImpersonationConfig{UserName: name}
	config.WarningHandler = heard
	c, err := pod.NewClient(config)
	s.Must("making a client", err)
	their := *s
	their.User = c
	return &their, heard
}

// mayOverride is the right to override a block.
func mayOverride(block string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{
		APIGroups: []string{shipper.GroupName}, Resources: []string{"rolloutblocks"},
		ResourceNames: []string{block}, Verbs: []string{"override"},
	}
}

// may waits until the API server grants a right to a user.
func (s *fixture) may(name string, rule rbacv1.PolicyRule) {
	s.Helper()
	of := authorizationv1.ResourceAttributes{
		Namespace: s.Namespace, Group: rule.APIGroups[0], Resource: rule.Resources[0], Verb: rule.Verbs[0],
	}
	if len(rule.ResourceNames) > 0 {
		of.Name = rule.ResourceNames[0]
	}
	s.Eventually("whether "+name+" may "+of.Verb+" "+of.Resource, "true", func() (string, error) {
		review := &authorizationv1.SubjectAccessReview{
			Spec: authorizationv1.SubjectAccessReviewSpec{User: name, ResourceAttributes: &of},
		}
		err := world.Management.Create(s.Ctx, review)
		return fmt.Sprint(review.Status.Allowed), err
	})
}

// warnings collects the warnings that a user's client received.
type warnings struct {
	mu    sync.Mutex
	heard []string
}

// HandleWarningHeader is rest.WarningHandler.
func (w *warnings) HandleWarningHeader(_ int, _ string, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.heard = append(w.heard, text)
}

// about returns the warnings since the last call that contain all of words.
func (w *warnings) about(words ...string) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []string
	for _, text := range w.heard {
		if says(text, words) {
			out = append(out, text)
		}
	}
	w.heard = nil
	return out
}

func says(text string, words []string) bool {
	for _, word := range words {
		if !strings.Contains(text, word) {
			return false
		}
	}
	return true
}

// forbidden fails unless the request was refused with the code 403.
func (s *fixture) forbidden(doing string, err error, words ...string) {
	s.Helper()
	s.refused(doing, err, words...)
	if !apierrors.IsForbidden(err) {
		s.Fatalf("%s: the refusal is %s, want 403: %v", doing, apierrors.ReasonForError(err), err)
	}
}

// audits lists the completed requests about the test's namespace in the audit log of the management cluster.
func (s *fixture) audits() []auditv1.Event {
	s.Helper()
	file, err := os.Open(world.Fleet.Management.AuditLog)
	s.Must("opening the audit log", err)
	defer file.Close()
	var out []auditv1.Event
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if !bytes.Contains(lines.Bytes(), []byte(s.Namespace)) {
			continue
		}
		var event auditv1.Event
		s.Must("reading the audit log", json.Unmarshal(lines.Bytes(), &event))
		if event.ObjectRef != nil && event.ObjectRef.Namespace == s.Namespace && event.Stage == auditv1.StageResponseComplete {
			out = append(out, event)
		}
	}
	s.Must("reading the audit log", lines.Err())
	return out
}

// audited lists what the webhooks noted in the audit log of a user's requests under a key: verb, resource and note, in order.
func (s *fixture) audited(name, key string) []string {
	s.Helper()
	var out []string
	for _, event := range s.audits() {
		if event.ImpersonatedUser == nil || event.ImpersonatedUser.Username != name {
			continue
		}
		for annotation, note := range event.Annotations {
			// Both webhooks may annotate a request.
			if strings.HasSuffix(annotation, ".shipper.booking.com/"+key) && !strings.HasPrefix(annotation, "mutate.") {
				out = append(out, event.Verb+" "+event.ObjectRef.Resource+": "+note)
			}
		}
	}
	return out
}
