// SPDX-License-Identifier: Apache-2.0

package native

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"shipper.dev/shipper/apis/rules/shipyard"
	"shipper.dev/shipper/apis/rules/stamp"
	"shipper.dev/shipper/apis/rules/strategy"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// deploy writes the version and the values of the run into the Application of its stage, and follows the Release that comes of it: to the
// first step if a task release comes later, else to the last.
func deploy(o *observed) action {
	if o.app == nil {
		return fails("there is no Application %s: create it, with its chart and where it runs", o.key)
	}
	if !o.approved() {
		return fails("this is not what was approved: the version or the values have changed since; retry the run, and approve it again")
	}
	if rel := o.tracked(); rel != nil {
		return o.delivering(rel)
	}
	if o.task.Release != "" {
		return fails("Release %s was deleted", o.task.Release)
	}
	wanted, newest := shipyard.Template(o.run, &o.app.Spec.Template), o.newest()
	claimed := o.app.Annotations[shipper.AppRunAnnotation] == stamp.Claim(shipyard.Claim(o.run))
	switch {
	case newest != nil && stamp.SameEnvironment(wanted, &o.app.Spec.Template) && stamp.SameEnvironment(wanted, &newest.Spec.Environment):
		return o.delivering(newest) // it is so already
	case claimed:
		return o.awaitRelease()
	case o.task.Generation > 0:
		out := fails("Application %s was changed by %s before its Release was made", o.key,
			cmp.Or(o.app.Annotations[shipper.AppRequestedByAnnotation], "another user"))
		out.confirm = true
		return out
	}
	out := waits("writes Application %s", o.key)
	out.apply = o.applied(wanted)
	return out
}

// approved reports whether what would be written is what the last approval before was given to.
func (o *observed) approved() bool {
	for _, task := range slices.Backward(o.run.Status.Tasks) {
		if task.Name == shipyard.TaskApproval && task.Subject != "" && task.Result != shipper.ResultFail {
			return task.Subject == shipyard.Subject(o.run)
		}
	}
	return true
}

// tracked is the Release of this task: the one that was found before, or the newest that has its claim. Nil if there is none.
func (o *observed) tracked() *shipper.Release {
	if o.task.Release != "" {
		return o.named(o.task.Release)
	}
	for _, rel := range slices.Backward(o.releases) {
		if c := stamp.ClaimOf(rel.Annotations[shipper.ReleaseRunAnnotation]); c.UID == string(o.run.UID) && c.EventID == o.task.EventID {
			return rel
		}
	}
	return nil
}

// awaitRelease says why there is no Release yet of a template that the run has written.
func (o *observed) awaitRelease() action {
	out := waits("the Release of Application %s is awaited", o.key)
	out.outcome.Generation = o.app.Generation
	if blocked := blockedBy(o.app.Status.Conditions, shipper.ApplicationBlocked); blocked != "" {
		out.outcome.Blocked = blocked
	} else if c := shipper.FindCondition(o.app.Status.Conditions, shipper.ApplicationReleaseSynced); c != nil && c.Status == "False" {
		out.outcome.Message = c.Message
	}
	return out
}

// delivering follows a Release to where the task ends, and then reports it.
func (o *observed) delivering(rel *shipper.Release) action {
	to, end := int32(0), rel.Spec.Environment.Strategy.LastStep()
	if o.property("to", o.absentTo()) == "last" {
		to = end
	}
	if stamp.HeldByRun(rel) && to == 0 {
		unheld := *rel
		unheld.Spec.Hold = "" // its own hold is for what comes after this task
		rel = &unheld
	}
	if digest := rel.Annotations[shipper.ReleaseChartDigestAnnotation]; digest != "" && o.run.Status.Resolved.Version.Digest != "" &&
		digest != o.run.Status.Resolved.Version.Digest {
		out := fails("the repository has another archive of %s %s than when the run was created", o.run.Status.Resolved.Version.Name,
			o.run.Status.Resolved.Version.Version)
		out.outcome.Release = nameOf(rel)
		return out
	}
	out := o.follow(rel, to, to == end)
	if out.outcome.Result == shipper.ResultPass {
		out.outcome.Data = shipper.FreeForm{o.of.Name: o.report(rel)}
	}
	return out
}

