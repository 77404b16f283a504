// SPDX-License-Identifier: Apache-2.0

//nolint:lll // each request of the table is one line
package memory

// head begins a custom resource.
func head(kind, name string) string {
	return `{"apiVersion":"shipper.booking.com/v1alpha1","kind":"` + kind + `","metadata":{"name":"` + name + `"`
}

const environment = `{"chart":{"name":"nginx","version":"0.0.1","repoUrl":"https://charts.example.com"},` +
	`"clusterRequirements":{"regions":[{"name":"eu"}]},"strategy":{"steps":[{"name":"full on","capacity":{"contender":100,"incumbent":0},` +
	`"traffic":{"contender":100,"incumbent":0}}]},"values":{"replicaCount":1,"deep":{"x":[1,2.5,"a",null]}}}`

func customs() []step {
	block, app := head("RolloutBlock", "block"), head("Application", "app")
	return []step{
		{name: "a RolloutBlock is created", method: post, path: rbs, body: block + `},"spec":{"message":"freeze"}}`, save: "block"},
		{name: "a required field is missing", method: post, path: rbs, body: head("RolloutBlock", "bad") + `},"spec":{}}`},
		{name: "a spec is missing", method: post, path: rbs, body: head("RolloutBlock", "bad") + `}}`},
		{name: "a field has the wrong type", method: post, path: rbs, body: head("RolloutBlock", "bad") + `},"spec":{"message":7}}`},
		{name: "metadata has the wrong type", method: post, path: rbs, body: `{"apiVersion":"shipper.booking.com/v1alpha1","kind":"RolloutBlock","metadata":{"name":"bad","labels":{"a":1}},"spec":{"message":"x"}}`},
		{name: "an expression refuses", method: post, path: rbs, body: head("RolloutBlock", "bad") + `},"spec":{"message":"x","schedule":{"start":"2026-01-02T00:00:00Z","end":"2026-01-01T00:00:00Z"}}}`},
		{name: "an expression and the schema refuse", method: post, path: appr, body: head("Approval", "bad") + `},"spec":{"decision":"Maybe"}}`},
		{name: "an enumeration refuses", method: post, path: ntfs, body: head("Notification", "bad") + `},"spec":{"to":{"secretName":"x"},"format":"Fax"}}`},
		{name: "a set refuses duplicates", method: post, path: ntfs, body: head("Notification", "bad") + `},"spec":{"to":{"secretName":"x"},"events":["Started","Started"]}}`},
		{name: "unknown fields are pruned", method: post, path: rbs + "?fieldValidation=Ignore", body: head("RolloutBlock", "pruned") + `},"foo":1,"spec":{"message":"x","foo":{"bar":1}}}`},
		{name: "unknown fields are warned of", method: post, path: rbs + "?fieldValidation=Warn", body: head("RolloutBlock", "warned") + `},"foo":1,"spec":{"message":"x","foo":{"bar":1}}}`},
		{name: "unknown fields are refused", method: post, path: rbs + "?fieldValidation=Strict", body: head("RolloutBlock", "bad") + `},"foo":1,"spec":{"message":"x","foo":{"bar":1}}}`},
		{name: "fields are defaulted", method: post, path: ntfs, body: head("Notification", "defaulted") + `},"spec":{"to":{"secretName":"x"}}}`},
		{name: "an Approval is defaulted", method: post, path: appr, body: head("Approval", "approval") + `},"spec":{"release":"x","step":1}}`},
		{name: "a transition rule refuses", method: patch, path: appr + "/approval", kind: "merge", body: `{"spec":{"step":2}}`},
		{name: "an update without a version is refused", method: put, path: rbs + "/block", body: block + `},"spec":{"message":"frozen"}}`},
		{name: "an update of its version", method: put, path: rbs + "/block", body: block + `,"resourceVersion":"$rv(block)"},"spec":{"message":"frozen"}}`, save: "block2"},
		{name: "an update of an old version is refused", method: put, path: rbs + "/block", body: block + `,"resourceVersion":"$rv(block)"},"spec":{"message":"no"}}`},
		{name: "an update that changes nothing stores nothing", method: put, path: rbs + "/block", body: block + `,"resourceVersion":"$rv(block2)"},"spec":{"message":"frozen"}}`},
		{name: "an update is refused by the schema", method: patch, path: rbs + "/block", kind: "merge", body: `{"spec":{"message":null}}`},
		{name: "a label does not change the generation", method: patch, path: rbs + "/block", kind: "merge", body: `{"metadata":{"labels":{"a":"b"}}}`},
		{name: "a spec changes the generation", method: patch, path: rbs + "/block", kind: "merge", body: `{"spec":{"message":"again"}}`},
		{name: "a JSON patch of a custom resource", method: patch, path: rbs + "/block", kind: "json", body: `[{"op":"replace","path":"/spec/message","value":"json"}]`},
		{name: "an Application is created", method: post, path: apps, body: app + `},"spec":{"template":` + environment + `}}`},
		{name: "values keep every field", method: patch, path: apps + "/app", kind: "merge", body: `{"spec":{"template":{"values":{"deep":{"y":{"z":1e3}}}}}}`},
		{name: "an Application lacks a template", method: post, path: apps, body: head("Application", "bad") + `},"spec":{}}`},
		{name: "an Application is applied", method: patch, path: apps + "/applied?fieldManager=one", kind: "apply", body: head("Application", "applied") + `},"spec":{"template":` + environment + `}}`},
		{name: "an apply of a custom resource conflicts", method: patch, path: apps + "/applied?fieldManager=two", kind: "apply", body: head("Application", "applied") + `},"spec":{"template":{"chart":{"version":"0.0.2"}}}}`},
		{name: "an apply of a custom resource is forced", method: patch, path: apps + "/applied?fieldManager=two&force=true", kind: "apply", body: head("Application", "applied") + `},"spec":{"template":{"chart":{"version":"0.0.2"}}}}`},
		{name: "an apply removes a field of a custom resource", method: patch, path: apps + "/applied?fieldManager=one", kind: "apply", body: head("Application", "applied") + `},"spec":{"template":{"chart":{"name":"nginx","repoUrl":"https://charts.example.com"},"clusterRequirements":{"regions":[{"name":"eu"}]}}}}`},
		{name: "an apply is refused by the schema", method: patch, path: apps + "/applied?fieldManager=one", kind: "apply", body: head("Application", "applied") + `},"spec":{"template":7}}`},
		{name: "an apply of a field that the schema lacks", method: patch, path: apps + "/applied?fieldManager=one", kind: "apply", body: head("Application", "applied") + `},"spec":{"nothing":7}}`},
		{name: "a dry run of a custom resource", method: post, path: rbs + "?dryRun=All", body: head("RolloutBlock", "dry") + `},"spec":{"message":"x"}}`},
		{name: "a dry run of a custom resource that is refused", method: post, path: rbs + "?dryRun=All", body: head("RolloutBlock", "dry") + `},"spec":{}}`},
		{name: "a cluster-scoped custom resource", method: post, path: clus, body: head("Cluster", "one") + `},"spec":{"region":"eu"}}`},
		{name: "a list of maps refuses duplicate keys", method: post, path: apis + "/ns/traffictargets", body: head("TrafficTarget", "bad") + `},"spec":{"clusters":[{"name":"a","weight":1},{"name":"a","weight":2}]}}`},
		{name: "a list of maps is applied by key", method: patch, path: apis + "/ns/traffictargets/tt?fieldManager=one", kind: "apply", body: head("TrafficTarget", "tt") + `},"spec":{"clusters":[{"name":"a","weight":1}]}}`},
		{name: "another manager adds to a list of maps", method: patch, path: apis + "/ns/traffictargets/tt?fieldManager=two", kind: "apply", body: head("TrafficTarget", "tt") + `},"spec":{"clusters":[{"name":"b","weight":1}]}}`},
		{name: "a custom resource of a wrong version", method: post, path: rbs, body: `{"apiVersion":"shipper.booking.com/v1","kind":"RolloutBlock","metadata":{"name":"bad"},"spec":{"message":"x"}}`},
		{name: "a custom resource's name is generated", method: post, path: rbs, body: `{"apiVersion":"shipper.booking.com/v1alpha1","kind":"RolloutBlock","metadata":{"generateName":"generated-"},"spec":{"message":"x"}}`},
		{name: "a subresource that is not served", method: get, path: appr + "/approval/status"},
		{name: "a kind that is not served", method: get, path: apis + "/ns/nothings"},
		{name: "a version that is not served", method: get, path: "/apis/shipper.booking.com/v7/ns/applications"},
	}
}

