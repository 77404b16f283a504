// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart/objects"
	"shipper.dev/shipper/reconciler/member/rights"
	"shipper.dev/shipper/reconciler/retry"
)

// maxNamed bounds the objects that a message names.
const maxNamed = 5

// maxRefusal bounds what an API server says of an object in such a message, in bytes.
const maxRefusal = 400

// problem is an error with a reason for conditions.
type problem struct {
	reason string
	action retry.Action
	text   string
}

// Error is the text.
func (p *problem) Error() string { return p.text }

// Classify implements retry.Classified.
func (p *problem) Classify() (reason string, action retry.Action) { return p.reason, p.action }

func conflict(format string, args ...any) error {
	return &problem{shipper.ObjectConflict, retry.Recheck, fmt.Sprintf(format, args...)}
}

func waiting(format string, args ...any) error {
	return &problem{shipper.InProgress, retry.Recheck, fmt.Sprintf(format, args...)}
}

// errSkipped is why an object was not looked at: an earlier request says that the cluster does not answer.
var errSkipped error = &problem{shipper.InProgress, retry.Retry, "the cluster does not answer"}

// problemOf words what is wrong with an object that was not written; nil for nothing.
func (p *pass) problemOf(s *item, defined bool) error {
	key := s.want.key()
	switch {
	case errors.Is(s.failed, errSkipped):
		return nil
	case s.failed != nil:
		return p.explain(key, s.want.gvk(), s.failed)
	case s.action == leave:
		return &problem{shipper.NotTakenOver, retry.Wait, fmt.Sprintf("%s was there already, and apply.takeOver is %s%s", key,
			p.rules.takeOver, differs(s))}
	case s.action == refuse && s.maker != "":
		return &problem{shipper.ObjectConflict, retry.Wait, fmt.Sprintf("%s belongs to %s in the cluster: what another object owns, or a "+
			"controller made for it, is never taken over", key, s.maker)}
	case s.action == refuse:
		return &problem{shipper.ObjectConflict, retry.Wait, fmt.Sprintf("%s belongs to %s", key, s.whose)}
	case s.action == wait:
		return waiting("%s is there and is being deleted", key)
	case s.action == await && defined:
		return &problem{shipper.InProgress, retry.Retry, fmt.Sprintf("%s waits until the cluster serves its kind", key)}
	case s.action == await:
		return &problem{shipper.KindNotServed, retry.Recheck, fmt.Sprintf("%s is of a kind that the cluster does not serve: it has no "+
			"CustomResourceDefinition for %s in %s", key, s.want.Kind, s.want.gvk().GroupVersion())}
	}
	return nil
}

// differs says how many fields of an object that is there differ.
func differs(s *item) string {
	switch {
	case s.compared == nil:
		return ""
	case s.compared.Problem != "":
		return ": " + s.compared.Problem
	case len(s.compared.Fields) == 0:
		return "; it does not differ"
	}
	first := s.compared.Fields[0].Field
	if len(s.compared.Fields) == 1 {
		return "; " + first + " differs"
	}
	return fmt.Sprintf("; %d fields differ, %s first", len(s.compared.Fields), first)
}

// explain gives an error of a request about an object its reason.
func (p *pass) explain(key objects.Key, gvk schema.GroupVersionKind, err error) error {
	switch {
	case rights.Denied(err), errors.Is(err, errLacksRules):
		return &denied{key.String(), p.resourceOf(gvk), p.Name, grantableName(key), rights.Escalates(err) || errors.Is(err, errLacksRules)}
	case lacksNamespace(err):
		return &problem{shipper.NamespaceMissing, retry.Retry, fmt.Sprintf("%s: the cluster has no namespace %q; create it there, or place "+
			"it as well", key, key.Namespace)}
	case apierrors.HasStatusCause(err, metav1.CauseTypeFieldManagerConflict):
		return &problem{shipper.ApplyConflict, retry.Recheck, fmt.Sprintf("%s: apply.forceConflicts is false, and %s", key, owners(err))}
	}
	if retry.Rejected(err) {
		text := fmt.Sprintf("%s: %s", key, retry.Within(err, maxRefusal))
		if retry.Immutable(err) {
			text += "; what is there cannot be changed to that: keep these fields, give it another name, or delete it in the cluster"
		}
		return &problem{shipper.ObjectRefused, retry.Recheck, text}
	}
	return fmt.Errorf("%s: %w", key, err)
}