// absentTo is the step that the task ends at if its property "to" is absent.
func (o *observed) absentTo() string {
	if shipyard.StopsFirst(o.run, o.task) {
		return "first"
	}
	return "last"
}

// report is what the data of the run has of a Release.
func (o *observed) report(rel *shipper.Release) map[string]any {
	out := map[string]any{
		"application": o.key.String(), "release": rel.Name, "clusters": asAny(stamp.Clusters(rel)),
	}
	if c := rel.Spec.Environment.Chart; c.Name != "" {
		out["name"], out["version"] = c.Name, c.Version
	}
	if digest := rel.Annotations[shipper.ReleaseChartDigestAnnotation]; digest != "" {
		out["digest"] = digest
	}
	if before := o.completeBefore(rel); before != nil {
		out["previousRelease"] = before.Name
	}
	return out
}

// completeBefore is the newest complete Release before another; nil if there is none.
func (o *observed) completeBefore(rel *shipper.Release) *shipper.Release {
	at := slices.IndexFunc(o.releases, func(one *shipper.Release) bool { return one.Name == rel.Name })
	for i := at - 1; i >= 0; i-- {
		if one := o.releases[i]; one.DeletionTimestamp.IsZero() && strategy.Complete(one) {
			return one
		}
	}
	return nil
}

// applied is the part of the Application that the run's field manager sets: what it set before, and what this run sets.
func (o *observed) applied(wanted *shipper.ReleaseEnvironment) map[string]any {
	template := map[string]any{}
	if o.run.Status.Resolved.Version.Version != "" {
		template["chart"] = map[string]any{"version": wanted.Chart.Version}
	}
	managed := o.managed()
	var earlier map[string]any
	if fields, is := managed["f:values"].(map[string]any); is && o.app.Spec.Template.Values != nil {
		earlier = selected(*o.app.Spec.Template.Values, fields)
	}
	if values := shipyard.Over(earlier, shipyard.ValuesOf(o.run)); len(values) > 0 {
		template["values"] = map[string]any(values)
	}
	set, _ := managed["f:strategy"].(map[string]any) // also has what the webhook writes into strategy.from meanwhile
	if _, earlier := set["f:steps"]; (earlier || shipyard.Steps(o.run) != nil) && wanted.Strategy != nil {
		template["strategy"] = map[string]any{"steps": plain(wanted.Strategy.Steps)}
	}
	return map[string]any{
		"apiVersion": shipper.GroupVersion.String(), "kind": "Application",
		"metadata": map[string]any{
			"namespace": o.key.Namespace, "name": o.key.Name, "resourceVersion": o.app.ResourceVersion,
			"annotations": map[string]any{shipper.AppRunAnnotation: stamp.Claim(shipyard.Claim(o.run))},
		},
		"spec": map[string]any{"template": template},
	}
}

// managed are the fields of the template that earlier runs set, as managedFields has them. What they set stays.
func (o *observed) managed() map[string]any {
	for _, entry := range o.app.ManagedFields {
		if entry.Manager != shipper.RunFieldManager || entry.Operation != metav1.ManagedFieldsOperationApply || entry.FieldsV1 == nil {
			continue
		}
		var fields map[string]any
		if json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields) != nil {
			return nil
		}
		for _, key := range []string{"f:spec", "f:template"} {
			fields, _ = fields[key].(map[string]any)
		}
		return fields
	}
	return nil
}

// selected are the values at fields, which are as managedFields has them.
func selected(values, fields map[string]any) map[string]any {
	out := map[string]any{}
	for key, below := range fields {
		name, is := strings.CutPrefix(key, "f:")
		value, there := values[name]
		if !is || !there {
			continue
		}
		inner, isMap := value.(map[string]any)
		if deeper, _ := below.(map[string]any); isMap && len(deeper) > 0 {
			value = selected(inner, deeper)
		}
		out[name] = value
	}
	return out
}

// plain is a value as JSON has it.
func plain(in any) any {
	var out any
	raw, err := json.Marshal(in)
	if err != nil || json.Unmarshal(raw, &out) != nil {
		return nil // types of the API have JSON
	}
	return out
}

func asAny(in []string) []any {
	out := make([]any, len(in))
	for i := range in {
		out[i] = in[i]
	}
	return out
}