func statuses() []step {
	return []step{
		{name: "a status at creation is dropped", method: post, path: rbs, body: head("RolloutBlock", "status") + `},"spec":{"message":"x"},"status":{"active":true}}`, save: "st"},
		{name: "a status in an update of the object is dropped", method: patch, path: rbs + "/status", kind: "merge", body: `{"status":{"active":true}}`},
		{name: "a status is patched", method: patch, path: rbs + "/status/status", kind: "merge", body: `{"status":{"active":true}}`},
		{name: "a spec in a patch of the status is dropped", method: patch, path: rbs + "/status/status", kind: "merge", body: `{"spec":{"message":"y"},"metadata":{"labels":{"a":"b"}},"status":{"active":false}}`},
		{name: "a status that changes nothing", method: patch, path: rbs + "/status/status", kind: "merge", body: `{"status":{"active":false}}`},
		{name: "a status is refused by the schema", method: patch, path: rbs + "/status/status", kind: "merge", body: `{"status":{"active":"maybe"}}`},
		{name: "a status of an old version", method: put, path: rbs + "/status/status", body: head("RolloutBlock", "status") + `,"resourceVersion":"$rv(st)"},"spec":{"message":"x"},"status":{"active":true}}`},
		{name: "a status of what is missing", method: patch, path: rbs + "/none/status", kind: "merge", body: `{"status":{}}`},
		{name: "a status is applied", method: patch, path: rbs + "/status/status?fieldManager=one&force=true", kind: "apply", body: head("RolloutBlock", "status") + `},"status":{"active":true}}`},
		{name: "a status is applied to what is missing", method: patch, path: rbs + "/none/status?fieldManager=one", kind: "apply", body: head("RolloutBlock", "none") + `},"status":{"active":true}}`},
		{name: "a status is read", method: get, path: rbs + "/status/status"},
		{name: "a change of the object keeps the status", method: patch, path: rbs + "/status", kind: "merge", body: `{"spec":{"message":"z"}}`},
		{name: "a status of a Service", method: patch, path: svcs + "/svc/status", kind: "merge", body: `{"spec":{"selector":{"no":"no"}},"status":{"conditions":[{"type":"x","status":"True","reason":"R","message":"m","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`},
		{name: "a status of a kind without one", method: patch, path: cms + "/a/status", kind: "merge", body: `{"status":{}}`},
		{name: "a dry run of a status", method: patch, path: rbs + "/status/status?dryRun=All", kind: "merge", body: `{"status":{"active":false}}`},
	}
}

