// SPDX-License-Identifier: Apache-2.0

package main

// mutations are all that `make simulation MUTATE=1` hunts for.
var mutations = []mutation{
	{
		name: "a process that stood still writes on until it has seen another leader",
		file: "reconciler/fence/fence.go",
		old:  "	if since < t.leaseDuration {\n",
		new:  "	if !t.lost {\n",
		hunt: "rollout/leader", law: 5,
	},
	{
		name: "capacity is requested before the chart is installed",
		file: "apis/rules/strategy/participants.go",
		old:  "s.capacity.set(s.where(s.capacity.below(), s.mayGrow, func(c string) bool { return installedIn(s.release, c) }))",
		new:  "s.capacity.set(s.capacity.below())",
		hunt: "rollout/undisturbed,rollout/killed", law: 4,
	},
	{
		name: "traffic is requested before the capacity is there",
		file: "apis/rules/strategy/participants.go",
		old:  "s.traffic.set(s.where(s.traffic.below(), s.capacity.enough(), s.capacity.enoughIn))",
		new:  "s.traffic.set(s.traffic.below())",
		hunt: "rollout/undisturbed,rollout/killed", law: 4,
	},
	{
		name: "the incumbent loses traffic before the contender has it",
		file: "apis/rules/strategy/participants.go",
		old:  "		if !s.shrinks(other, c) || other.serves() {\n",
		new:  "		if other != nil {\n",
		hunt: "rollout/undisturbed,rollout/killed", law: 2,
	},
	{
		name: "Pods that serve may be removed first when a Deployment is scaled down",
		file: "reconciler/member/traffic/apply.go",
		old:  "		cost = `\"1\"`\n",
		new:  "		cost = `null`\n",
		hunt: "rollout/undisturbed,rollout/killed", law: 2,
	},
	{
		name: "a step counts as achieved by a status of the request before",
		file: "apis/rules/strategy/quantity.go",
		old:  "	return g.exists && !g.changed() && len(g.unequal()) == 0 && g.current && g.ready\n",
		new:  "	return g.exists && !g.changed() && len(g.unequal()) == 0 && g.ready\n",
		hunt: "rollout/undisturbed,rollout/killed", law: 9,
	},
	{
		name: "a deleted Release goes while it still serves",
		file: "apis/rules/strategy/leaving.go",
		old:  "	return len(serves) == 0 && !s.traffic.changed()\n",
		new:  "	return !s.traffic.changed()\n",
		hunt: "abort/undisturbed,abort/killed", law: 2,
	},
	{
		name: "caches may lag behind what the process wrote itself",
		file: "reconciler/client.go",
		old:  "o.Cache.EnableReadYourWritesConsistency = ptr.To(true)",
		new:  "o.Cache.EnableReadYourWritesConsistency = ptr.To(false)",
		hunt: "rollout/undisturbed,rollout/late", law: 11,
	},
	{
		name: "statuses are written that are there already",
		file: "reconciler/fleet/report/status.go",
		old:  "	if equality.Semantic.DeepEqual(was, object) {\n",
		new:  "	if equality.Semantic.DeepEqual(was, object) && changed {\n",
		hunt: "rollout/undisturbed,rollout/killed", law: 7,
	},
	{
		name: "the reconciler overwrites an object that Shipper did not create",
		file: "reconciler/member/installation/plan.go",
		old:  "	case !ours:\n		return refuse\n",
		new:  "	case !ours:\n		return write\n",
		hunt: "foreign/undisturbed,foreign/killed", law: 6,
	},
	{
		name: "a step soaks from when it was requested, not from when it was there",
		file: "apis/rules/progress/progress.go",
		old:  "	due := d.progress.ConvergedTime.Add(step.After.Value())\n",
		new:  "	due := d.progress.RequestedTime.Add(step.After.Value())\n",
		hunt: "soak/undisturbed,soak/killed", law: 4,
	},
	{
		name: "a rollout that goes on by itself skips a step",
		file: "apis/rules/progress/progress.go",
		old:  "	next := d.target() + 1\n",
		new:  "	next := int32(len(d.strategy.Steps) - 1)\n",
		hunt: "soak/undisturbed,soak/killed", law: 4,
	},
	{
		name: "the deadline runs on while a cluster cannot be reached",
		file: "apis/rules/progress/failure.go",
		old:  "	case d.WritesHeldBy != \"\" || d.Release.Spec.Hold != \"\" || d.onlyUnreachable():\n",
		new:  "	case d.WritesHeldBy != \"\" || d.Release.Spec.Hold != \"\":\n",
		hunt: "deadline/undisturbed,deadline/killed", law: 8,
	},
	{
		name: "the reconciler raises the step in spite of a block",
		file: "apis/rules/progress/progress.go",
		old:  "	case d.UpHeldBy != \"\":\n		d.out.CommandNotAwaited = true\n",
		new:  "	case d.UpHeldBy != \"\" && step.After == \"\":\n		d.out.CommandNotAwaited = true\n",
		hunt: "block/undisturbed,block/killed", law: 3,
	},
	{
		name: "the webhook admits a step in spite of a block",
		file: "webhook/release/validate.go",
		old: "block.Overrides(rel.Annotations), c); err != nil {\n		return err\n	}\n" +
			"	warnWithoutEffect(a, rel, app.Newest())\n",
		new: "block.Overrides(rel.Annotations), c); err != nil && w.reconciler(req) {\n		return err\n	}\n" +
			"	warnWithoutEffect(a, rel, app.Newest())\n",
		hunt: "block/undisturbed,block/killed", law: 3,
	},
	{
		name: "a run that follows has another name each time it is created",
		file: "apis/rules/shipyard/followup.go",
		old:  "ObjectMeta: metav1.ObjectMeta{Namespace: run.Namespace, Name: t.Name},",
		new:  "ObjectMeta: metav1.ObjectMeta{Namespace: run.Namespace, GenerateName: t.Name},",
		hunt: "run/undisturbed,run/killed", law: 7,
	},
	{
		name: "objects without a namespace are written before they are listed",
		file: "reconciler/member/installation/install.go",
		old:  "		if err := i.listPending(ctx, steps); err != nil {\n",
		new:  "		if err := error(nil); err != nil {\n",
		hunt: "scoped/undisturbed,scoped/killed", law: 12,
	},
	{
		name: "the removal of objects without a namespace reads the status alone",
		file: "reconciler/member/installation/scoped.go",
		old:  "	if len(entries) == 0 {\n		entries = entriesOf",
		new:  "	if len(entries) >= 0 {\n		entries = entriesOf",
		hunt: "scoped/undisturbed,scoped/killed", law: 7,
	},
}