// lacksNamespace reports whether an object was not made because there is no such namespace.
func lacksNamespace(err error) bool {
	var status apierrors.APIStatus
	if !apierrors.IsNotFound(err) || !errors.As(err, &status) {
		return false
	}
	details := status.Status().Details
	return details != nil && details.Kind == "namespaces"
}

// resourceOf is the resource of a kind; a guess where the cluster does not serve it.
func (p *pass) resourceOf(gvk schema.GroupVersionKind) schema.GroupResource {
	if mapping, err := p.Cluster.Mapping(gvk); err == nil {
		return mapping.Resource.GroupResource()
	}
	return schema.GroupResource{Group: gvk.Group, Resource: strings.ToLower(gvk.Kind) + "s"}
}

// owners words the field managers that own what was to be written.
func owners(err error) string {
	var status apierrors.APIStatus
	var out []string
	if errors.As(err, &status) && status.Status().Details != nil {
		for _, cause := range status.Status().Details.Causes {
			if cause.Type == metav1.CauseTypeFieldManagerConflict {
				out = append(out, strings.TrimPrefix(cause.Field, ".")+" has a "+cause.Message)
			}
		}
	}
	return named(out, ", ")
}

// named joins texts, as many as a message may name.
func named(texts []string, separator string) string {
	if more := len(texts) - maxNamed; more > 0 {
		return strings.Join(texts[:maxNamed], separator) + fmt.Sprintf("%sand %d more", separator, more)
	}
	return strings.Join(texts, separator)
}

// remediesFor are the remedies for content that is placed by a policy: IfNoDiff is no remedy where it is set.
func remediesFor(takeOver shipper.TakeOverPolicy) map[string]string {
	if takeOver != shipper.TakeOverIfNoDiff {
		return remedies
	}
	out := maps.Clone(remedies)
	out[shipper.NotTakenOver] = "change these fields in the cluster or in what is placed until they are equal, set takeOver to Always, or " +
		"delete it in the cluster"
	return out
}

// remedies say what mends all objects with a reason.
var remedies = map[string]string{
	shipper.NotTakenOver:   "set takeOver to IfNoDiff, which takes what does not differ, or Always, or delete it in the cluster",
	shipper.ApplyConflict:  "set forceConflicts to true, or leave these fields out",
	shipper.ObjectConflict: "one of the two has to leave it out",
}

// together joins errors about objects: one for each reason, that names some. What is only in progress comes last.
func together(all []error) error { return joined(all, remedies) }

// joined is together with other remedies.
func joined(all []error, remedies map[string]string) error {
	texts, worst := map[string][]string{}, map[string]retry.Action{}
	var reasons []string
	var out []error
	var denials []*denied
	for _, err := range all {
		if err == nil {
			continue
		}
		if retry.Unanswered(err) {
			return err
		}
		if retry.Conflict(err) { // it must be found to be one
			out = []error{err}
			continue
		}
		if one := (*denied)(nil); errors.As(err, &one) {
			denials = append(denials, one)
			continue
		}
		reason, action := retry.ClassifyInCluster(err)
		if texts[reason] == nil {
			reasons = append(reasons, reason)
		}
		texts[reason] = append(texts[reason], err.Error())
		worst[reason] = max(worst[reason], action)
	}
	out = append(out, lacking(denials)...)
	slices.SortFunc(reasons, func(a, b string) int {
		return cmp.Or(inProgressLast(a)-inProgressLast(b), cmp.Compare(a, b))
	})
	for _, reason := range reasons {
		message := named(texts[reason], "; ")
		if remedy := remedies[reason]; remedy != "" {
			message += "; " + remedy
		}
		out = append(out, &problem{reason, worst[reason], message})
	}
	return errors.Join(out...)
}

func inProgressLast(reason string) int {
	if reason == shipper.InProgress {
		return 1
	}
	return 0
}

// isLost reports whether further requests of the pass make no sense.
func isLost(ctx context.Context, err error) bool {
	return ctx.Err() != nil || retry.Unanswered(err) || apierrors.IsUnauthorized(err)
}

// isGone reports whether an error means that an object is not there.
func isGone(err error) bool { return apierrors.IsNotFound(err) || meta.IsNoMatchError(err) }