func deleting() []step {
	named := func(name, more string) string {
		return `{"metadata":{"name":"` + name + `"` + more + `},"data":{"x":"1"}}`
	}
	return []step{
		{name: "an object for deletion", method: post, path: cms, body: named("d1", ""), save: "d1"},
		{name: "a deletion of another uid", method: del, path: cms + "/d1", body: `{"preconditions":{"uid":"7b2d1d3e-0000-4000-8000-000000000000"}}`},
		{name: "a deletion of another version", method: del, path: cms + "/d1", body: `{"preconditions":{"resourceVersion":"1"}}`},
		{name: "a dry run of a deletion", method: del, path: cms + "/d1?dryRun=All"},
		{name: "a dry run has deleted nothing", method: get, path: cms + "/d1"},
		{name: "a deletion with preconditions", method: del, path: cms + "/d1", body: `{"preconditions":{"uid":"$uid(d1)","resourceVersion":"$rv(d1)"}}`},
		{name: "a deletion of what is missing", method: del, path: cms + "/d1"},
		{name: "options that are no JSON", method: del, path: cms + "/a", body: `{`},
		{name: "a propagation that does not exist", method: del, path: cms + "/a", body: `{"propagationPolicy":"Sideways"}`},
		{name: "an object with a finalizer", method: post, path: cms, body: named("d2", `,"finalizers":["example.com/keep"]`)},
		{name: "a finalizer that is invalid", method: post, path: cms, body: named("d9", `,"finalizers":["a/b/c"]`)},
		{name: "a deletion waits for a finalizer", method: del, path: cms + "/d2"},
		{name: "a second deletion", method: del, path: cms + "/d2"},
		{name: "an object that is being deleted exists", method: post, path: cms, body: named("d2", "")},
		{name: "an object that is being deleted can be changed", method: patch, path: cms + "/d2", kind: "merge", body: `{"data":{"y":"1"}}`},
		{name: "an object that is being deleted gets no finalizers", method: patch, path: cms + "/d2", kind: "merge", body: `{"metadata":{"finalizers":["example.com/keep","example.com/more"]}}`},
		{name: "the last finalizer is removed", method: patch, path: cms + "/d2", kind: "merge", body: `{"metadata":{"finalizers":null}}`},
		{name: "the object is gone with its finalizer", method: get, path: cms + "/d2"},
		{name: "a custom resource with a finalizer", method: post, path: rbs, body: head("RolloutBlock", "d3") + `,"finalizers":["example.com/keep"]},"spec":{"message":"x"}}`},
		{name: "a deletion of a custom resource waits", method: del, path: rbs + "/d3"},
		{name: "an apply to what is being deleted", method: patch, path: rbs + "/d3?fieldManager=one&force=true", kind: "apply", body: head("RolloutBlock", "d3") + `},"spec":{"message":"y"}}`},
		{name: "a status of what is being deleted", method: patch, path: rbs + "/d3/status", kind: "merge", body: `{"status":{"active":true}}`},
		{name: "a finalizer of a custom resource is removed", method: patch, path: rbs + "/d3", kind: "json", body: `[{"op":"remove","path":"/metadata/finalizers"}]`},
		{name: "a custom resource is deleted", method: del, path: rbs + "/warned"},
		{name: "a Service is deleted", method: del, path: svcs + "/headless"},
		{name: "objects for a collection", method: post, path: cms, body: named("e1", `,"labels":{"set":"e"}`)},
		{name: "more objects for a collection", method: post, path: cms, body: named("e2", `,"labels":{"set":"e"}`)},
		{name: "a dry run of a deletion of a collection", method: del, path: cms + "?labelSelector=set%3De&dryRun=All"},
		{name: "a collection is deleted", method: del, path: cms + "?labelSelector=set%3De"},
		{name: "a collection of custom resources is deleted", method: del, path: rbs + "?fieldSelector=metadata.name%3Dpruned"},
		{name: "a collection is gone", method: get, path: cms + "?labelSelector=set%3De"},
	}
}

func owning() []step {
	owned := func(name, by string) string {
		return `{"metadata":{"name":"` + name + `","ownerReferences":[` + by + `]}}`
	}
	ref := func(name, more string) string {
		return `{"apiVersion":"v1","kind":"ConfigMap","name":"` + name + `","uid":"$uid(` + name + `)"` + more + `}`
	}
	owner := func(name string) step {
		return step{name: "an owner " + name, method: post, path: cms, body: `{"metadata":{"name":"` + name + `"}}`, save: name}
	}
	return []step{
		owner("o1"), owner("o2"), owner("o3"), owner("o4"), owner("o5"),
		{name: "an object of one owner", method: post, path: cms, body: owned("o1a", ref("o1", ""))},
		{name: "an object of two owners", method: post, path: cms, body: owned("o12", ref("o1", "")+","+ref("o2", ""))},
		{name: "two controllers are refused", method: post, path: cms, body: owned("bad", ref("o1", `,"controller":true`)+","+ref("o2", `,"controller":true`))},
		{name: "an owner without a uid is refused", method: post, path: cms, body: owned("bad", `{"apiVersion":"v1","kind":"ConfigMap","name":"o1","uid":""}`)},
		{name: "an owner twice is warned of", method: post, path: cms, body: owned("twice", ref("o2", "")+","+ref("o2", ""))},
		{name: "an owner is deleted", method: del, path: cms + "/o1"},
		{name: "what it owned alone is collected", method: get, path: cms + "/o1a", gone: true},
		{name: "what has another owner remains", method: get, path: cms + "/o12", without: "$uid(o1)"},
		{name: "an object that blocks its owner", method: post, path: cms, body: `{"metadata":{"name":"o3a","finalizers":["example.com/keep"],"ownerReferences":[` + ref("o3", `,"controller":true,"blockOwnerDeletion":true`) + `]}}`},
		{name: "an owner is deleted in the foreground", method: del, path: cms + "/o3", body: `{"propagationPolicy":"Foreground"}`},
		{name: "a deletion in the foreground waits", method: get, path: cms + "/o3"},
		{name: "what blocks is deleted first", method: get, path: cms + "/o3a", marked: true},
		{name: "what blocks is released", method: patch, path: cms + "/o3a", kind: "merge", body: `{"metadata":{"finalizers":null}}`},
		{name: "the owner follows", method: get, path: cms + "/o3", gone: true},
		{name: "an object that has another owner, too", method: post, path: cms, body: owned("o52", ref("o5", `,"blockOwnerDeletion":true`)+","+ref("o2", ""))},
		{name: "one of two owners is deleted in the foreground", method: del, path: cms + "/o5", body: `{"propagationPolicy":"Foreground"}`},
		{name: "one of two owners is gone", method: get, path: cms + "/o5", gone: true},
		{name: "what has another owner stays with it", method: get, path: cms + "/o52", without: "$uid(o5)"},
		{name: "an object of an owner to be orphaned", method: post, path: cms, body: owned("o4a", ref("o4", ""))},
		{name: "an owner is deleted and orphans", method: del, path: cms + "/o4", body: `{"propagationPolicy":"Orphan"}`},
		{name: "the owner is gone", method: get, path: cms + "/o4", gone: true},
		{name: "an orphan has no owner", method: get, path: cms + "/o4a", without: "$uid(o4)"},
	}
}
